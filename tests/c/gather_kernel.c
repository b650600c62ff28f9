/* Kernel gather_four, see gather.h. Each task of interest has a line of its own, which a comment names. C11 and C++17. */

#include "gather.h"
#include "hccl/hccl_types.h"
#include "hcomm/hcomm_kernel.h"
#include "in_step.h"

#define DO(call) first_error(&code, (call))

static void first_error(int32_t *code, int32_t next) {
    if (*code == 0) {
        *code = next;
    }
}

/* Lets the workers begin a phase. */
static int32_t begin(const GatherParams *p, uint32_t phase) {
    int32_t code = 0;
    for (uint32_t w = 1; w < WORKERS; w++) {
        if (w == 3 && ((p->bug == NOT_STARTED && phase == 0) || (p->bug == NO_BEGIN && phase == 1))) {
            continue;
        }
        DO(HcommThreadNotifyRecordOnThread(p->thread[0], p->thread[w], phase));
        DO(HcommThreadNotifyWaitOnThread(p->thread[w], phase, CONTROL_TIMEOUT));
    }
    return code;
}

/* The main thread waits for the workers. */
static int32_t join(const GatherParams *p, uint32_t phase) {
    int32_t code = 0;
    for (uint32_t w = 1; w < WORKERS; w++) {
        const uint32_t index = w + phase * 3;
        const int isLast = w == 3 && phase == 1;
        if (p->bug == BARRIER_REFUSED && w == 3 && phase == 0) {
            (void)HcommThreadNotifyRecordOnThread(p->thread[w], p->thread[0], 99);    /* record refused */
            (void)HcommThreadNotifyWaitOnThread(p->thread[0], 99, CONTROL_TIMEOUT);   /* wait refused */
            continue;
        }
        if (!isLast || (p->bug != NO_RECORD && p->bug != NOT_JOINED)) {
            DO(HcommThreadNotifyRecordOnThread(p->thread[w], p->thread[0], index));
        }
        if (!isLast || (p->bug != NO_WAIT && p->bug != NOT_JOINED)) {
            DO(HcommThreadNotifyWaitOnThread(p->thread[0], index, CONTROL_TIMEOUT));
        }
    }
    return code;
}

static int32_t gather(const GatherParams *p) {
    const uint64_t len = p->len;
    int32_t code = begin(p, 0);
    DO(HcommLocalCopyOnThread(p->thread[0], p->ccl, p->send[0], len));               /* in 0 */
    if (p->bug == REFUSED) {
        (void)HcommLocalCopyOnThread(p->thread[1], 0, p->send[1], len);              /* copy refused */
    } else {
        DO(HcommLocalCopyOnThread(p->thread[1], p->ccl + len, p->send[1], len));     /* in 1 */
    }
    DO(HcommLocalCopyOnThread(p->thread[2], p->ccl + 2 * len, p->send[2], len));     /* in 2 */
    DO(HcommLocalCopyOnThread(p->thread[3], p->ccl + 3 * len, p->send[3], len));     /* in 3 */
    if (p->bug != NO_BARRIER) {
        DO(join(p, 0));
        DO(begin(p, 1));
    }
    DO(HcommLocalCopyOnThread(p->thread[1], p->recv, p->ccl, len));                  /* out 0 */
    DO(HcommLocalCopyOnThread(p->thread[2], p->recv + len, p->ccl + len, len));      /* out 1 */
    DO(HcommLocalCopyOnThread(p->thread[3], p->recv + 2 * len, p->ccl + 2 * len, len)); /* out 2 */
    DO(HcommLocalCopyOnThread(p->thread[0], p->recv + 3 * len, p->ccl + 3 * len, len)); /* out 3 */
    DO(join(p, 1));
    if (p->bug == NEVER_SET) {
        DO(HcommLocalReduceOnThread(p->thread[0], p->sum, p->recv, len / 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM)); /* sum */
    }
    if (p->bug == RECORD_TOO_MANY) {
        DO(HcommThreadNotifyRecordOnThread(p->thread[1], p->thread[0], 1));
    }
    return code;
}

HCOMM_KERNEL(gather_four) {
    const GatherParams *p = (const GatherParams *)args;
    int32_t code = begin_in_step(p->thread[0]);
    DO(gather(p));
    DO(end_in_step(p->thread[0], p->cpuThread, code));
    if (p->bug == FREED_LATE || p->bug == READ_EARLY) {
        for (uint32_t w = 0; w < WORKERS; w++) {
            DO(HcommThreadJoin(p->thread[w], 60));
        }
        *(volatile uint32_t *)p->flag = 1;
    }
    return (uint32_t)code;
}
