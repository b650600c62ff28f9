/* The kernel's half of the control pair: what a kernel queues between the two calls is one batch that begins when the
 * stream has come to the launch, and that the stream waits for. For C11 and C++17, with and without a library. */

#ifndef IN_STEP_H
#define IN_STEP_H

#include "hcomm/hcomm_primitives.h"

/* Limit of the waits, in seconds. */
#define CONTROL_TIMEOUT 1836

/* Starts a batch, and in it the wait for start notify 0 of `thread`. */
static inline int32_t begin_in_step(ThreadHandle thread) {
    const int32_t code = HcommBatchModeStart(0);
    return code != 0 ? code : HcommThreadNotifyWaitOnThread(thread, 0, CONTROL_TIMEOUT);
}

/* Records end notify 0 of `cpuThread` behind everything on `thread`, and ends the batch. `code` is that of the calls in
 * between; the first one that failed is the answer. */
static inline int32_t end_in_step(ThreadHandle thread, ThreadHandle cpuThread, int32_t code) {
    const int32_t record = code != 0 ? code : HcommThreadNotifyRecordOnThread(thread, cpuThread, 0);
    const int32_t end = HcommBatchModeEnd(0);
    return record != 0 ? record : end;
}

#endif /* IN_STEP_H */
