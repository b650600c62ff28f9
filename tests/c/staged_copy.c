/* Kernel staged_copy in C, the worked example of docs/writing-a-kernel.md: copies from userIn to userOut by way of cclBuf. While
 * one thread copies a half of the buffer out, the other fills the other half. */

#include "hccl/hccl_types.h"
#include "hcomm/hcomm_kernel.h"
#include "staged_copy.h"

#define TRY(call)                                                                                 \
    do {                                                                                          \
        const int32_t try_code = (call);                                                          \
        if (try_code != 0) {                                                                      \
            return try_code;                                                                      \
        }                                                                                         \
    } while (0)

/* Halves start at a multiple of this many bytes, where the buffer is large enough. */
#define ALIGN 64u

static int32_t wait(ThreadHandle thread, uint32_t notify) {
    return HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread, notify);
}

static int32_t record(ThreadHandle thread, ThreadHandle to, uint32_t notify) {
    return HcommThreadNotifyRecordOnThread(thread, to, notify);
}

static int32_t copy_pieces(const StagedCopyParams *p) {
    if (p->len == 0) {
        return HCCL_SUCCESS;
    }
    /* A buffer of one byte has no halves. */
    const uint64_t halves = p->cclBufSize < 2 ? p->cclBufSize : 2;
    const uint64_t half = p->cclBufSize / halves;
    const uint64_t piece = half > ALIGN ? half - half % ALIGN : half;
    const uint64_t pieces = p->len / piece + (p->len % piece != 0);
    for (uint64_t i = 0; i < pieces; i++) {
        const uint64_t offset = i * piece, left = p->len - offset, len = left < piece ? left : piece;
        const uint32_t notify = (uint32_t)(i % halves);
        char *buffer = p->cclBuf + notify * piece;
        if (i >= halves) {
            TRY(wait(p->input, notify));
        }
        TRY(HcommLocalCopyOnThread(p->input, buffer, p->userIn + offset, len));
        TRY(record(p->input, p->output, notify));

        TRY(wait(p->output, notify));
        TRY(HcommLocalCopyOnThread(p->output, p->userOut + offset, buffer, len));
        /* A record without a wait would stay set and release the next launch too early. */
        if (i + halves < pieces) {
            TRY(record(p->output, p->input, notify));
        }
    }
    TRY(record(p->output, p->input, DONE));
    return wait(p->input, DONE);
}

/* The work between start notify and end notify. */
static int32_t work_in_step(const StagedCopyParams *p) {
    TRY(wait(p->input, p->start));
    TRY(copy_pieces(p));
    return record(p->input, p->cpuThread, p->end);
}

HCOMM_KERNEL(staged_copy_c) {
    const StagedCopyParams *p = (const StagedCopyParams *)args;
    if (p == 0) {
        return HCCL_E_PTR;
    }
    if (p->magic != STAGED_COPY_MAGIC || p->version != STAGED_COPY_VERSION || p->size != sizeof *p) {
        return HCCL_E_PARA;
    }
    if (p->len > 0 && p->cclBufSize == 0) {
        return HCCL_E_PARA;
    }
    const int32_t started = HcommBatchModeStart("staged_copy_c");
    if (started != 0) {
        return (uint32_t)started;
    }
    const int32_t worked = work_in_step(p);
    const int32_t ended = HcommBatchModeEnd("staged_copy_c");
    return (uint32_t)(worked != 0 ? worked : ended);
}
