/* Layouts and numbers of the headers, as the vendor has them. Compiled as C11 and as C++17; there is nothing to run. */

#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_types.h"
#include "hccl/hccl_channel.h"
#include "hccl/hccl_launch.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "hcomm/hcomm_kernel.h"
#include "hcomm/hcomm_primitives.h"

#ifdef __cplusplus
#define SAME(a, b) static_assert((long)(a) == (long)(b), #a)
#else
#define SAME(a, b) _Static_assert((long)(a) == (long)(b), #a)
#endif

SAME(sizeof(aclrtMallocAttrValue), 8);
SAME(sizeof(aclrtMallocAttribute), 12);
SAME(offsetof(aclrtMallocAttribute, attr), 0);
SAME(offsetof(aclrtMallocAttribute, value), 4);
SAME(sizeof(aclrtMallocConfig), 16);
SAME(offsetof(aclrtMallocConfig, attrs), 0);
SAME(offsetof(aclrtMallocConfig, numAttrs), 8);
SAME(sizeof(aclrtBinaryLoadOption), 20);
SAME(offsetof(aclrtBinaryLoadOption, type), 0);
SAME(offsetof(aclrtBinaryLoadOption, value), 4);
SAME(sizeof(aclrtBinaryLoadOptions), 16);
SAME(offsetof(aclrtBinaryLoadOptions, numOpt), 8);
SAME(sizeof(aclrtLaunchKernelAttr), 20);
SAME(offsetof(aclrtLaunchKernelAttr, id), 0);
SAME(offsetof(aclrtLaunchKernelAttr, value), 4);
SAME(sizeof(aclrtLaunchKernelCfg), 16);
SAME(offsetof(aclrtLaunchKernelCfg, numAttrs), 8);
SAME(sizeof(HcclRootInfo), 4108);
SAME(sizeof(ThreadHandle), 8);
SAME(sizeof(aclError), 4);
SAME(sizeof(HcclResult), 4);
SAME(sizeof(CommEngine), 4);
SAME(sizeof(aclrtMemMallocPolicy), 4);
SAME(sizeof(HcommKernelEntry), 16);
SAME(offsetof(HcommKernelEntry, function), 8);

SAME(ACL_MEM_MALLOC_HUGE_FIRST, 0);
SAME(ACL_MEM_MALLOC_HUGE1G_ONLY_P2P, 7);
SAME(ACL_MEM_TYPE_LOW_BAND_WIDTH, 0x0100);
SAME(ACL_MEM_TYPE_HIGH_BAND_WIDTH, 0x1000);
SAME(ACL_MEM_ACCESS_USER_SPACE_READONLY, 0x100000);
SAME(ACL_RT_MEM_ATTR_MODULE_ID, 1);
SAME(ACL_RT_MEM_ATTR_VA_FLAG, 3);
SAME(ACL_MEMCPY_HOST_TO_DEVICE, 1);
SAME(ACL_MEMCPY_DEVICE_TO_DEVICE, 3);
SAME(ACL_MEMCPY_INTER_DEVICE_TO_DEVICE, 7);
SAME(ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE, 3);
SAME(ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT, 7);
SAME(COMM_ENGINE_RESERVED, -1);
SAME(COMM_ENGINE_CPU_TS, 1);
SAME(COMM_ENGINE_AICPU_TS, 3);
SAME(COMM_ENGINE_CCU, 5);
SAME(HCCL_SUCCESS, 0);
SAME(HCCL_E_PTR, 2);
SAME(HCCL_E_NOT_SUPPORT, 5);
SAME(HCCL_E_NOT_FOUND, 6);
SAME(HCCL_E_OOM, 24);
SAME(HCCL_E_RESERVED, 1042);
SAME(HCOMM_DATA_TYPE_BFP16, 11);
SAME(HCOMM_DATA_TYPE_FP8E8M0, 17);
SAME(HCOMM_REDUCE_MIN, 3);
SAME(HCCL, 3);
SAME(ACL_HBM_MEM, 1);
SAME(ACL_HBM_MEM_P2P_NORMAL, 9);
SAME(ACL_RT_THREAD_LEVEL, 0);

