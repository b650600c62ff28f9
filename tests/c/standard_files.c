/* A program with odd standard files, or that gets signals, opens a device and works with it. C11.
 *
 *   standard_files DESCRIPTION closed MASK      bit n of MASK: descriptor n is closed before
 *   standard_files DESCRIPTION interrupted      SIGINT to the process group while the device is open
 *   standard_files DESCRIPTION log TO           lines of the log can't be written: "/dev/full", "pipe",
 *                                              "closed" or "limit"
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"
#include "copy_params.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "launch_in_step.h"

enum { LEN = 5000 };

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number) {
    (void)number;
    interrupts++;
}

typedef struct Job {
    CopyParams param;
    HcclComm comm;
    aclrtStream stream;
    aclrtFuncHandle function;
} Job;

static void open_device(Job *job, const char *description) {
    int32_t device = 0;
    aclrtBinHandle binary;
    memset(job, 0, sizeof *job);
    CHECK(aclrtSetDevice(device), ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &device, &job->comm), HCCL_SUCCESS);
    CHECK(HcclThreadAcquire(job->comm, COMM_ENGINE_AICPU_TS, 1, 1, &job->param.thread), HCCL_SUCCESS);
    CHECK(aclrtCreateStream(&job->stream), ACL_SUCCESS);
    CHECK(aclrtMalloc(&job->param.userIn, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMalloc(&job->param.cclBuf, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, &binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &job->function), ACL_SUCCESS);
}

static void copy(Job *job, int value) {
    unsigned char bytes[LEN], found[LEN];
    memset(bytes, value, LEN);
    CopyParams param = job->param;
    const ControlPair pair = control_pair(job->comm, job->stream, param.thread);
    param.cpuThread = pair.cpuThreadOnAicpu;
    param.len = LEN;
    CHECK(aclrtMemcpy(param.userIn, LEN, bytes, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    record_start(&pair);
    CHECK(aclrtLaunchKernelWithHostArgs(job->function, 1, job->stream, NULL, &param, sizeof param, NULL, 0), ACL_SUCCESS);
    wait_for_end(&pair);
    CHECK(aclrtSynchronizeStream(job->stream), ACL_SUCCESS);
    CHECK(aclrtMemcpy(found, LEN, param.cclBuf, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(found, bytes, LEN), 0);
}

/* Standard error becomes a file that takes nothing. */
static void spoil_standard_error(const char *to) {
    if (strcmp(to, "closed") == 0) {
        close(2);
    } else if (strcmp(to, "pipe") == 0) {
        int ends[2];
        CHECK(pipe(ends), 0);
        close(ends[0]);
        dup2(ends[1], 2);
    } else if (strcmp(to, "limit") == 0) {
        const struct rlimit none = {0, 0};
        FILE *file = tmpfile();
        CHECK_TRUE(file != NULL);
        dup2(fileno(file), 2);
        CHECK(setrlimit(RLIMIT_FSIZE, &none), 0);
    } else {
        const int file = open(to, O_WRONLY);
        CHECK_TRUE(file >= 0);
        dup2(file, 2);
    }
}

int main(int argc, char **argv) {
    Job job;
    if (argc < 3) {
        return 2;
    }
    if (strcmp(argv[2], "log") == 0) {
        aclrtBinHandle binary;
        CHECK(aclrtSetDevice(0), ACL_SUCCESS);
        spoil_standard_error(argv[3]);
        /* Each writes a line; signals have their default actions. */
        for (int i = 0; i < 3; i++) {
            CHECK(aclrtBinaryLoadFromFile("/nowhere.json", NULL, &binary), 100003);
        }
        CHECK(aclrtResetDevice(0), ACL_SUCCESS);
        printf("went on\n");
        return 0;
    }
    if (strcmp(argv[2], "closed") == 0) {
        const int mask = atoi(argv[3]);
        const int out = fcntl(1, F_DUPFD, 10);
        for (int i = 0; i < 3; i++) {
            if (mask >> i & 1) {
                close(i);
            }
        }
        open_device(&job, argv[1]);
        copy(&job, 1);
        /* The numbers are the program's: nothing of the device has taken them. */
        for (int i = 0; i < 3; i++) {
            CHECK(fcntl(i, F_GETFD) >= 0, !(mask >> i & 1));
        }
        CHECK(aclrtResetDevice(0), ACL_SUCCESS);
        dprintf(out, "closed %d: copied\n", mask);
        return 0;
    }
    CHECK(setpgid(0, 0), 0);
    signal(SIGINT, on_interrupt);
    open_device(&job, argv[1]);
    copy(&job, 1);
    /* As a terminal does. */
    kill(0, SIGINT);
    CHECK(interrupts, 1);
    /* Long enough for a process that the signal ends. */
    usleep(200000);
    copy(&job, 2);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    printf("interrupts %d: copied\n", (int)interrupts);
    return 0;
}
