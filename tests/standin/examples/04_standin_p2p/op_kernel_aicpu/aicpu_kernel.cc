#include "exec_op.h"

#include "hcomm_primitives.h"

extern "C" unsigned int StandinLaunchP2P(Param *param)
{
    const Resources &resources = *param->resources;
    if (param->is950 == 0 && HcommAcquireComm(param->commName) != 0) {
        return 1;
    }
    int32_t code = HcommBatchModeStart(param->tag);
    if (code == 0) {
        code = HcommThreadNotifyWaitOnThread(resources.thread, 0, TIMEOUT_S);
    }
    if (code == 0) {
        code = ExecOp(*param, resources);
    }
    if (code == 0) {
        code = HcommThreadNotifyRecordOnThread(resources.thread, resources.cpuThread, 0);
    }
    const int32_t end = HcommBatchModeEnd(param->tag);
    if (param->is950 == 0 && HcommReleaseComm(param->commName) != 0) {
        return 1;
    }
    return code == 0 && end == 0 ? 0 : 1;
}
