/* Two threads of the host, each with a device of its own, launch at the same time; and many launches take no more memory
 * than few. C11 and C++17.
 *
 *   many DESCRIPTION LAUNCHES
 */

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "acl/acl.h"
#include "check.h"
#include "copy_params.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "launch_in_step.h"

typedef struct Work {
    int32_t device;
    const char *description;
    int launches;
} Work;

/* Pages of the process that are in memory. */
static long resident(void) {
    long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK_TRUE(file != NULL);
    CHECK(fscanf(file, "%ld %ld", &total, &pages), 2);
    fclose(file);
    return pages;
}

static void *run(void *argument) {
    const Work *work = (const Work *)argument;
    enum { LEN = 100 };
    int32_t device = work->device;
    HcclComm comm;
    CopyParams param;
    aclrtStream stream;
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    unsigned char bytes[LEN], found[LEN];
    memset(&param, 0, sizeof param);
    CHECK(aclrtSetDevice(device), ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 1, &param.thread), HCCL_SUCCESS);
    CHECK(aclrtMalloc(&param.userIn, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMalloc(&param.cclBuf, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(aclrtBinaryLoadFromFile(work->description, NULL, &binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &function), ACL_SUCCESS);
    param.len = LEN;
    /* The first quarter fills what is kept of old launches, and the rings go round once. */
    long last = 0, least_growth = LONG_MAX;
    int quarter = 0;
    for (int i = 0; i < work->launches; i++) {
        memset(bytes, i + 3 * device, LEN);
        CHECK(aclrtMemcpy(param.userIn, LEN, bytes, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
        aclrtArgsHandle args;
        aclrtParamHandle place;
        /* As operators do: they acquire the thread of the stream for each call. */
        const ControlPair pair = control_pair(comm, stream, param.thread);
        param.cpuThread = pair.cpuThreadOnAicpu;
        CHECK(aclrtKernelArgsInit(function, &args), ACL_SUCCESS);
        CHECK(aclrtKernelArgsAppend(args, &param, sizeof param, &place), ACL_SUCCESS);
        CHECK(aclrtKernelArgsFinalize(args), ACL_SUCCESS);
        record_start(&pair);
        CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, NULL), ACL_SUCCESS);
        wait_for_end(&pair);
        CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        CHECK(aclrtMemcpy(found, LEN, param.cclBuf, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
        CHECK(memcmp(found, bytes, LEN), 0);
        if (i + 1 == work->launches / 4 * (quarter + 1)) {
            const long now = resident();
            if (quarter != 0 && now - last < least_growth) {
                least_growth = now - last;
            }
            last = now;
            quarter++;
        }
    }
    /* A leak grows in each quarter. What a busy machine makes grow, such as queues of a slow thread, does so once. */
    CHECK(quarter, 4);
    if (least_growth > 64) {
        fprintf(stderr, "%ld pages more in each of 3 times %d launches\n", least_growth, work->launches / 4);
        exit(1);
    }
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK(aclrtResetDevice(device), ACL_SUCCESS);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    Work works[2] = {{0, argv[1], atoi(argv[2])}, {1, argv[1], atoi(argv[2])}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, run, &works[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL), 0);
    }
    printf("%d launches on each of 2 devices\n", works[0].launches);
    return 0;
}
