/* Parameters of the kernels of control_kernel.c, as host and kernel share them. */

#ifndef CONTROL_PARAMS_H
#define CONTROL_PARAMS_H

#include "hcomm/hcomm_res_defs.h"

typedef struct ControlParams {
    ThreadHandle threads[2]; /* notify 0 of the first is the start notify; notify 1 of each is for the other */
    ThreadHandle cpuThread;  /* thread of the stream of the launch; its notify 0 is the end notify */
    unsigned char *src;      /* 2 * len bytes */
    unsigned char *dst;      /* len bytes */
    uint64_t len;
    uint64_t startId;        /* notifies of aclrtCreateNotify, for `by_notifies` alone */
    uint64_t endId;
    volatile uint32_t *done; /* device memory: the kernel sets it when it has queued everything; may be null */
    const char *commName;    /* device memory: name of the communicator, for `every_call` alone */
} ControlParams;

#endif /* CONTROL_PARAMS_H */