/* Every number of the types that programs of collectives pass on. */
SAME(HCCL_DATA_TYPE_INT8, 0);
SAME(HCCL_DATA_TYPE_INT16, 1);
SAME(HCCL_DATA_TYPE_INT32, 2);
SAME(HCCL_DATA_TYPE_FP16, 3);
SAME(HCCL_DATA_TYPE_FP32, 4);
SAME(HCCL_DATA_TYPE_INT64, 5);
SAME(HCCL_DATA_TYPE_UINT64, 6);
SAME(HCCL_DATA_TYPE_UINT8, 7);
SAME(HCCL_DATA_TYPE_UINT16, 8);
SAME(HCCL_DATA_TYPE_UINT32, 9);
SAME(HCCL_DATA_TYPE_FP64, 10);
SAME(HCCL_DATA_TYPE_BFP16, 11);
SAME(HCCL_DATA_TYPE_INT128, 12);
SAME(HCCL_DATA_TYPE_HIF8, 14);
SAME(HCCL_DATA_TYPE_FP8E4M3, 15);
SAME(HCCL_DATA_TYPE_FP8E5M2, 16);
SAME(HCCL_DATA_TYPE_FP8E8M0, 17);
SAME(HCCL_DATA_TYPE_RESERVED, 255);
SAME(HCCL_REDUCE_SUM, 0);
SAME(HCCL_REDUCE_PROD, 1);
SAME(HCCL_REDUCE_MAX, 2);
SAME(HCCL_REDUCE_MIN, 3);
SAME(HCCL_REDUCE_RESERVED, 255);
SAME(HCCL_CMD_INVALID, 0);
SAME(HCCL_CMD_BROADCAST, 1);
SAME(HCCL_CMD_ALLREDUCE, 2);
SAME(HCCL_CMD_REDUCE, 3);
SAME(HCCL_CMD_SEND, 4);
SAME(HCCL_CMD_RECEIVE, 5);
SAME(HCCL_CMD_ALLGATHER, 6);
SAME(HCCL_CMD_REDUCE_SCATTER, 7);
SAME(HCCL_CMD_ALLTOALLV, 8);
SAME(HCCL_CMD_ALLTOALLVC, 9);
SAME(HCCL_CMD_ALLTOALL, 10);
SAME(HCCL_CMD_GATHER, 11);
SAME(HCCL_CMD_SCATTER, 12);
SAME(HCCL_CMD_BATCH_SEND_RECV, 13);
SAME(HCCL_CMD_BATCH_PUT, 14);
SAME(HCCL_CMD_BATCH_GET, 15);
SAME(HCCL_CMD_ALLGATHER_V, 16);
SAME(HCCL_CMD_REDUCE_SCATTER_V, 17);
SAME(HCCL_CMD_BATCH_WRITE, 18);
SAME(HCCL_CMD_HALF_ALLTOALLV, 20);
SAME(HCCL_CMD_ALL, 21);
SAME(HCCL_CMD_FINALIZE, 100);
SAME(HCCL_CMD_INTER_GROUP_SYNC, 101);
SAME(HCCL_CMD_INIT, 102);
SAME(HCCL_CMD_BARRIER, 103);
SAME(HCCL_CMD_MAX, 104);

