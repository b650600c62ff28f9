/* Links between ranks. The simulator's own; the layout is that of the vendor's type. */

#ifndef HCOMM_SIM_HCCL_LINK_H
#define HCOMM_SIM_HCCL_LINK_H

#include "../hcomm/hcomm_endpoint.h"
#include "hccl_types.h"

#define COMM_LINK_MAGIC_WORD 0x0f0e0f0fu
#define COMM_LINK_VERSION 1u

/* How the ranks of a layer are linked. */
typedef enum CommTopo {
    COMM_TOPO_RESERVED = -1,
    COMM_TOPO_CLOS = 0,
    COMM_TOPO_1DMESH = 1,
    COMM_TOPO_910_93 = 2,
    COMM_TOPO_310P = 3,
    COMM_TOPO_A2AXSERVER = 4,
    COMM_TOPO_CUSTOM = 5
} CommTopo;

/* What HcclRankGraphGetEndpointInfo gives. */
typedef enum EndpointAttr {
    ENDPOINT_ATTR_INVALID = -1,
    ENDPOINT_ATTR_BW_COEFF = 0,
    ENDPOINT_ATTR_DIE_ID = 1,
    ENDPOINT_ATTR_LOCATION = 2
} EndpointAttr;

/* What a link is. */
typedef struct CommLinkAttr {
    CommProtocol linkProtocol;
    /* Number of links one after the other. */
    uint8_t hop;
    uint8_t reserved[123];
} CommLinkAttr;

/* A link between two ranks. */
typedef struct CommLink {
    CommAbiHeader header;
    EndpointDesc srcEndpointDesc;
    EndpointDesc dstEndpointDesc;
    CommLinkAttr linkAttr;
} CommLink;

/* Sets `count` links to "not set", with one hop. HCCL_E_PTR for null, unless there are 0. */
static inline HcclResult CommLinkInit(CommLink *links, uint32_t count) {
    const CommAbiHeader header = {COMM_LINK_VERSION, COMM_LINK_MAGIC_WORD, (uint32_t)sizeof(CommLink), 0};
    uint32_t at;
    if (count == 0) {
        return HCCL_SUCCESS;
    }
    if (links == NULL) {
        return HCCL_E_PTR;
    }
    memset((void *)links, 0xff, sizeof *links * count);
    for (at = 0; at < count; at++) {
        links[at].header = header;
        links[at].linkAttr.hop = 1;
    }
    return HCCL_SUCCESS;
}

#endif /* HCOMM_SIM_HCCL_LINK_H */
