/* Host and kernel in step through the control pair, and the errors when one of them leaves out its part.
 *
 *   control DESCRIPTION WHICH
 */

#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "check.h"
#include "control_params.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hcomm_primitives.h"
#include "launch_in_step.h"

/* The runtime's number for a wait that comes to its limit, or never ends. */
enum { NOTIFY_TIMEOUT = 507048 };
enum { LEN = 1000 };

/* A communicator, a stream, and what a launch needs. */
typedef struct Rig {
    HcclComm comm;
    aclrtStream stream;
    aclrtBinHandle binary;
    ControlPair pair;
    ControlParams param;
    unsigned char bytes[2 * LEN]; /* what `src` holds */
} Rig;

static const char *description;

static Rig open_rig(void) {
    Rig rig;
    int32_t device = 0;
    memset(&rig, 0, sizeof rig);
    CHECK(aclrtSetDevice(device), ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &device, &rig.comm), HCCL_SUCCESS);
    CHECK(aclrtCreateStream(&rig.stream), ACL_SUCCESS);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, &rig.binary), ACL_SUCCESS);
    CHECK(HcclThreadAcquire(rig.comm, COMM_ENGINE_AICPU_TS, 2, 2, rig.param.threads), HCCL_SUCCESS);
    void *src, *dst;
    CHECK(aclrtMalloc(&src, 2 * LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMalloc(&dst, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    rig.param.src = (unsigned char *)src;
    rig.param.dst = (unsigned char *)dst;
    rig.param.len = LEN;
    return rig;
}

/* New bytes at `src`, zeroes at `dst`; and the thread of the stream, which operators acquire again for each call. */
static void prepare(Rig *rig, int seed) {
    for (int i = 0; i < 2 * LEN; i++) {
        rig->bytes[i] = (unsigned char)(i * 7 + seed * 31 + 1);
    }
    CHECK(aclrtMemcpy(rig->param.src, 2 * LEN, rig->bytes, 2 * LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    const unsigned char zeroes[LEN] = {0};
    CHECK(aclrtMemcpy(rig->param.dst, LEN, zeroes, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    rig->pair = control_pair(rig->comm, rig->stream, rig->param.threads[0]);
    rig->param.cpuThread = rig->pair.cpuThreadOnAicpu;
}

static void launch_for(const Rig *rig, const char *kernel, uint16_t seconds) {
    aclrtFuncHandle function;
    ControlParams param = rig->param;
    aclrtLaunchKernelAttr timeout;
    timeout.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
    timeout.value.timeout = seconds;
    aclrtLaunchKernelCfg cfg = {&timeout, 1};
    CHECK(aclrtBinaryGetFunction(rig->binary, kernel, &function), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, rig->stream, &cfg, &param, sizeof param, NULL, 0), ACL_SUCCESS);
}

static void launch(const Rig *rig, const char *kernel) {
    launch_for(rig, kernel, 1836);
}

/* Whether `dst` holds these bytes. */
static int holds(const Rig *rig, const unsigned char *bytes) {
    unsigned char found[LEN];
    CHECK(aclrtMemcpy(found, LEN, rig->param.dst, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    return memcmp(found, bytes, LEN) == 0;
}

/* A whole operation that is as it should be. */
static void good_operation(Rig *rig, int seed) {
    prepare(rig, seed);
    record_start(&rig->pair);
    launch(rig, "WriteTwice");
    wait_for_end(&rig->pair);
    CHECK(aclrtSynchronizeStream(rig->stream), ACL_SUCCESS);
    CHECK_TRUE(holds(rig, rig->bytes + LEN));
}

/* Synchronises, which fails with a message that contains both texts. */
static void expect_error(const Rig *rig, int code, const char *text, const char *and_text) {
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtSynchronizeStream(rig->stream), code);
    const char *message = aclrtGetRecentErrMsg();
    if (message == NULL || strstr(message, text) == NULL || strstr(message, and_text) == NULL) {
        fprintf(stderr, "%s\nis to contain: %s, and: %s\n", message ? message : "", text, and_text);
        exit(1);
    }
}

static double seconds(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    CHECK(nanosleep(&time, NULL), 0);
}

static void in_step(void) {
    Rig rig = open_rig();
    for (int i = 0; i < 20; i++) {
        good_operation(&rig, i);
    }
    /* Several operations before the host waits: each stands behind the end of the one before. */
    prepare(&rig, 20);
    for (int i = 0; i < 20; i++) {
        record_start(&rig.pair);
        launch(&rig, "WriteTwice");
        wait_for_end(&rig.pair);
    }
    CHECK(aclrtSynchronizeStream(rig.stream), ACL_SUCCESS);
    CHECK_TRUE(holds(&rig, rig.bytes + LEN));
}

/* The stream waits for an end that the kernel does not record. */
static void end_that_never_comes(void) {
    Rig rig = open_rig();
    prepare(&rig, 1);
    record_start(&rig.pair);
    launch(&rig, "NoEnd");
    wait_for_end(&rig.pair);
    const double started = seconds();
    expect_error(&rig, NOTIFY_TIMEOUT, "deadlock: stream ", "which nothing is left to record");
    CHECK_TRUE(seconds() - started < 60);
}

/* Neither the kernel records an end nor the stream waits for one. */
static void forgotten_end(void) {
    Rig rig = open_rig();
    prepare(&rig, 1);
    record_start(&rig.pair);
    launch(&rig, "NoEnd");
    expect_error(&rig, ACL_ERROR_RT_TS_ERROR, "kernel no_end has queued 2 tasks on ",
                 "no notify orders before the end of");
    /* The work was waited for nevertheless, and the device works. */
    CHECK_TRUE(holds(&rig, rig.bytes));
    good_operation(&rig, 2);
}

/* The calls have returned; the work is not done. */
static void returned_is_not_done(void) {
    Rig rig = open_rig();
    aclrtNotify gate;
    aclrtStream other;
    const unsigned char zeroes[LEN] = {0};
    CHECK(aclrtCreateNotify(&gate, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&other), ACL_SUCCESS);
    prepare(&rig, 1);
    CHECK(aclrtWaitAndResetNotify(gate, rig.stream, 0), ACL_SUCCESS);
    record_start(&rig.pair);
    launch(&rig, "WriteTwice");
    wait_for_end(&rig.pair);
    CHECK_TRUE(holds(&rig, zeroes));
    CHECK(aclrtSynchronizeStreamWithTimeout(rig.stream, 1), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    /* Longer than a deadlock takes to be reported: no thread waits for the stream meanwhile. */
    sleep_ms(500);
    CHECK_TRUE(holds(&rig, zeroes));
    CHECK(aclrtRecordNotify(gate, other), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(rig.stream), ACL_SUCCESS);
    CHECK_TRUE(holds(&rig, rig.bytes + LEN));
    CHECK(aclrtDestroyNotify(gate), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(other), ACL_SUCCESS);
}

/* A second record of the start notify does not start the next operation. */
static void start_recorded_twice(void) {
    Rig rig = open_rig();
    prepare(&rig, 1);
    record_start(&rig.pair);
    record_start(&rig.pair);
    launch(&rig, "WriteTwice");
    wait_for_end(&rig.pair);
    expect_error(&rig, ACL_ERROR_RT_TS_ERROR, "notify ", "was recorded once more than it was waited for");
    CHECK_TRUE(holds(&rig, rig.bytes + LEN));
    prepare(&rig, 2);
    launch(&rig, "WriteTwice");
    wait_for_end(&rig.pair);
    expect_error(&rig, NOTIFY_TIMEOUT, "deadlock: ", "which nothing is left to record");
}

static void open_batch(void) {
    Rig rig = open_rig();
    prepare(&rig, 1);
    record_start(&rig.pair);
    launch(&rig, "OpenBatch");
    wait_for_end(&rig.pair);
    expect_error(&rig, ACL_ERROR_RT_AICPU_EXCEPTION, "kernel open_batch has left its batch open", "");
    good_operation(&rig, 2);
}

/* The stream of a kernel that fails waits for nothing. */
static void failed_kernel(void) {
    Rig rig = open_rig();
    prepare(&rig, 1);
    record_start(&rig.pair);
    launch(&rig, "FailsLate");
    wait_for_end(&rig.pair);
    /* What comes behind it does not run. */
    record_start(&rig.pair);
    launch(&rig, "WriteTwice");
    wait_for_end(&rig.pair);
    expect_error(&rig, ACL_ERROR_RT_AICPU_EXCEPTION, "kernel fails_late returned 77", "");
    CHECK_TRUE(!holds(&rig, rig.bytes + LEN));
    good_operation(&rig, 2);
}

static void overrun_kernel(void) {
    Rig rig = open_rig();
    prepare(&rig, 1);
    record_start(&rig.pair);
    const double started = seconds();
    launch_for(&rig, "NeverReturns", 1);
    wait_for_end(&rig.pair);
    expect_error(&rig, ACL_ERROR_RT_AICPU_TIMEOUT, "kernel never_returns has not returned within 1s", "");
    CHECK_TRUE(seconds() - started >= 1);
    CHECK_TRUE(seconds() - started < 60);
    /* It is the answer until the device is a new one. */
    CHECK(aclrtSynchronizeStream(rig.stream), ACL_ERROR_RT_AICPU_TIMEOUT);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    rig = open_rig();
    good_operation(&rig, 2);
}

/* Handles that an operator has kept, of a stream that is gone. */
static void stale_thread(void) {
    Rig rig = open_rig();
    good_operation(&rig, 1);
    CHECK(aclrtDestroyStream(rig.stream), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&rig.stream), ACL_SUCCESS);
    const ControlPair stale = rig.pair;
    prepare(&rig, 2);
    CHECK(HcommThreadNotifyRecordOnThread(stale.cpuThread, stale.aicpuThreadOnCpu, 0), HCCL_E_NOT_FOUND);
    rig.param.cpuThread = stale.cpuThreadOnAicpu;
    record_start(&rig.pair);
    launch(&rig, "WriteTwice");
    wait_for_end(&rig.pair);
    expect_error(&rig, ACL_ERROR_RT_AICPU_EXCEPTION, "kernel write_twice returned 6", "");
    good_operation(&rig, 3);
}

static void two_communicators(void) {
    Rig rigs[2] = {open_rig(), open_rig()};
    for (int i = 0; i < 100; i++) {
        prepare(&rigs[0], 2 * i);
        prepare(&rigs[1], 2 * i + 1);
        for (int k = 0; k < 2; k++) {
            record_start(&rigs[k].pair);
            launch(&rigs[k], "WriteTwice");
            wait_for_end(&rigs[k].pair);
        }
        for (int k = 0; k < 2; k++) {
            CHECK(aclrtSynchronizeStream(rigs[k].stream), ACL_SUCCESS);
            CHECK_TRUE(holds(&rigs[k], rigs[k].bytes + LEN));
        }
    }
}

/* The work of a kernel is queued and waits for its start when the communicator goes. */
static void destroyed_with_work(void) {
    Rig rig = open_rig();
    void *word;
    uint32_t done = 0;
    CHECK(aclrtMalloc(&word, sizeof done, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemcpy(word, sizeof done, &done, sizeof done, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    prepare(&rig, 1);
    rig.param.done = (volatile uint32_t *)word;
    launch(&rig, "WriteTwice");
    while (done == 0) {
        sleep_ms(1);
        CHECK(aclrtMemcpy(&done, sizeof done, word, sizeof done, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    }
    CHECK(HcclCommDestroy(rig.comm), HCCL_SUCCESS);
    expect_error(&rig, ACL_ERROR_RT_TS_ERROR, "tasks were dropped, its thread was freed", "");
    Rig next = open_rig();
    good_operation(&next, 2);
}

/* Host and kernel in step through notifies of the host: on A2 and A3. An Atlas 350 does not have these calls for kernels. */
static void by_notifies(void) {
    Rig rig = open_rig();
    aclrtNotify start, end;
    uint32_t ids[2];
    CHECK(aclrtCreateNotify(&start, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtCreateNotify(&end, ACL_NOTIFY_DEVICE_USE_ONLY), ACL_SUCCESS);
    CHECK(aclrtGetNotifyId(start, &ids[0]), ACL_SUCCESS);
    CHECK(aclrtGetNotifyId(end, &ids[1]), ACL_SUCCESS);
    rig.param.startId = ids[0];
    rig.param.endId = ids[1];
    for (int i = 0; i < 20; i++) {
        prepare(&rig, i);
        CHECK(aclrtRecordNotify(start, rig.stream), ACL_SUCCESS);
        launch(&rig, "ByNotifies");
        CHECK(aclrtWaitAndResetNotify(end, rig.stream, 1836), ACL_SUCCESS);
        if (strcmp(aclrtGetSocName(), "Ascend950") == 0) {
            expect_error(&rig, ACL_ERROR_RT_AICPU_EXCEPTION, "kernel by_notifies returned 5", "");
            break;
        }
        CHECK(aclrtSynchronizeStream(rig.stream), ACL_SUCCESS);
        CHECK_TRUE(holds(&rig, rig.bytes));
    }
    CHECK(aclrtDestroyNotify(start), ACL_SUCCESS);
    CHECK(aclrtDestroyNotify(end), ACL_SUCCESS);
}

/* The limit of a wait is in seconds. */
static void limit_of_a_wait(void) {
    Rig rig = open_rig();
    aclrtNotify notify;
    aclrtStream other;
    CHECK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&other), ACL_SUCCESS);
    CHECK(aclrtWaitAndResetNotify(notify, rig.stream, 60), ACL_SUCCESS);
    sleep_ms(200);
    CHECK(aclrtRecordNotify(notify, other), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(rig.stream), ACL_SUCCESS);
    CHECK(aclrtWaitAndResetNotify(notify, rig.stream, 1), ACL_SUCCESS);
    sleep_ms(1500);
    expect_error(&rig, NOTIFY_TIMEOUT, "was not recorded within 1 s", "");
}

/* A kernel that calls every function, and finds the answers that it expects. Some of its calls are refused. */
static void every_call(void) {
    CHECK(setenv("HCOMM_SIM_CHECK", "-calls", 1), 0);
    Rig rig = open_rig();
    char name[COMM_NAME_MAX_LENGTH] = {0};
    void *place;
    CHECK(HcclGetCommName(rig.comm, name), HCCL_SUCCESS);
    CHECK(aclrtMalloc(&place, sizeof name, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemcpy(place, sizeof name, name, sizeof name, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    rig.param.commName = (const char *)place;
    for (int seed = 0; seed < 20; seed++) {
        prepare(&rig, seed);
        record_start(&rig.pair);
        launch(&rig, "EveryCall");
        wait_for_end(&rig.pair);
        CHECK(aclrtSynchronizeStream(rig.stream), ACL_SUCCESS);
        int32_t src[2 * LEN / 4], expected[LEN / 4];
        memcpy(src, rig.bytes, sizeof src);
        for (int i = 0; i < LEN / 4; i++) {
            const int32_t sum = (int32_t)(2 * (uint32_t)src[i]), later = src[LEN / 4 + i];
            expected[i] = sum > later ? sum : later;
        }
        CHECK_TRUE(holds(&rig, (const unsigned char *)expected));
    }
}

/* The same, without a word that its calls are there to be refused. */
static void ignored_refusals(void) {
    Rig rig = open_rig();
    prepare(&rig, 1);
    /* Of no name: the first call is refused, and the kernel says so. */
    record_start(&rig.pair);
    launch(&rig, "EveryCall");
    expect_error(&rig, ACL_ERROR_RT_AICPU_EXCEPTION, "kernel every_call returned ",
                 "refused calls: HcommAcquireComm: no communicator has this name (code 2, HCCL_E_PTR)");
    char name[COMM_NAME_MAX_LENGTH] = {0};
    void *place;
    CHECK(HcclGetCommName(rig.comm, name), HCCL_SUCCESS);
    CHECK(aclrtMalloc(&place, sizeof name, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemcpy(place, sizeof name, name, sizeof name, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    rig.param.commName = (const char *)place;
    prepare(&rig, 2);
    record_start(&rig.pair);
    launch(&rig, "EveryCall");
    expect_error(&rig, ACL_ERROR_RT_AICPU_EXCEPTION, "kernel every_call returned 0 although calls of it were refused",
                 "HcommReleaseComm: the communicator is not locked by this kernel (code 6, HCCL_E_NOT_FOUND)");
    good_operation(&rig, 3);
}

/* A kernel that copies bytes that were never written: reported once, where the host uses them. */
static void unwritten_source(void) {
    CHECK(setenv("HCOMM_SIM_CHECK", "free,calls,sync,init", 1), 0);
    Rig rig = open_rig();
    unsigned char found[LEN];
    rig.pair = control_pair(rig.comm, rig.stream, rig.param.threads[0]);
    rig.param.cpuThread = rig.pair.cpuThreadOnAicpu;
    record_start(&rig.pair);
    launch(&rig, "WriteTwice");
    wait_for_end(&rig.pair);
    CHECK(aclrtSynchronizeStream(rig.stream), ACL_SUCCESS);
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtMemcpy(found, LEN, rig.param.dst, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_TS_ERROR);
    const char *message = aclrtGetRecentErrMsg();
    CHECK_TRUE(message != NULL && strstr(message, "uninitialised read: a copy to the host"));
    CHECK_TRUE(strstr(message, "that a task has copied there from memory that was never written") != NULL);
    CHECK(aclrtMemcpy(found, LEN, rig.param.dst, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    good_operation(&rig, 1);
}

/* The limit of kernels comes from the environment, for launches without one of their own. */
static void limit_of_the_environment(void) {
    CHECK(setenv("HCOMM_SIM_LAUNCH_TIMEOUT", "0.5", 1), 0);
    Rig rig = open_rig();
    prepare(&rig, 1);
    aclrtFuncHandle function;
    CHECK(aclrtBinaryGetFunction(rig.binary, "NeverReturns", &function), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, rig.stream, NULL, &rig.param, sizeof rig.param, NULL, 0), ACL_SUCCESS);
    expect_error(&rig, ACL_ERROR_RT_AICPU_TIMEOUT, "kernel never_returns has not returned within 500ms", "");
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK(setenv("HCOMM_SIM_LAUNCH_TIMEOUT", "soon", 1), 0);
    (void)aclrtGetRecentErrMsg();
    CHECK_TRUE(aclrtSetDevice(0) != ACL_SUCCESS);
    const char *message = aclrtGetRecentErrMsg();
    CHECK_TRUE(message != NULL && strstr(message, "HCOMM_SIM_LAUNCH_TIMEOUT is \"soon\": must be a number of seconds"));
    CHECK(unsetenv("HCOMM_SIM_LAUNCH_TIMEOUT"), 0);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
}

/* A fraction of a second rounds up, and never to 0, which means no limit. */
static void waits_briefly(void) {
    Rig rig = open_rig();
    launch(&rig, "WaitsBriefly");
    sleep_ms(1500);
    expect_error(&rig, NOTIFY_TIMEOUT, "was not recorded within 1 s", "");
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"in_step", in_step},
        {"end_that_never_comes", end_that_never_comes},
        {"forgotten_end", forgotten_end},
        {"returned_is_not_done", returned_is_not_done},
        {"start_recorded_twice", start_recorded_twice},
        {"open_batch", open_batch},
        {"failed_kernel", failed_kernel},
        {"overrun_kernel", overrun_kernel},
        {"stale_thread", stale_thread},
        {"two_communicators", two_communicators},
        {"destroyed_with_work", destroyed_with_work},
        {"by_notifies", by_notifies},
        {"limit_of_a_wait", limit_of_a_wait},
        {"every_call", every_call},
        {"ignored_refusals", ignored_refusals},
        {"unwritten_source", unwritten_source},
        {"limit_of_the_environment", limit_of_the_environment},
        {"waits_briefly", waits_briefly},
    };
    if (argc != 3) {
        fprintf(stderr, "usage: control DESCRIPTION WHICH\n");
        return 2;
    }
    description = argv[1];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, argv[2]) == 0) {
            all[i].run();
            CHECK(aclrtResetDevice(0), ACL_SUCCESS);
            printf("%s\n", argv[2]);
            return 0;
        }
    }
    fprintf(stderr, "there is no %s\n", argv[2]);
    return 2;
}
