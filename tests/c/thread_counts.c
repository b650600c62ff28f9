/* How many threads and notifies can be acquired: the edges of both numbers, through both functions. A refused call leaves
 * nothing behind, and its array untouched. C11 and C++17. */

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"

#define UNTOUCHED 0xeeeeeeeeeeeeeeeeu
#define MOST 1001

static ThreadHandle threads[MOST];

static HcclComm new_comm(void) {
    int32_t index = 0;
    HcclComm comm;
    CHECK(HcclCommInitAll(1, &index, &comm), HCCL_SUCCESS);
    return comm;
}

/* Acquires `count` threads: `expected`, and as many handles, or none. */
static void acquire(HcclComm comm, CommEngine engine, uint32_t count, uint32_t notifies, HcclResult expected) {
    memset(threads, 0xee, sizeof threads);
    CHECK(HcclThreadAcquire(comm, engine, count, notifies, threads), expected);
    const uint32_t acquired = expected == HCCL_SUCCESS ? count : 0;
    for (uint32_t i = 0; i < MOST; i++) {
        CHECK_TRUE((threads[i] != UNTOUCHED) == (i < acquired));
        CHECK_TRUE(i == 0 || i >= acquired || threads[i] != threads[i - 1]);
    }
}

static void with_stream(HcclComm comm, aclrtStream stream, uint32_t notifies, HcclResult expected) {
    ThreadHandle thread = UNTOUCHED;
    CHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, notifies, &thread), expected);
    CHECK_TRUE((thread != UNTOUCHED) == (expected == HCCL_SUCCESS));
}

static void counts_of_threads(CommEngine engine) {
    const HcclComm comm = new_comm();
    acquire(comm, engine, 0, 1, HCCL_E_PARA);
    acquire(comm, engine, 1001, 1, HCCL_E_PARA);
    acquire(comm, engine, UINT32_MAX, 1, HCCL_E_PARA);
    acquire(comm, engine, 1, 1, HCCL_SUCCESS);
    acquire(comm, engine, 1000, 1, HCCL_SUCCESS);
    acquire(comm, engine, 1000, 1, HCCL_SUCCESS);
    /* 2001 of the device's 2048 are gone: a call that is refused takes none of the rest. */
    acquire(comm, engine, 48, 1, HCCL_E_UNAVAIL);
    acquire(comm, engine, 1000, 0, HCCL_E_UNAVAIL);
    acquire(comm, engine, 47, 1, HCCL_SUCCESS);
    acquire(comm, engine, 1, 1, HCCL_E_UNAVAIL);
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
}

static void counts_of_notifies(CommEngine engine) {
    const HcclComm comm = new_comm();
    acquire(comm, engine, 1, 65536, HCCL_E_PARA);
    acquire(comm, engine, 1, UINT32_MAX, HCCL_E_PARA);
    acquire(comm, engine, 1, 0, HCCL_SUCCESS);
    acquire(comm, engine, 1000, 64, HCCL_SUCCESS);
    /* 64000 of the communicator's 65536 are gone. */
    acquire(comm, engine, 1, 65535, HCCL_E_UNAVAIL);
    acquire(comm, engine, 1000, 64, HCCL_E_UNAVAIL);
    acquire(comm, engine, 24, 64, HCCL_SUCCESS);
    acquire(comm, engine, 1, 1, HCCL_E_UNAVAIL);
    acquire(comm, engine, 1, 0, HCCL_SUCCESS);
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    const HcclComm other = new_comm();
    acquire(other, engine, 1, 65535, HCCL_SUCCESS);
    acquire(other, engine, 2, 1, HCCL_E_UNAVAIL);
    acquire(other, engine, 1, 1, HCCL_SUCCESS);
    CHECK(HcclCommDestroy(other), HCCL_SUCCESS);
}

static void counts_with_stream(void) {
    const uint32_t good[] = {0, 64, 65535};
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    for (int i = 0; i < 3; i++) {
        const HcclComm comm = new_comm();
        with_stream(comm, stream, 65536, HCCL_E_PARA);
        with_stream(comm, stream, UINT32_MAX, HCCL_E_PARA);
        with_stream(comm, stream, good[i], HCCL_SUCCESS);
        /* All that are left, which the refused calls have not taken. */
        acquire(comm, COMM_ENGINE_AICPU_TS, 1, 65536 - good[i] < 65535 ? 65536 - good[i] : 65535, HCCL_SUCCESS);
        CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    }
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
}

/* A2 and A3: a descriptor names 8192 notifies, so there are no more on the device. */
static void counts_of_13_bits(CommEngine engine) {
    const HcclComm comm = new_comm(), other = new_comm();
    acquire(comm, engine, 1, 65536, HCCL_E_PARA);
    acquire(comm, engine, 1, 65535, HCCL_E_UNAVAIL);
    acquire(comm, engine, 1, 8193, HCCL_E_UNAVAIL);
    acquire(comm, engine, 129, 64, HCCL_E_UNAVAIL);
    acquire(comm, engine, 128, 64, HCCL_SUCCESS);
    acquire(other, engine, 1, 1, HCCL_E_UNAVAIL);
    acquire(other, engine, 1, 0, HCCL_SUCCESS);
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    acquire(other, engine, 1, 8192, HCCL_SUCCESS);
    CHECK(HcclCommDestroy(other), HCCL_SUCCESS);
}

int main(int argc, char **argv) {
    CHECK(argc, 2);
    const char *name = argv[1];
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    for (int round = 0; round < 2; round++) {
        const CommEngine engine = round == 0 ? COMM_ENGINE_AICPU_TS : COMM_ENGINE_CPU_TS;
        if (strcmp(name, "threads") == 0) {
            counts_of_threads(engine);
        } else if (strcmp(name, "notifies") == 0) {
            counts_of_notifies(engine);
        } else if (strcmp(name, "13-bits") == 0) {
            counts_of_13_bits(engine);
        } else {
            CHECK(strcmp(name, "with-stream"), 0);
            counts_with_stream();
        }
    }
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    printf("%s counted\n", name);
    return 0;
}
