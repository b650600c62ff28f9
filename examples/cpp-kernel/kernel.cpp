// A kernel: copies two halves, each to the place of the other.

#include "hcomm/hcomm_kernel.h"
#include "params.h"

HCOMM_KERNEL(swap_halves) {
    const auto &param = *static_cast<const Params *>(args);
    auto *dst = static_cast<char *>(param.dst);
    const auto *src = static_cast<const char *>(param.src);
    int32_t code = 0;
    const auto keep = [&code](int32_t result) { code = code != 0 ? code : result; };
    // The tasks come after the operations of the stream before the launch, and before those behind it.
    keep(HcommBatchModeStart(nullptr));
    keep(HcommThreadNotifyWaitOnThread(param.thread, 0, 1836));
    keep(HcommLocalCopyOnThread(param.thread, dst, src + param.half, param.half));
    keep(HcommLocalCopyOnThread(param.thread, dst + param.half, src, param.half));
    keep(HcommThreadNotifyRecordOnThread(param.thread, param.cpuThread, 0));
    keep(HcommBatchModeEnd(nullptr));
    return static_cast<uint32_t>(code);
}
