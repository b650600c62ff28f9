// A kernel in C++17 without exceptions and without a library: runs in the image, too.

#include "copy_params.h"
#include "hcomm/hcomm_kernel.h"
#include "in_step.h"

namespace {

// Puts the kernel's half of the control pair around what it queues, on every way out.
class InStep {
public:
    InStep(ThreadHandle thread, ThreadHandle cpuThread, uint32_t &answer)
        : thread_(thread), cpuThread_(cpuThread), answer_(answer), code_(begin_in_step(thread)) {}
    InStep(const InStep &) = delete;
    InStep &operator=(const InStep &) = delete;
    ~InStep() { answer_ = static_cast<uint32_t>(end_in_step(thread_, cpuThread_, code_)); }

    // Queues a copy, unless an earlier call has failed.
    InStep &copy(void *dst, const void *src, uint64_t len) {
        code_ = code_ != 0 ? code_ : HcommLocalCopyOnThread(thread_, dst, src, len);
        return *this;
    }

private:
    ThreadHandle thread_, cpuThread_;
    uint32_t &answer_;
    int32_t code_;
};

template <typename T> T *offset(void *base, uint64_t bytes) { return reinterpret_cast<T *>(static_cast<char *>(base) + bytes); }

} // namespace

// Copies in two halves.
HCOMM_KERNEL(copy_cxx) {
    if (args == nullptr) {
        return 2;
    }
    const auto &param = *static_cast<const CopyParams *>(args);
    const uint64_t half = param.len / 2;
    uint32_t answer = 0;
    InStep(param.thread, param.cpuThread, answer)
        .copy(param.cclBuf, param.userIn, half)
        .copy(offset<void>(param.cclBuf, half), offset<void>(param.userIn, half), param.len - half);
    return answer;
}
