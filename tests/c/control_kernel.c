/* Kernels that synchronise with their stream, and some that do not. C11 and C++17, for both CPUs. */

#include "control_params.h"
#include "hccl/hccl_types.h"
#include "hcomm/hcomm_kernel.h"
#include "in_step.h"

static int32_t first_of(int32_t code, int32_t next) {
    return code != 0 ? code : next;
}

/* The first thread writes the first half of `src` to `dst`, then the second one writes the second half over it. */
HCOMM_KERNEL(write_twice) {
    const ControlParams *param = (const ControlParams *)args;
    const ThreadHandle first = param->threads[0], second = param->threads[1];
    int32_t code = begin_in_step(first);
    code = first_of(code, HcommLocalCopyOnThread(first, param->dst, param->src, param->len));
    code = first_of(code, HcommThreadNotifyRecordOnThread(first, second, 1));
    code = first_of(code, HcommThreadNotifyWaitOnThread(second, 1, CONTROL_TIMEOUT));
    code = first_of(code, HcommLocalCopyOnThread(second, param->dst, param->src + param->len, param->len));
    code = first_of(code, HcommThreadNotifyRecordOnThread(second, first, 1));
    code = first_of(code, HcommThreadNotifyWaitOnThread(first, 1, CONTROL_TIMEOUT));
    code = end_in_step(first, param->cpuThread, code);
    if (param->done != 0) {
        *param->done = 1;
    }
    return (uint32_t)code;
}

/* In step through two notifies of the host, as operators for A2 and A3 did at first. */
HCOMM_KERNEL(by_notifies) {
    const ControlParams *param = (const ControlParams *)args;
    const ThreadHandle first = param->threads[0];
    int32_t code = HcommBatchModeStart(0);
    code = first_of(code, HcommAclrtNotifyWaitOnThread(first, param->startId, CONTROL_TIMEOUT));
    code = first_of(code, HcommLocalCopyOnThread(first, param->dst, param->src, param->len));
    code = first_of(code, HcommAclrtNotifyRecordOnThread(first, param->endId));
    return (uint32_t)first_of(code, HcommBatchModeEnd(0));
}

/* Copies, and records no end. */
HCOMM_KERNEL(no_end) {
    const ControlParams *param = (const ControlParams *)args;
    int32_t code = begin_in_step(param->threads[0]);
    code = first_of(code, HcommLocalCopyOnThread(param->threads[0], param->dst, param->src, param->len));
    return (uint32_t)first_of(code, HcommBatchModeEnd(0));
}

/* As `no_end`, and fails afterwards. */
HCOMM_KERNEL(fails_late) {
    const uint32_t code = no_end(args);
    return code != 0 ? code : 77;
}

/* Forgets the end of its batch. */
HCOMM_KERNEL(open_batch) {
    const ControlParams *param = (const ControlParams *)args;
    const int32_t code = begin_in_step(param->threads[0]);
    return (uint32_t)first_of(code, HcommThreadNotifyRecordOnThread(param->threads[0], param->cpuThread, 0));
}

/* Ends the kernel with the line of a call that gives another answer. */
#define EXPECT(call, answer)                                                                      \
    do {                                                                                          \
        if ((call) != (answer)) {                                                                 \
            return __LINE__;                                                                      \
        }                                                                                         \
    } while (0)

/* The functions of channels, with a communicator that has none: nothing is queued. */
static uint32_t no_channel(ThreadHandle thread, const ControlParams *param) {
    const uint64_t count = param->len / 4;
    const HcommDataType type = HCOMM_DATA_TYPE_INT32;
    const HcommReduceOp sum = HCOMM_REDUCE_SUM;
    const HcommBatchTransferDesc desc = {.kind = 6};
    unsigned char *dst = param->dst;
    const unsigned char *src = param->src;
    EXPECT(HcommWriteOnThread(thread, 0, dst, src, param->len), HCCL_E_PTR);
    EXPECT(HcommReadOnThread(thread, 0, dst, src, param->len), HCCL_E_PTR);
    EXPECT(HcommWriteReduceOnThread(thread, 0, dst, src, count, type, sum), HCCL_E_PTR);
    EXPECT(HcommReadReduceOnThread(thread, 0, dst, src, count, type, sum), HCCL_E_PTR);
    EXPECT(HcommWriteWithNotifyOnThread(thread, 0, dst, src, param->len, 0), HCCL_E_PTR);
    EXPECT(HcommWriteReduceWithNotifyOnThread(thread, 0, dst, src, count, type, sum, 0), HCCL_E_PTR);
    EXPECT(HcommChannelNotifyRecordOnThread(thread, 0, 0), HCCL_E_PTR);
    EXPECT(HcommChannelNotifyWaitOnThread(thread, 0, 0, CONTROL_TIMEOUT), HCCL_E_PTR);
    EXPECT(HcommChannelNotifyWaitOnThreadWithDefaultTimeout(thread, 0, 0), HCCL_E_PTR);
    EXPECT(HcommChannelFenceOnThread(thread, 0), HCCL_E_PTR);
    EXPECT(HcommBatchTransferOnThread(thread, 0, &desc, 1), HCCL_E_PTR);
    return HCCL_SUCCESS;
}

