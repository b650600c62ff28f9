#include "standin_p2p.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include "acl/acl_rt.h"
#include "common.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"

#define CALL(call)                                                                             \
    do {                                                                                       \
        const int ret = static_cast<int>(call);                                                \
        if (ret != 0) {                                                                        \
            std::cerr << #call << " at line " << __LINE__ << ": " << ret << std::endl;         \
            return HCCL_E_RUNTIME;                                                             \
        }                                                                                      \
    } while (0)

static HcclResult AcquireChannel(HcclComm comm, uint32_t remote, bool is950, ChannelHandle &channel)
{
    HcclChannelDesc desc;
    CALL(HcclChannelDescInit(&desc, 1));
    desc.remoteRank = remote;
    desc.notifyNum = CHANNEL_NOTIFIES;
    desc.channelProtocol = COMM_PROTOCOL_HCCS;
    if (is950) {
        uint32_t rank = 0, linkNum = 0;
        CommLink *links = nullptr;
        CALL(HcclGetRankId(comm, &rank));
        CALL(HcclRankGraphGetLinks(comm, 0, rank, remote, &links, &linkNum));
        uint32_t i = 0;
        while (i < linkNum && links[i].linkAttr.linkProtocol != COMM_PROTOCOL_UB_CTP) {
            i++;
        }
        if (i == linkNum) {
            return HCCL_E_NOT_FOUND;
        }
        desc.channelProtocol = COMM_PROTOCOL_UB_CTP;
        desc.localEndpoint = links[i].srcEndpointDesc;
        desc.remoteEndpoint = links[i].dstEndpointDesc;
    }
    CALL(HcclChannelAcquire(comm, COMM_ENGINE_AICPU, &desc, 1, &channel));
    return HCCL_SUCCESS;
}

static HcclResult Run(Param &param, uint32_t remote, HcclComm comm, aclrtStream stream)
{
    const std::string soc = aclrtGetSocName();
    param.is950 = soc.find("Ascend950") != std::string::npos ? 1 : 0;
    CALL(HcclGetCommName(comm, param.commName));
    if (sprintf_s(param.tag, sizeof param.tag, "%s", "standin_p2p") < 0) {
        return HCCL_E_INTERNAL;
    }
    ThreadHandle cpuThread = 0, start = 0;
    Resources resources = {};
    CALL(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &cpuThread));
    CALL(HcclThreadExportToCommEngine(comm, 1, &cpuThread, COMM_ENGINE_AICPU, &resources.cpuThread));
    CALL(HcclThreadAcquire(comm, COMM_ENGINE_AICPU, 1, 1, &resources.thread));
    CALL(HcclThreadExportToCommEngine(comm, 1, &resources.thread, COMM_ENGINE_CPU_TS, &start));
    CALL(HcclGetHcclBuffer(comm, &resources.local.addr, &resources.local.size));
    CALL(AcquireChannel(comm, remote, param.is950 != 0, resources.channel));
    CALL(HcclChannelGetHcclBuffer(comm, resources.channel, &resources.remote.addr, &resources.remote.size));
    void *context = nullptr;
    CALL(HcclEngineCtxCreate(comm, param.tag, COMM_ENGINE_AICPU, sizeof resources, &context));
    CALL(aclrtMemcpy(context, sizeof resources, &resources, sizeof resources, ACL_MEMCPY_HOST_TO_DEVICE));
    param.resources = static_cast<Resources *>(context);

    const char *home = getenv("ASCEND_HOME_PATH");
    const std::string path = std::string(home == nullptr ? "/usr/local/Ascend/cann" : home) +
                             "/opp/vendors/cust/aicpu/config/libstandin_p2p_kernel.json";
    aclrtBinaryLoadOption option = {};
    option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 0;
    aclrtBinaryLoadOptions options = {&option, 1};
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle function = nullptr;
    aclrtArgsHandle args = nullptr;
    aclrtParamHandle appended = nullptr;
    CALL(aclrtBinaryLoadFromFile(path.c_str(), &options, &binary));
    CALL(HcommThreadNotifyRecordOnThread(cpuThread, start, 0));
    CALL(aclrtBinaryGetFunction(binary, "StandinLaunchP2P", &function));
    CALL(aclrtKernelArgsInit(function, &args));
    CALL(aclrtKernelArgsAppend(args, &param, sizeof param, &appended));
    CALL(aclrtKernelArgsFinalize(args));
    aclrtLaunchKernelAttr attr = {};
    attr.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
    attr.value.timeout = TIMEOUT_S;
    aclrtLaunchKernelCfg config = {&attr, 1};
    CALL(aclrtLaunchKernelWithConfig(function, 1, stream, &config, args, nullptr));
    CALL(HcommThreadNotifyWaitOnThread(cpuThread, 0, TIMEOUT_S));
    return HCCL_SUCCESS;
}

HcclResult StandinSend(void *buffer, uint64_t count, HcclDataType type, uint32_t to, HcclComm comm, aclrtStream stream)
{
    if (type != HCCL_DATA_TYPE_FP32) {
        return HCCL_E_NOT_SUPPORT;
    }
    Param param = {};
    param.buffer = buffer;
    param.bytes = count * sizeof(float);
    param.isSend = 1;
    return Run(param, to, comm, stream);
}

HcclResult StandinReceive(void *buffer, uint64_t count, HcclDataType type, uint32_t from, HcclComm comm, aclrtStream stream)
{
    if (type != HCCL_DATA_TYPE_FP32) {
        return HCCL_E_NOT_SUPPORT;
    }
    Param param = {};
    param.buffer = buffer;
    param.bytes = count * sizeof(float);
    return Run(param, from, comm, stream);
}
