#include "exec_op.h"

#include "hcomm_primitives.h"

extern "C" unsigned int StandinLaunchAllGather(Param *param)
{
    Resources resources;
    resources.Deserialize(param->context);
    const ThreadHandle first = resources.threads[0];
    int32_t code = HcommBatchModeStart(param->tag);
    if (code == 0) {
        code = HcommThreadNotifyWaitOnThread(first, resources.startNotify, TIMEOUT_S);
    }
    if (code == 0) {
        code = ExecOp(*param, resources);
    }
    if (code == 0) {
        code = HcommThreadNotifyRecordOnThread(first, param->cpuThread, 0);
    }
    const int32_t end = HcommBatchModeEnd(param->tag);
    return code == 0 && end == 0 ? 0 : 1;
}
