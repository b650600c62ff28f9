/* Kernels that keep in step with their stream, and some that forget to. C11 and C++17, for both CPUs. */

#include "control_params.h"
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

/* Never returns. */
HCOMM_KERNEL(never_returns) {
    volatile const uint32_t zero = 0;
    while (zero == 0) {
    }
    return args == 0;
}
