/* Parameters of the kernel gather_four: an all-gather of four ranks on one device, whose buffers stand for the ranks, with one
 * error on request. */

#ifndef GATHER_H
#define GATHER_H

#include "hcomm/hcomm_res_defs.h"

enum { WORKERS = 4 };

typedef struct GatherParams {
    uint32_t bug;
    uint32_t reserved;
    ThreadHandle thread[WORKERS]; /* thread[0] is the main one */
    ThreadHandle cpuThread;
    char *send[WORKERS], *recv, *ccl, *sum;
    uint32_t *flag;
    uint64_t len;
} GatherParams;

/* Notifies of the main thread: 0 start, 1 to 3 phase 1 of a worker is done, 4 to 6 phase 2. Of a worker: 0 and 1, begin of a
 * phase. */
enum { START = 0, MAIN_NOTIFIES = 7 };

enum {
    NO_BUG,
    NO_BARRIER,       /* nothing between the phases */
    NO_BEGIN,         /* worker 3 does not wait for phase 2 */
    BARRIER_REFUSED,  /* record and wait of worker 3 have an index that is too large, and their codes are ignored */
    NEVER_WRITTEN,    /* what rank 3 sends was never written */
    NEVER_SET,        /* the accumulator of a sum was never set */
    FREED,            /* the result is freed before the launch, and something else is allocated */
    FREED_LATE,       /* it is freed before the synchronise, when all has run */
    READ_EARLY,       /* the host reads it before the synchronise, when all has run */
    REFUSED,          /* a copy to null, whose code is ignored */
    NOT_STARTED,      /* worker 3 does not wait for the start */
    NO_RECORD,        /* worker 3 does not record that phase 2 is done */
    NO_WAIT,          /* nothing waits for that record */
    NOT_JOINED,       /* neither */
    RECORD_TOO_MANY,  /* a worker records once more */
};

#endif /* GATHER_H */
