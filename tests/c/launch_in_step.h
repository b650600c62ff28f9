/* The host's half of the control pair: the stream releases the kernel's work, and waits for it. */

#ifndef LAUNCH_IN_STEP_H
#define LAUNCH_IN_STEP_H

#include "acl/acl.h"
#include "check.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"

/* What ties launches on a stream to the first thread of their kernel. */
typedef struct ControlPair {
    ThreadHandle cpuThread;        /* thread of the stream; its notify 0 is the end notify */
    ThreadHandle cpuThreadOnAicpu; /* the same for the kernel */
    ThreadHandle aicpuThreadOnCpu; /* the kernel's first thread for the host; its notify 0 is the start notify */
} ControlPair;

static inline ControlPair control_pair(HcclComm comm, aclrtStream stream, ThreadHandle thread) {
    ControlPair pair;
    const CommEngine cpu = COMM_ENGINE_CPU_TS, aicpu = COMM_ENGINE_AICPU_TS;
    CHECK(HcclThreadAcquireWithStream(comm, cpu, stream, 1, &pair.cpuThread), HCCL_SUCCESS);
    CHECK(HcclThreadExportToCommEngine(comm, 1, &pair.cpuThread, aicpu, &pair.cpuThreadOnAicpu), HCCL_SUCCESS);
    CHECK(HcclThreadExportToCommEngine(comm, 1, &thread, cpu, &pair.aicpuThreadOnCpu), HCCL_SUCCESS);
    return pair;
}

/* Comes before the launch. */
static inline void record_start(const ControlPair *pair) {
    CHECK(HcommThreadNotifyRecordOnThread(pair->cpuThread, pair->aicpuThreadOnCpu, 0), HCCL_SUCCESS);
}

/* Comes after the launch. */
static inline void wait_for_end(const ControlPair *pair) {
    CHECK(HcommThreadNotifyWaitOnThread(pair->cpuThread, 0, 1836), HCCL_SUCCESS);
}

#endif /* LAUNCH_IN_STEP_H */
