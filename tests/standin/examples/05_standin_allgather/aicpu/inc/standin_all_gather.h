// The operator, as programs call it.

#ifndef STANDIN_ALL_GATHER_H
#define STANDIN_ALL_GATHER_H

#include "acl/acl_rt.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gathers `count` elements of each rank into `output` of each rank, in the order of the ranks.
HcclResult StandinAllGather(void *input, void *output, uint64_t count, HcclDataType type, HcclComm comm, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
