/* Types of channels between ranks: endpoints, links, memory. The simulator's own; the layout is that of the vendor's types. */

#ifndef HCOMM_SIM_HCOMM_ENDPOINT_H
#define HCOMM_SIM_HCOMM_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* First bytes of a structure that may grow. */
typedef struct CommAbiHeader {
    uint32_t version;
    uint32_t magicWord;
    /* Bytes of the whole structure. */
    uint32_t size;
    uint32_t reserved;
} CommAbiHeader;

/* How two ranks are linked. */
typedef enum CommProtocol {
    COMM_PROTOCOL_RESERVED = -1,
    COMM_PROTOCOL_HCCS = 0,
    COMM_PROTOCOL_ROCE = 1,
    COMM_PROTOCOL_PCIE = 2,
    COMM_PROTOCOL_SIO = 3,
    COMM_PROTOCOL_UB_CTP = 4,
    COMM_PROTOCOL_UBC_CTP = COMM_PROTOCOL_UB_CTP,
    COMM_PROTOCOL_UBC_TP = 5,
    COMM_PROTOCOL_UB_MEM = 6,
    COMM_PROTOCOL_UBOE = 7,
    COMM_PROTOCOL_HCCS_ONLY = 8,
    COMM_PROTOCOL_UB_RTP = 9,
    COMM_PROTOCOL_UBG = COMM_PROTOCOL_UB_RTP
} CommProtocol;

/* Kind of an address of an endpoint. */
typedef enum CommAddrType {
    COMM_ADDR_TYPE_RESERVED = -1,
    COMM_ADDR_TYPE_IP_V4 = 0,
    COMM_ADDR_TYPE_IP_V6 = 1,
    COMM_ADDR_TYPE_ID = 2,
    COMM_ADDR_TYPE_EID = 3
} CommAddrType;

/* Address of an endpoint: 36 bytes, of which `type` says what they are. */
typedef struct CommAddr {
    CommAddrType type;
    union {
        uint8_t raws[36];
        /* IPv4 in the first word, or IPv6, in network order. */
        uint32_t addr[4];
        uint32_t id;
        uint8_t eid[16];
    };
} CommAddr;

/* Where an endpoint is. */
typedef enum EndpointLocType {
    ENDPOINT_LOC_TYPE_RESERVED = -1,
    ENDPOINT_LOC_TYPE_DEVICE = 0,
    ENDPOINT_LOC_TYPE_HOST = 1
} EndpointLocType;

/* On a device. */
typedef struct EndpointLocDevice {
    uint32_t devPhyId;
    uint32_t superDevId;
    uint32_t serverIdx;
    uint32_t superPodIdx;
} EndpointLocDevice;

/* On a host. */
typedef struct EndpointLocHost {
    uint32_t id;
} EndpointLocHost;

/* Place of an endpoint: 60 bytes, of which `locType` says what they are. */
typedef struct EndpointLoc {
    EndpointLocType locType;
    union {
        uint8_t raws[60];
        EndpointLocDevice device;
        EndpointLocHost host;
    };
} EndpointLoc;

/* One end of a link. */
typedef struct EndpointDesc {
    CommProtocol protocol;
    CommAddr commAddr;
    EndpointLoc loc;
    uint8_t raws[52];
} EndpointDesc;

/* Kind of memory. */
typedef enum CommMemType {
    COMM_MEM_TYPE_INVALID = -1,
    COMM_MEM_TYPE_DEVICE = 0,
    COMM_MEM_TYPE_HOST = 1
} CommMemType;

/* A range of memory. */
typedef struct CommMem {
    CommMemType type;
    void *addr;
    uint64_t size;
} CommMem;

/* Sets `count` endpoints to "not set". 0, or 2 for null. */
static inline int32_t EndpointDescInit(EndpointDesc *endpoints, uint32_t count) {
    if (endpoints == NULL) {
        return count == 0 ? 0 : 2;
    }
    memset((void *)endpoints, 0xff, sizeof *endpoints * count);
    return 0;
}

#endif /* HCOMM_SIM_HCOMM_ENDPOINT_H */
