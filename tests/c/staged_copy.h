/* Parameters of kernel staged_copy_c, as host and kernel share them: byte by byte those of the kernel staged_copy in Rust. */

#ifndef STAGED_COPY_H
#define STAGED_COPY_H

#include "hcomm/hcomm_res_defs.h"

typedef struct StagedCopyParams {
    uint32_t magic, version;         /* STAGED_COPY_MAGIC, STAGED_COPY_VERSION */
    uint64_t size;                   /* bytes of the whole */
    ThreadHandle input;              /* copies into cclBuf; has notifies 0 to START */
    ThreadHandle output;             /* copies out of it; has notifies 0 and 1 */
    char *userIn, *userOut, *cclBuf; /* device memory */
    uint64_t cclBufSize, len;
    ThreadHandle cpuThread;          /* thread of the stream of the launch; its notify `end` is the end notify */
    uint32_t start, end;
} StagedCopyParams;

#define STAGED_COPY_MAGIC 0x50435453u /* "STCP" */
#define STAGED_COPY_VERSION 1u

/* Notifies of `input`: 0 and 1 say that a half of cclBuf is free again. */
#define DONE 2u  /* `output` is through */
#define START 3u /* start notify of the launch */
/* Notifies 0 and 1 of `output` say that a half of cclBuf is full. */

#endif /* STAGED_COPY_H */
