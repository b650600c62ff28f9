// A kernel in C++17 without exceptions and without a library: runs in the image, too.

#include "copy_params.h"
#include "hcomm/hcomm_kernel.h"

namespace {

// Starts a batch, and ends it on every way out.
class Batch {
public:
    Batch() : code_(HcommBatchModeStart(nullptr)) {}
    Batch(const Batch &) = delete;
    Batch &operator=(const Batch &) = delete;
    ~Batch() { HcommBatchModeEnd(nullptr); }
    int32_t code() const { return code_; }

private:
    int32_t code_;
};

template <typename T> T *offset(void *base, uint64_t bytes) { return reinterpret_cast<T *>(static_cast<char *>(base) + bytes); }

} // namespace

// Copies in two halves, as one batch.
HCOMM_KERNEL(copy_cxx) {
    if (args == nullptr) {
        return 2;
    }
    const auto &param = *static_cast<const CopyParams *>(args);
    const uint64_t half = param.len / 2;
    Batch batch;
    if (batch.code() != 0) {
        return static_cast<uint32_t>(batch.code());
    }
    if (const int32_t code = HcommLocalCopyOnThread(param.thread, param.cclBuf, param.userIn, half); code != 0) {
        return static_cast<uint32_t>(code);
    }
    void *dst = offset<void>(param.cclBuf, half);
    return static_cast<uint32_t>(
        HcommLocalCopyOnThread(param.thread, dst, offset<void>(param.userIn, half), param.len - half));
}
