#include "exec_op.h"

#include "hcomm_primitives.h"

#define CHECK_CALL(call)          \
    do {                          \
        const int32_t ret = call; \
        if (ret != 0) {           \
            return ret;           \
        }                         \
    } while (0)

int32_t ExecOp(const Param &param, const Resources &resources)
{
    const ThreadHandle thread = resources.thread;
    if (param.isSend != 0) {
        CHECK_CALL(HcommLocalCopyOnThread(thread, resources.local.addr, param.buffer, param.bytes));
        CHECK_CALL(HcommChannelNotifyRecordOnThread(thread, resources.channel, NOTIFY_READY));
        return HcommChannelNotifyWaitOnThread(thread, resources.channel, NOTIFY_DONE, TIMEOUT_S);
    }
    CHECK_CALL(HcommChannelNotifyWaitOnThread(thread, resources.channel, NOTIFY_READY, TIMEOUT_S));
    // Into memory of the program, which nothing has registered.
    CHECK_CALL(HcommReadOnThread(thread, resources.channel, param.buffer, resources.remote.addr, param.bytes));
    return HcommChannelNotifyRecordOnThread(thread, resources.channel, NOTIFY_DONE);
}
