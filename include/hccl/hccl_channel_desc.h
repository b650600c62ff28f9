/* What a channel is made from. The simulator's own; the layout is that of the vendor's type. */

#ifndef HCOMM_SIM_HCCL_CHANNEL_DESC_H
#define HCOMM_SIM_HCCL_CHANNEL_DESC_H

#include "../hcomm/hcomm_endpoint.h"
#include "../securec.h"
#include "hccl_types.h"

/* Memory that HcclCommMemReg has made known. */
typedef void *HcclMemHandle;

#define HCCL_CHANNEL_MAGIC_WORD 0x0f0f0f0fu
#define HCCL_CHANNEL_VERSION 1u

/* A channel to be made: HcclChannelDescInit sets all of it to "not set". */
typedef struct HcclChannelDesc {
    CommAbiHeader header;
    uint32_t remoteRank;
    CommProtocol channelProtocol;
    EndpointDesc localEndpoint;
    EndpointDesc remoteEndpoint;
    /* Notifies of each side, at most 64. */
    uint32_t notifyNum;
    HcclMemHandle *memHandles;
    uint32_t memHandleNum;
    union {
        uint8_t raws[128];
        struct {
            uint32_t queueNum;
            uint32_t retryCnt;
            uint32_t retryInterval;
            uint8_t tc;
            uint8_t sl;
        } roceAttr;
        struct {
            uint8_t pathMode;
        } ubMemAttr;
    };
} HcclChannelDesc;

/* Sets `count` descriptions to "not set", with 0 notifies and no memory. HCCL_E_PTR for null, unless there are 0. */
static inline HcclResult HcclChannelDescInit(HcclChannelDesc *descs, uint32_t count) {
    const CommAbiHeader header = {HCCL_CHANNEL_VERSION, HCCL_CHANNEL_MAGIC_WORD, (uint32_t)sizeof(HcclChannelDesc), 0};
    uint32_t at;
    if (count == 0) {
        return HCCL_SUCCESS;
    }
    if (descs == NULL) {
        return HCCL_E_PTR;
    }
    memset((void *)descs, 0xff, sizeof *descs * count);
    for (at = 0; at < count; at++) {
        descs[at].header = header;
        descs[at].notifyNum = 0;
        descs[at].memHandles = NULL;
        descs[at].memHandleNum = 0;
    }
    return HCCL_SUCCESS;
}

#endif /* HCOMM_SIM_HCCL_CHANNEL_DESC_H */
