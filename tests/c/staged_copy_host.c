/* Launches kernel staged_copy_c, or the one in Rust, and checks every byte that it has moved.
 *
 *   staged_copy_host DESCRIPTION KERNEL LEN BUFFER
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"
#include "staged_copy.h"

#define TRY(call)                                                                                 \
    do {                                                                                          \
        const int try_code = (int)(call);                                                         \
        if (try_code != 0) {                                                                      \
            const char *try_text = aclrtGetRecentErrMsg();                                        \
            printf("%s: %d\n%s\n", #call, try_code, try_text ? try_text : "");                    \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

/* Memory after a buffer, which must not be written. */
#define GUARD 64u
#define UNTOUCHED 0xee

static char *device_memory(const void *bytes, uint64_t len) {
    void *ptr;
    TRY(aclrtMalloc(&ptr, len, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(aclrtMemcpy(ptr, len, bytes, len, ACL_MEMCPY_HOST_TO_DEVICE));
    return (char *)ptr;
}

static unsigned char *bytes_of(const char *ptr, uint64_t len) {
    unsigned char *bytes = (unsigned char *)malloc(len);
    TRY(bytes == NULL);
    TRY(aclrtMemcpy(bytes, len, ptr, len, ACL_MEMCPY_DEVICE_TO_HOST));
    return bytes;
}

/* Threads, and the notifies that tie the kernel's work to the stream. */
static StagedCopyParams resources(HcclComm comm, aclrtStream stream, ThreadHandle *cpuThread, ThreadHandle *first) {
    StagedCopyParams params;
    memset(&params, 0, sizeof params);
    params.magic = STAGED_COPY_MAGIC;
    params.version = STAGED_COPY_VERSION;
    params.size = sizeof params;
    TRY(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, START + 1, &params.input));
    TRY(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 2, &params.output));
    TRY(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, cpuThread));
    TRY(HcclThreadExportToCommEngine(comm, 1, cpuThread, COMM_ENGINE_AICPU_TS, &params.cpuThread));
    TRY(HcclThreadExportToCommEngine(comm, 1, &params.input, COMM_ENGINE_CPU_TS, first));
    params.start = START;
    params.end = 0;
    return params;
}

/* The stream lets the kernel's work start when it has come to the launch, and continues when the work is done. */
static void launch(const char *description, const char *kernel, aclrtStream stream, const StagedCopyParams *params,
                   ThreadHandle cpuThread, ThreadHandle first) {
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    aclrtArgsHandle args;
    aclrtParamHandle place;
    StagedCopyParams bytes = *params;
    TRY(aclrtBinaryLoadFromFile(description, NULL, &binary));
    TRY(aclrtBinaryGetFunction(binary, kernel, &function));
    TRY(aclrtKernelArgsInit(function, &args));
    TRY(aclrtKernelArgsAppend(args, &bytes, sizeof bytes, &place));
    TRY(aclrtKernelArgsFinalize(args));
    TRY(HcommThreadNotifyRecordOnThread(cpuThread, first, START));
    TRY(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, NULL));
    TRY(HcommThreadNotifyWaitOnThread(cpuThread, 0, 1836));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtBinaryUnLoad(binary));
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: staged_copy_host DESCRIPTION KERNEL LEN BUFFER\n");
        return 2;
    }
    const uint64_t len = strtoull(argv[3], NULL, 0), cclBufSize = strtoull(argv[4], NULL, 0);
    const uint64_t most = (len > cclBufSize ? len : cclBufSize) + GUARD;
    int32_t index = 0;
    HcclComm comm;
    aclrtStream stream;
    ThreadHandle cpuThread, first;
    unsigned char *input = (unsigned char *)malloc(most), *untouched = (unsigned char *)malloc(most);
    TRY(input == NULL || untouched == NULL);
    memset(untouched, UNTOUCHED, most);
    for (uint64_t i = 0; i < most; i++) {
        input[i] = (unsigned char)(i * 31 + i / 251);
    }

    TRY(aclrtSetDevice(index));
    TRY(HcclCommInitAll(1, &index, &comm));
    TRY(aclrtCreateStream(&stream));
    StagedCopyParams params = resources(comm, stream, &cpuThread, &first);
    params.userIn = device_memory(input, most);
    params.userOut = device_memory(untouched, len + GUARD);
    params.cclBuf = device_memory(untouched, cclBufSize + GUARD);
    params.cclBufSize = cclBufSize;
    params.len = len;
    launch(argv[1], argv[2], stream, &params, cpuThread, first);

    unsigned char *output = bytes_of(params.userOut, len + GUARD), *buffer = bytes_of(params.cclBuf, cclBufSize + GUARD);
    TRY(memcmp(output, input, len));
    TRY(memcmp(output + len, untouched, GUARD));
    TRY(memcmp(buffer + cclBufSize, untouched, GUARD));
    uint32_t left = 0;
    for (uint64_t i = 0; i < cclBufSize; i++) {
        left = left * 16777619u ^ buffer[i];
    }
    printf("%llu bytes through %llu: equal, %08x left in the buffer\n", (unsigned long long)len,
           (unsigned long long)cclBufSize, (unsigned)left);

    free(output);
    free(buffer);
    free(input);
    free(untouched);
    TRY(aclrtFree(params.userIn));
    TRY(aclrtFree(params.userOut));
    TRY(aclrtFree(params.cclBuf));
    TRY(aclrtDestroyStream(stream));
    TRY(HcclCommDestroy(comm));
    TRY(aclrtResetDevice(index));
    return 0;
}
