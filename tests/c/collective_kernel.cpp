// Kernels between ranks in C++14: a mesh all-gather with a thread for each peer, and send and receive. The context lies in device
// memory, as bytes.

#include <algorithm>
#include <cstdint>

#include "collective.h"
#include "hcomm/hcomm_kernel.h"
#include "hcomm/hcomm_primitives.h"

namespace {

constexpr uint32_t LIMIT_S = 1836;
constexpr uint32_t FAILED = 3;

// One slice of the collective, of `len` bytes of each rank from `offset` on.
int32_t gather(const OpParam &param, const Context &context, uint64_t offset, uint64_t len) {
    const ThreadHandle first = context.threads[0];
    char *own = reinterpret_cast<char *>(context.buffer);
    char *slot = own + param.rank * len;
    int32_t code = HcommLocalCopyOnThread(first, slot, static_cast<char *>(param.input) + offset, len);
    const auto keep = [&code](int32_t result) { code = code != 0 ? code : result; };
    for (size_t i = 1; i < context.threads.size(); i++) {
        keep(HcommThreadNotifyRecordOnThread(first, context.threads[i], 0));
        keep(HcommThreadNotifyWaitOnThread(context.threads[i], 0, LIMIT_S));
    }
    for (size_t i = 0; i < context.channels.size(); i++) {
        const Channel &channel = context.channels[i];
        const ThreadHandle thread = context.threads[i];
        char *remote = reinterpret_cast<char *>(channel.buffer) + param.rank * len;
        keep(HcommChannelNotifyRecordOnThread(thread, channel.handle, READY));
        keep(HcommChannelNotifyWaitOnThread(thread, channel.handle, READY, LIMIT_S));
        keep(HcommWriteOnThread(thread, channel.handle, remote, slot, len));
        keep(HcommChannelNotifyRecordOnThread(thread, channel.handle, DONE));
        keep(HcommChannelNotifyWaitOnThread(thread, channel.handle, DONE, LIMIT_S));
    }
    for (size_t i = 1; i < context.threads.size(); i++) {
        const auto index = static_cast<uint32_t>(i - 1);
        keep(HcommThreadNotifyRecordOnThread(context.threads[i], first, index));
        keep(HcommThreadNotifyWaitOnThread(first, index, LIMIT_S));
    }
    for (uint32_t rank = 0; rank < param.rankSize; rank++) {
        char *to = static_cast<char *>(param.output) + rank * param.bytes + offset;
        keep(HcommLocalCopyOnThread(first, to, own + rank * len, len));
    }
    return code;
}

int32_t all_gather(const OpParam &param, const Context &context) {
    // Multiples of 64 bytes fit to every type.
    const uint64_t most = context.bufferBytes / param.rankSize / 64 * 64;
    int32_t code = 0;
    for (uint64_t offset = 0; offset < param.bytes && code == 0; offset += most) {
        code = gather(param, context, offset, std::min(most, param.bytes - offset));
    }
    return code;
}

const Channel *channel_to(const Context &context, uint32_t rank) {
    const auto is_it = [rank](const Channel &channel) { return channel.rank == rank; };
    const auto found = std::find_if(context.channels.begin(), context.channels.end(), is_it);
    return found == context.channels.end() ? nullptr : &*found;
}

// The sender lays its bytes out, and waits until they have been fetched.
int32_t send(const OpParam &param, const Context &context) {
    const Channel *channel = channel_to(context, param.peer);
    if (channel == nullptr) {
        return FAILED;
    }
    const ThreadHandle thread = context.threads[0];
    void *own = reinterpret_cast<void *>(context.buffer);
    int32_t code = HcommLocalCopyOnThread(thread, own, param.input, param.bytes);
    const auto keep = [&code](int32_t result) { code = code != 0 ? code : result; };
    keep(HcommChannelNotifyRecordOnThread(thread, channel->handle, READY));
    keep(HcommChannelNotifyWaitOnThread(thread, channel->handle, DONE, LIMIT_S));
    return code;
}

// The receiver reads them into memory of the program.
int32_t receive(const OpParam &param, const Context &context) {
    const Channel *channel = channel_to(context, param.peer);
    if (channel == nullptr) {
        return FAILED;
    }
    const ThreadHandle thread = context.threads[0];
    void *remote = reinterpret_cast<void *>(channel->buffer);
    int32_t code = HcommChannelNotifyWaitOnThread(thread, channel->handle, READY, LIMIT_S);
    const auto keep = [&code](int32_t result) { code = code != 0 ? code : result; };
    keep(HcommReadOnThread(thread, channel->handle, param.output, remote, param.bytes));
    keep(HcommChannelNotifyRecordOnThread(thread, channel->handle, DONE));
    return code;
}

// Writes to the peer, whether or not it is there.
int32_t write(const OpParam &param, const Context &context) {
    const Channel *channel = channel_to(context, param.peer);
    if (channel == nullptr) {
        return FAILED;
    }
    void *remote = reinterpret_cast<void *>(channel->buffer);
    return HcommWriteOnThread(context.threads[0], channel->handle, remote, param.input, param.bytes);
}

// Begins and ends a launch in step with its stream, and locks the communicator for it.
template <typename Operation> uint32_t launched(void *args, Operation operation) {
    if (args == nullptr) {
        return FAILED;
    }
    const OpParam &param = *static_cast<const OpParam *>(args);
    Context context;
    if (!context.deserialize(param.context, param.contextBytes) || param.fails != 0) {
        return FAILED;
    }
    int32_t code = HcommAcquireComm(param.commName);
    const auto keep = [&code](int32_t result) { code = code != 0 ? code : result; };
    keep(HcommBatchModeStart(param.tag));
    const ThreadHandle first = context.threads[0];
    keep(HcommThreadNotifyWaitOnThread(first, static_cast<uint32_t>(context.startNotify), LIMIT_S));
    keep(operation(param, context));
    keep(HcommThreadNotifyRecordOnThread(first, param.cpuThread, 0));
    keep(HcommBatchModeEnd(param.tag));
    keep(HcommReleaseComm(param.commName));
    return static_cast<uint32_t>(code);
}

} // namespace

HCOMM_KERNEL(all_gather_mesh) { return launched(args, all_gather); }

HCOMM_KERNEL(send_to_rank) { return launched(args, send); }

HCOMM_KERNEL(receive_from_rank) { return launched(args, receive); }

HCOMM_KERNEL(write_to_rank) { return launched(args, write); }
