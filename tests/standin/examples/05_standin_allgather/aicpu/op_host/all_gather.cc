#include "standin_all_gather.h"

#include <cstdlib>
#include <iostream>

#include "acl/acl_rt.h"
#include "common.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"
#include "launch_asc.h"

#define HCCL_CALL(call)                                                              \
    do {                                                                             \
        const HcclResult ret = call;                                                 \
        if (ret != HCCL_SUCCESS) {                                                   \
            std::cerr << #call << " at line " << __LINE__ << ": " << ret << std::endl; \
            return ret;                                                              \
        }                                                                            \
    } while (0)

#define ACL_CALL(call)                                                               \
    do {                                                                             \
        const aclError ret = call;                                                   \
        if (ret != ACL_SUCCESS) {                                                    \
            std::cerr << #call << " at line " << __LINE__ << ": " << ret << std::endl; \
            return HCCL_E_RUNTIME;                                                   \
        }                                                                            \
    } while (0)

// The link to a rank that has protocol UB_CTP.
static HcclResult FindLink(HcclComm comm, uint32_t rank, uint32_t remote, HcclChannelDesc &desc)
{
    CommLink *links = nullptr;
    uint32_t linkNum = 0;
    HCCL_CALL(HcclRankGraphGetLinks(comm, 0, rank, remote, &links, &linkNum));
    for (uint32_t i = 0; i < linkNum; i++) {
        if (links[i].linkAttr.linkProtocol == COMM_PROTOCOL_UB_CTP) {
            desc.remoteRank = remote;
            desc.channelProtocol = links[i].linkAttr.linkProtocol;
            desc.localEndpoint = links[i].srcEndpointDesc;
            desc.remoteEndpoint = links[i].dstEndpointDesc;
            desc.notifyNum = CHANNEL_NOTIFIES;
            return HCCL_SUCCESS;
        }
    }
    return HCCL_E_NOT_FOUND;
}

static HcclResult AcquireChannels(HcclComm comm, const Param &param, Resources &resources)
{
    const uint32_t peers = param.rankSize - 1;
    if (peers == 0) {
        return HCCL_SUCCESS;
    }
    std::vector<HcclChannelDesc> descs(peers);
    HCCL_CALL(HcclChannelDescInit(descs.data(), peers));
    for (uint32_t i = 0; i < peers; i++) {
        HCCL_CALL(FindLink(comm, param.rank, i < param.rank ? i : i + 1, descs[i]));
    }
    std::vector<ChannelHandle> handles(peers);
    HCCL_CALL(HcclChannelAcquire(comm, COMM_ENGINE_AICPU_TS, descs.data(), peers, handles.data()));
    for (uint32_t i = 0; i < peers; i++) {
        ChannelInfo info = {descs[i].remoteRank, CHANNEL_NOTIFIES, handles[i], nullptr, 0};
        HCCL_CALL(HcclChannelGetHcclBuffer(comm, info.handle, &info.buffer, &info.size));
        resources.channels.push_back(info);
    }
    return HCCL_SUCCESS;
}

// The first call of a communicator makes the resources, later ones find them.
static HcclResult PrepareResources(HcclComm comm, Param &param, ThreadHandle &start, uint32_t &startNotify)
{
    struct HostContext {
        ThreadHandle start;
        uint32_t startNotify;
    };
    void *host = nullptr;
    uint64_t size = 0;
    if (HcclEngineCtxGet(comm, param.tag, COMM_ENGINE_AICPU_TS, &param.context, &param.contextSize) == HCCL_SUCCESS) {
        HCCL_CALL(HcclEngineCtxGet(comm, param.tag, COMM_ENGINE_CPU_TS, &host, &size));
        start = static_cast<HostContext *>(host)->start;
        startNotify = static_cast<HostContext *>(host)->startNotify;
        return HCCL_SUCCESS;
    }
    Resources resources;
    HCCL_CALL(HcclGetHcclBuffer(comm, &resources.buffer, &resources.size));
    const uint32_t threadNum = param.rankSize > 1 ? param.rankSize - 1 : 1;
    resources.threads.resize(threadNum);
    HCCL_CALL(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, threadNum, threadNum, resources.threads.data()));
    resources.startNotify = threadNum - 1;
    HCCL_CALL(AcquireChannels(comm, param, resources));
    HCCL_CALL(HcclThreadExportToCommEngine(comm, 1, resources.threads.data(), COMM_ENGINE_CPU_TS, &start));
    startNotify = resources.startNotify;
    const std::string bytes = resources.Serialize();
    param.contextSize = bytes.size();
    HCCL_CALL(HcclEngineCtxCreate(comm, param.tag, COMM_ENGINE_AICPU_TS, bytes.size(), &param.context));
    HCCL_CALL(HcclEngineCtxCopy(comm, COMM_ENGINE_AICPU_TS, param.tag, bytes.data(), bytes.size(), 0));
    HCCL_CALL(HcclEngineCtxCreate(comm, param.tag, COMM_ENGINE_CPU_TS, sizeof(HostContext), &host));
    *static_cast<HostContext *>(host) = {start, startNotify};
    return HCCL_SUCCESS;
}