SAME(sizeof(HcclDataType), 4);
SAME(sizeof(HcclReduceOp), 4);
SAME(sizeof(HcclCMDType), 4);
SAME(sizeof(ChannelHandle), 8);
SAME(sizeof(HcclCommConfig), 2248);
SAME(offsetof(HcclCommConfig, hcclBufferSize), 24);
SAME(offsetof(HcclCommConfig, hcclDeterministic), 28);
SAME(offsetof(HcclCommConfig, hcclCommName), 32);
SAME(offsetof(HcclCommConfig, hcclUdi), 160);
SAME(offsetof(HcclCommConfig, hcclOpExpansionMode), 288);
SAME(offsetof(HcclCommConfig, hcclRdmaTrafficClass), 292);
SAME(offsetof(HcclCommConfig, hcclRdmaServiceLevel), 296);
SAME(offsetof(HcclCommConfig, hcclWorldRankID), 300);
SAME(offsetof(HcclCommConfig, hcclJobID), 304);
SAME(offsetof(HcclCommConfig, aclGraphZeroCopyEnable), 312);
SAME(offsetof(HcclCommConfig, hcclExecTimeOut), 316);
SAME(offsetof(HcclCommConfig, hcclAlgo), 320);
SAME(offsetof(HcclCommConfig, hcclRetryEnable), 1920);
SAME(offsetof(HcclCommConfig, hcclRetryParams), 1970);
SAME(offsetof(HcclCommConfig, hcclBufferName), 2098);
SAME(offsetof(HcclCommConfig, hcclQos), 2228);
SAME(offsetof(HcclCommConfig, hcclSymWinMaxMemSizePerRank), 2232);
SAME(offsetof(HcclCommConfig, hcclChannelSqDepth), 2240);

SAME(sizeof(CommAbiHeader), 16);
SAME(sizeof(CommAddr), 40);
SAME(offsetof(CommAddr, eid), 4);
SAME(sizeof(EndpointLoc), 64);
SAME(offsetof(EndpointLoc, device.superPodIdx), 16);
SAME(sizeof(EndpointDesc), 160);
SAME(offsetof(EndpointDesc, loc), 44);
SAME(offsetof(EndpointDesc, raws), 108);
SAME(sizeof(CommMem), 24);
SAME(offsetof(CommMem, size), 16);
SAME(sizeof(HcclChannelDesc), 496);
SAME(offsetof(HcclChannelDesc, channelProtocol), 20);
SAME(offsetof(HcclChannelDesc, localEndpoint), 24);
SAME(offsetof(HcclChannelDesc, remoteEndpoint), 184);
SAME(offsetof(HcclChannelDesc, notifyNum), 344);
SAME(offsetof(HcclChannelDesc, memHandles), 352);
SAME(offsetof(HcclChannelDesc, roceAttr.sl), 377);
SAME(offsetof(HcclChannelDesc, ubMemAttr.pathMode), 364);
SAME(sizeof(CommLink), 464);
SAME(offsetof(CommLink, linkAttr.linkProtocol), 336);
SAME(offsetof(CommLink, linkAttr.hop), 340);
SAME(sizeof(ThreadConfig), 32);
SAME(offsetof(ThreadConfig, notifyNumPerThread), 16);
SAME(sizeof(HcclKernelFuncInfo), 528);
SAME(offsetof(HcclKernelFuncInfo, argSize), 520);
SAME(sizeof(HcclKernelLaunchCfg), 128);
SAME(sizeof(HcclOpDesc), 360);
SAME(sizeof(CommProtocol), 4);
SAME(COMM_PROTOCOL_UB_CTP, 4);
SAME(COMM_PROTOCOL_UBC_CTP, 4);
SAME(COMM_PROTOCOL_UB_RTP, 9);
SAME(COMM_ADDR_TYPE_EID, 3);
SAME(ENDPOINT_LOC_TYPE_HOST, 1);
SAME(COMM_MEM_TYPE_HOST, 1);
SAME(THREAD_TYPE_TS, 0);
SAME(THREAD_RES_TYPE_STREAM, 0);
SAME(ACL_STREAM_DEVICE_USE_ONLY, 0x20);
SAME(ACL_EVENT_TIME_LINE, 8);
SAME(ACL_EVENT_RECORDED_STATUS_COMPLETE, 1);

/* Programs print a u64 by %llu. */
#ifdef __cplusplus
static_assert(static_cast<unsigned long long *>(static_cast<u64 *>(nullptr)) == nullptr, "u64");
#else
SAME(_Generic((u64)0, unsigned long long: 1, default: 0), 1);
#endif
