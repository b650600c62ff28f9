/* Layouts and numbers of the headers, as the vendor has them. Compiled as C11 and as C++17; there is nothing to run. */

#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_types.h"
#include "hccl/hcomm_primitives.h"
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
