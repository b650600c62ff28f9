#include "exec_op.h"

#include <algorithm>

#include "hcomm_primitives.h"

#define CHECK_CALL(call)          \
    do {                          \
        const int32_t ret = call; \
        if (ret != 0) {           \
            return ret;           \
        }                         \
    } while (0)

// One round: `len` bytes of each rank from `offset` on.
static int32_t Round(const Param &param, const Resources &resources, uint64_t offset, uint64_t len)
{
    const std::vector<ThreadHandle> &threads = resources.threads;
    char *own = static_cast<char *>(resources.buffer);
    char *slot = own + param.rank * len;
    CHECK_CALL(HcommLocalCopyOnThread(threads[0], slot, static_cast<char *>(param.input) + offset, len));
    for (size_t i = 1; i < threads.size(); i++) {
        CHECK_CALL(HcommThreadNotifyRecordOnThread(threads[0], threads[i], 0));
        CHECK_CALL(HcommThreadNotifyWaitOnThread(threads[i], 0, TIMEOUT_S));
    }
    for (size_t i = 0; i < resources.channels.size(); i++) {
        const ChannelInfo &channel = resources.channels[i];
        char *remote = static_cast<char *>(channel.buffer) + param.rank * len;
        CHECK_CALL(HcommChannelNotifyRecordOnThread(threads[i], channel.handle, NOTIFY_READY));
        CHECK_CALL(HcommChannelNotifyWaitOnThread(threads[i], channel.handle, NOTIFY_READY, TIMEOUT_S));
        CHECK_CALL(HcommWriteOnThread(threads[i], channel.handle, remote, slot, len));
        CHECK_CALL(HcommChannelNotifyRecordOnThread(threads[i], channel.handle, NOTIFY_DONE));
        CHECK_CALL(HcommChannelNotifyWaitOnThread(threads[i], channel.handle, NOTIFY_DONE, TIMEOUT_S));
    }
    for (size_t i = 1; i < threads.size(); i++) {
        CHECK_CALL(HcommThreadNotifyRecordOnThread(threads[i], threads[0], static_cast<uint32_t>(i - 1)));
        CHECK_CALL(HcommThreadNotifyWaitOnThread(threads[0], static_cast<uint32_t>(i - 1), TIMEOUT_S));
    }
    for (uint32_t rank = 0; rank < param.rankSize; rank++) {
        char *to = static_cast<char *>(param.output) + rank * param.bytes + offset;
        CHECK_CALL(HcommLocalCopyOnThread(threads[0], to, own + rank * len, len));
    }
    return 0;
}

int32_t ExecOp(const Param &param, const Resources &resources)
{
    if (param.rankSize == 1) {
        return HcommLocalCopyOnThread(resources.threads[0], param.output, param.input, param.bytes);
    }
    const uint64_t most = resources.size / param.rankSize / 512 * 512;
    for (uint64_t offset = 0; offset < param.bytes; offset += most) {
        CHECK_CALL(Round(param, resources, offset, std::min(most, param.bytes - offset)));
    }
    return 0;
}
