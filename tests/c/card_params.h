/* Parameters of card_copy. */

#ifndef CARD_PARAMS_H
#define CARD_PARAMS_H

#include <stdint.h>

#include "hcomm/hcomm_platform.h"

struct CardParams {
    void *device; /* memory for the library's device */
    uint64_t device_size;
    const HcommThreadDescriptor *table;
    void *dst;
    const void *src;
    uint64_t len;
    uint32_t tail; /* what the doorbell took */
    int32_t code;  /* what the copy answered */
};

#endif /* CARD_PARAMS_H */
