/* Device half of the interface document's second example, and kernels for the tests. C11 and C++17, for both CPUs. */

#include "copy_params.h"
#include "hcomm/hcomm_kernel.h"
#include "in_step.h"

HCOMM_KERNEL(copy_256) {
    if (args == 0) {
        return 2;
    }
    const CopyParams param = *(const CopyParams *)args;
    ThreadHandle thread = param.thread;
    const int32_t code = begin_in_step(thread);
    uint64_t len = 256;
    void *src = param.userIn;
    void *dst = param.cclBuf;
    // 执行 D2D 拷贝
    HcommLocalCopyOnThread(thread, dst, src, len);
    return (uint32_t)end_in_step(thread, param.cpuThread, code);
}

/* As many bytes as it is told, and the code of the calls as its own. */
HCOMM_KERNEL(copy_len) {
    if (args == 0) {
        return 2;
    }
    const CopyParams *param = (const CopyParams *)args;
    int32_t code = begin_in_step(param->thread);
    if (code == 0) {
        code = HcommLocalCopyOnThread(param->thread, param->cclBuf, param->userIn, param->len);
    }
    return (uint32_t)end_in_step(param->thread, param->cpuThread, code);
}

/* Fails with the number that it is told. */
HCOMM_KERNEL(fail) {
    return *(const uint32_t *)args;
}
