/* gather DESCRIPTION BUG ROUNDS: an all-gather of four ranks on four threads, ROUNDS times, each on a new device. Prints a line for
 * each call that returns an error, with its text, and "equal" for each round whose bytes are right. C11 and C++17. */

#include <sched.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "check.h"
#include "gather.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "launch_in_step.h"

enum { LEN = 1000, ALL = LEN * WORKERS };

/* Whether a call returned an error that was not told before; prints it. */
static int found(int32_t code) {
    if (code == 0) {
        return 0;
    }
    const char *text = aclrtGetRecentErrMsg();
    text = text ? text : "(no text)";
    /* A device that has failed says so again and again. */
    if (strstr(text, "device already failed") != NULL) {
        return 0;
    }
    printf("%d ", code);
    for (const char *c = text; *c; c++) {
        putchar(*c == '\n' ? ' ' : *c);
    }
    putchar('\n');
    return 1;
}

static char *allocate(uint64_t len) {
    void *data;
    CHECK(aclrtMalloc(&data, len, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    return (char *)data;
}

static unsigned char byte_of(unsigned rank, unsigned i) { return (unsigned char)(rank * 37 + i * 11 + i / 253); }

static void wait_until_run(const GatherParams *p) {
    uint32_t flag = 0;
    for (const time_t begun = time(NULL); flag == 0 && time(NULL) - begun < 60;) {
        (void)sched_yield();
        CHECK(aclrtMemcpy(&flag, sizeof flag, p->flag, sizeof flag, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    }
    CHECK(flag, 1);
}

static void gather_once(const char *description, uint32_t bug) {
    static unsigned char bytes[ALL];
    int32_t device = 0;
    HcclComm comm;
    aclrtStream stream;
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    GatherParams p;
    const uint32_t zero = 0;
    memset(&p, 0, sizeof p);
    CHECK(aclrtSetDevice(device), ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS);
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, WORKERS, MAIN_NOTIFIES, p.thread), HCCL_SUCCESS); /* threads */
    const ControlPair pair = control_pair(comm, stream, p.thread[0]);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, &binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "GatherFour", &function), ACL_SUCCESS);

    p.bug = bug;
    p.cpuThread = pair.cpuThreadOnAicpu;
    p.len = LEN;
    for (unsigned rank = 0; rank < WORKERS; rank++) {
        p.send[rank] = allocate(LEN);
        for (unsigned i = 0; i < LEN; i++) {
            bytes[i] = byte_of(rank, i);
        }
        if (bug != NEVER_WRITTEN || rank != 3) {
            CHECK(aclrtMemcpy(p.send[rank], LEN, bytes, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
        }
    }
    memset(bytes, 0, ALL);
    p.ccl = allocate(ALL);
    CHECK(aclrtMemcpy(p.ccl, ALL, bytes, ALL, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    p.sum = allocate(LEN);
    p.recv = allocate(ALL);
    p.flag = (uint32_t *)(void *)allocate(sizeof zero);
    CHECK(aclrtMemcpy(p.flag, sizeof zero, &zero, sizeof zero, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    char *again = NULL;
    if (bug == FREED) {
        CHECK(aclrtFree(p.recv), ACL_SUCCESS); /* free of the result */
        again = allocate(ALL);
    }

    record_start(&pair);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, &p, sizeof p, NULL, 0), ACL_SUCCESS);
    wait_for_end(&pair);
    if (bug == FREED_LATE) {
        wait_until_run(&p);
        (void)found(aclrtFree(p.recv)); /* free before the synchronise */
    }
    if (bug == READ_EARLY) {
        wait_until_run(&p);
        (void)found(aclrtMemcpy(bytes, ALL, p.recv, ALL, ACL_MEMCPY_DEVICE_TO_HOST)); /* read before the synchronise */
    }
    int failed = 0;
    while (found(aclrtSynchronizeStream(stream))) {
        failed = 1;
    }
    if (!failed && bug != FREED_LATE) {
        failed = found(aclrtMemcpy(bytes, ALL, p.recv, ALL, ACL_MEMCPY_DEVICE_TO_HOST)); /* read of the result */
        int equal = 1;
        for (unsigned i = 0; i < ALL; i++) {
            equal &= bytes[i] == byte_of(i / LEN, i % LEN);
        }
        if (!failed && equal) {
            puts("equal");
        }
    }
    /* Each of these returns one more finding of this thread. */
    char *const all[] = {p.send[0], p.send[1], p.send[2], p.send[3], p.ccl, p.sum, (char *)(void *)p.flag, again, p.recv};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i] != NULL && (all[i] != p.recv || (bug != FREED && bug != FREED_LATE))) {
            (void)found(aclrtFree(all[i]));
        }
    }
    (void)found(aclrtBinaryUnLoad(binary));
    (void)found(aclrtDestroyStream(stream));
    (void)found(HcclCommDestroy(comm));
    (void)found(aclrtResetDevice(device));
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    const uint32_t bug = (uint32_t)atoi(argv[2]);
    for (int round = 0; round < atoi(argv[3]); round++) {
        gather_once(argv[1], bug);
    }
    return 0;
}
