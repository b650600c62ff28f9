/* Parameters of the kernels of copy_kernel.c, as host and kernel share them. */

#ifndef COPY_PARAMS_H
#define COPY_PARAMS_H

#include "hcomm/hcomm_res_defs.h"

typedef struct CopyParams {
    ThreadHandle thread;
    void *userIn;
    void *cclBuf;
    uint64_t len; /* copy_len and copy_cxx alone */
} CopyParams;

#endif /* COPY_PARAMS_H */
