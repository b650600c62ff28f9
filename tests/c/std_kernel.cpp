// A kernel that uses the standard library of C++, for the native CPU.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "copy_params.h"
#include "hcomm/hcomm_kernel.h"
#include "in_step.h"

// Copies in pieces of at most 100 bytes, the last one first.
HCOMM_KERNEL(copy_std) {
    if (args == nullptr) {
        return 2;
    }
    const auto &param = *static_cast<const CopyParams *>(args);
    std::vector<uint64_t> starts;
    for (uint64_t start = 0; start < param.len; start += 100) {
        starts.insert(starts.begin(), start);
    }
    const std::string tag = "pieces of " + std::to_string(param.len);
    if (const int32_t code = HcommBatchModeStart(tag.c_str()); code != 0) {
        return static_cast<uint32_t>(code);
    }
    int32_t code = HcommThreadNotifyWaitOnThread(param.thread, 0, CONTROL_TIMEOUT);
    const auto keep = [&code](int32_t result) { code = code != 0 ? code : result; };
    for (const uint64_t start : starts) {
        auto *dst = static_cast<char *>(param.cclBuf) + start;
        const auto *src = static_cast<const char *>(param.userIn) + start;
        keep(HcommLocalCopyOnThread(param.thread, dst, src, std::min<uint64_t>(100, param.len - start)));
    }
    keep(HcommThreadNotifyRecordOnThread(param.thread, param.cpuThread, 0));
    keep(HcommBatchModeEnd(tag.c_str()));
    return static_cast<uint32_t>(code);
}