static HcclResult LoadKernel(aclrtBinHandle &handle)
{
    static thread_local aclrtBinHandle loaded = nullptr;
    if (loaded == nullptr) {
        const char *home = getenv("ASCEND_HOME_PATH");
        const std::string path = std::string(home == nullptr ? "/usr/local/Ascend/cann" : home) +
                                 "/opp/vendors/cust/aicpu/config/libstandin_all_gather_kernel.json";
        aclrtBinaryLoadOption option = {};
        option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
        option.value.cpuKernelMode = 0;
        aclrtBinaryLoadOptions options = {&option, 1};
        ACL_CALL(aclrtBinaryLoadFromFile(path.c_str(), &options, &loaded));
    }
    handle = loaded;
    return HCCL_SUCCESS;
}

static HcclResult Launch(const Param &param, aclrtStream stream)
{
    aclrtBinHandle binary = nullptr;
    aclrtFuncHandle function = nullptr;
    aclrtArgsHandle args = nullptr;
    aclrtParamHandle appended = nullptr;
    HCCL_CALL(LoadKernel(binary));
    ACL_CALL(aclrtBinaryGetFunction(binary, "StandinLaunchAllGather", &function));
    ACL_CALL(aclrtKernelArgsInit(function, &args));
    ACL_CALL(aclrtKernelArgsAppend(args, const_cast<Param *>(&param), sizeof param, &appended));
    ACL_CALL(aclrtKernelArgsFinalize(args));
    aclrtLaunchKernelAttr attr = {};
    attr.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
    attr.value.timeout = TIMEOUT_S;
    aclrtLaunchKernelCfg config = {&attr, 1};
    ACL_CALL(aclrtLaunchKernelWithConfig(function, 1, stream, &config, args, nullptr));
    return HCCL_SUCCESS;
}

HcclResult StandinAllGather(void *input, void *output, uint64_t count, HcclDataType type, HcclComm comm, aclrtStream stream)
{
    const std::string soc = aclrtGetSocName();
    if (soc.find("Ascend950") == std::string::npos || type != HCCL_DATA_TYPE_FP32) {
        return HCCL_E_NOT_SUPPORT;
    }
    Param param = {};
    HCCL_CALL(HcclGetCommName(comm, param.commName));
    HCCL_CALL(HcclGetRankId(comm, &param.rank));
    HCCL_CALL(HcclGetRankSize(comm, &param.rankSize));
    (void)sprintf_s(param.tag, sizeof param.tag, "%s", "standin_all_gather");
    param.input = input;
    param.output = output;
    param.bytes = count * sizeof(float);
    ThreadHandle cpuThread = 0;
    HCCL_CALL(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &cpuThread));
    HCCL_CALL(HcclThreadExportToCommEngine(comm, 1, &cpuThread, COMM_ENGINE_AICPU_TS, &param.cpuThread));
    ThreadHandle start = 0;
    uint32_t startNotify = 0;
    HCCL_CALL(PrepareResources(comm, param, start, startNotify));
    HCCL_CALL(static_cast<HcclResult>(HcommThreadNotifyRecordOnThread(cpuThread, start, startNotify)));
    const char *asc = getenv("HCCL_CUSTOM_KERNEL_LAUNCH_ASC");
    if (asc != nullptr && std::string(asc) == "1") {
        HCCL_CALL(LaunchAsc(param, stream));
    } else {
        HCCL_CALL(Launch(param, stream));
    }
    HCCL_CALL(static_cast<HcclResult>(HcommThreadNotifyWaitOnThread(cpuThread, 0, TIMEOUT_S)));
    return HCCL_SUCCESS;
}
