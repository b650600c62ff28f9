/* Parameters of the kernels of copy_kernel.c, as host and kernel share them. */

#ifndef COPY_PARAMS_H
#define COPY_PARAMS_H

#include "hcomm/hcomm_res_defs.h"

typedef struct CopyParams {
    ThreadHandle thread; /* its notify 0 is the start notify */
    void *userIn;
    void *cclBuf;
    uint64_t len;           /* not for copy_256 */
    ThreadHandle cpuThread; /* thread of the stream of the launch; its notify 0 is the end notify */
} CopyParams;

#endif /* COPY_PARAMS_H */
