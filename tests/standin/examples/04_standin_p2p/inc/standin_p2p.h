// The operators, as programs call them.

#ifndef STANDIN_P2P_H
#define STANDIN_P2P_H

#include "acl/acl_rt.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

HcclResult StandinSend(void *buffer, uint64_t count, HcclDataType type, uint32_t to, HcclComm comm, aclrtStream stream);

HcclResult StandinReceive(void *buffer, uint64_t count, HcclDataType type, uint32_t from, HcclComm comm,
                          aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