/* Every function that works on every supported product. `dst` becomes the larger of twice the first half of `src` and
 * of the second, as int32. */
HCOMM_KERNEL(every_call) {
    const ControlParams *param = (const ControlParams *)args;
    const ThreadHandle first = param->threads[0], second = param->threads[1];
    const uint64_t count = param->len / 4;
    const HcommDataType type = HCOMM_DATA_TYPE_INT32;
    const unsigned char *later = param->src + param->len;
    EXPECT(HcommAcquireComm(param->commName), HCCL_SUCCESS);
    EXPECT(HcommAcquireComm(param->commName), HCCL_E_AGAIN);
    EXPECT(HcommSetNotifyWaitTimeOut(-1), HCCL_E_PARA);
    EXPECT(HcommSetNotifyWaitTimeOut(60), HCCL_SUCCESS);
    EXPECT(HcommThreadResAcquireTimeOut(-1), HCCL_E_PARA);
    EXPECT(HcommThreadResAcquireTimeOut(60), HCCL_SUCCESS);

    EXPECT(HcommBatchModeStart("every_call"), HCCL_SUCCESS);
    EXPECT(HcommThreadNotifyWaitOnThread(first, 0, CONTROL_TIMEOUT), HCCL_SUCCESS);
    EXPECT(HcommLocalCopyOnThread(first, param->dst, param->src, param->len), HCCL_SUCCESS);
    EXPECT(HcommLocalReduceOnThread(first, param->dst, param->src, count, type, HCOMM_REDUCE_SUM), HCCL_SUCCESS);
    EXPECT(HcommThreadNotifyRecordOnThread(first, second, 1), HCCL_SUCCESS);
    EXPECT(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(second, 1), HCCL_SUCCESS);
    EXPECT(HcommLocalReduceOnThread(second, param->dst, later, count, type, HCOMM_REDUCE_MAX), HCCL_SUCCESS);
    EXPECT(HcommThreadNotifyRecordOnThread(second, first, 1), HCCL_SUCCESS);
    EXPECT(HcommThreadNotifyWaitOnThread(first, 1, CONTROL_TIMEOUT), HCCL_SUCCESS);
    /* What the engine does not compute, and more bytes than 64 bits can count: nothing is queued. */
    EXPECT(HcommLocalReduceOnThread(first, param->dst, later, count, type, HCOMM_REDUCE_PROD), HCCL_E_NOT_SUPPORT);
    EXPECT(HcommLocalReduceOnThread(first, param->dst, later, count, HCOMM_DATA_TYPE_INT64, HCOMM_REDUCE_SUM),
           HCCL_E_NOT_SUPPORT);
    EXPECT(HcommLocalReduceOnThread(first, param->dst, later, UINT64_MAX / 2, type, HCOMM_REDUCE_SUM), HCCL_E_PARA);
    EXPECT(HcommThreadSynchronize(first), HCCL_SUCCESS);
    EXPECT(HcommThreadJoin(second, 60), HCCL_SUCCESS);
    EXPECT(HcommThreadNotifyRecordOnThread(first, param->cpuThread, 0), HCCL_SUCCESS);
    EXPECT(HcommBatchModeEnd("every_call"), HCCL_SUCCESS);

    EXPECT(HcommReleaseComm(param->commName), HCCL_SUCCESS);
    EXPECT(HcommReleaseComm(param->commName), HCCL_E_NOT_FOUND);
    return no_channel(first, param);
}

/* Waits with the default limit, of less than a second, for a notify that is never recorded. */
HCOMM_KERNEL(waits_briefly) {
    const ControlParams *param = (const ControlParams *)args;
    EXPECT(HcommSetNotifyWaitTimeOut(0.25f), HCCL_SUCCESS);
    EXPECT(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(param->threads[1], 0), HCCL_SUCCESS);
    return HCCL_SUCCESS;
}

/* Never returns. */
HCOMM_KERNEL(never_returns) {
    volatile const uint32_t zero = 0;
    while (zero == 0) {
    }
    return args == 0;
}
