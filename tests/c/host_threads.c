/* Threads of the host on A2 and A3, acquired with and without a stream: copies, reductions and notifies on them. C11 and
 * C++17. */

#include <string.h>

#include "check.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hcomm_primitives.h"

#define LEN 4096
#define SLAVES 3
#define COUNT (LEN / (uint64_t)sizeof(int32_t))

static void *device_memory(const void *bytes) {
    void *ptr;
    CHECK(aclrtMalloc(&ptr, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemcpy(ptr, LEN, bytes, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    return ptr;
}

static void check_memory(const void *ptr, const void *expected) {
    char found[LEN];
    CHECK(aclrtMemcpy(found, LEN, ptr, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(found, expected, LEN), 0);
}

/* The shape of an operator: the thread of the user's stream lets the others start, they work, and it waits for them. The
 * user synchronises the stream and nothing else. */
static void slaves_of_a_stream(HcclComm comm) {
    aclrtStream stream;
    ThreadHandle main_thread, slaves[SLAVES];
    int32_t numbers[COUNT], zeros[COUNT] = {0}, sums[COUNT];
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, SLAVES, &main_thread), HCCL_SUCCESS);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_CPU_TS, SLAVES, 1, slaves), HCCL_SUCCESS);
    for (uint64_t i = 0; i < COUNT; i++) {
        numbers[i] = (int32_t)(i * 77777);
        sums[i] = (int32_t)((uint32_t)numbers[i] * (SLAVES + 1));
    }
    void *src = device_memory(numbers), *dst = device_memory(zeros), *parts[SLAVES];
    for (uint32_t i = 0; i < SLAVES; i++) {
        parts[i] = device_memory(zeros);
    }
    for (int round = 0; round < 20; round++) {
        CHECK(HcommLocalCopyOnThread(main_thread, dst, src, LEN), HCCL_SUCCESS);
        for (uint32_t i = 0; i < SLAVES; i++) {
            CHECK(aclrtMemcpy(parts[i], LEN, zeros, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
            CHECK(HcommThreadNotifyRecordOnThread(main_thread, slaves[i], 0), HCCL_SUCCESS);
            CHECK(HcommThreadNotifyWaitOnThread(slaves[i], 0, 60), HCCL_SUCCESS);
            CHECK(HcommLocalReduceOnThread(slaves[i], parts[i], src, COUNT, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM),
                  HCCL_SUCCESS);
            CHECK(HcommThreadNotifyRecordOnThread(slaves[i], main_thread, i), HCCL_SUCCESS);
        }
        for (uint32_t i = 0; i < SLAVES; i++) {
            CHECK(HcommThreadNotifyWaitOnThread(main_thread, i, 60), HCCL_SUCCESS);
            CHECK(HcommLocalReduceOnThread(main_thread, dst, parts[i], COUNT, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM),
                  HCCL_SUCCESS);
        }
        CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        check_memory(dst, sums);
    }
    CHECK(aclrtFree(src), ACL_SUCCESS);
    for (uint32_t i = 0; i < SLAVES; i++) {
        CHECK(aclrtFree(parts[i]), ACL_SUCCESS);
    }
    CHECK(aclrtFree(dst), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
}

/* A thread without a stream of the program keeps its tasks in order, and the device waits for them. */
static void thread_by_itself(HcclComm comm) {
    ThreadHandle thread;
    char bytes[LEN];
    for (int i = 0; i < LEN; i++) {
        bytes[i] = (char)(i * 3 + 1);
    }
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 0, &thread), HCCL_SUCCESS);
    void *src = device_memory(bytes);
    CHECK(HcommLocalCopyOnThread(thread, (char *)src + 1, src, 1), HCCL_SUCCESS);
    for (int i = 1; i < LEN - 1; i++) {
        CHECK(HcommLocalCopyOnThread(thread, (char *)src + i + 1, (char *)src + i, 1), HCCL_SUCCESS);
    }
    CHECK(aclrtSynchronizeDevice(), ACL_SUCCESS);
    memset(bytes, 1, LEN);
    check_memory(src, bytes);
    CHECK(aclrtFree(src), ACL_SUCCESS);
}

/* Destroying a communicator waits for the work of these threads, and returns its first error. */
static void end_of_a_communicator(void) {
    int32_t index = 0;
    HcclComm comm;
    ThreadHandle thread;
    char bytes[LEN], zeros[LEN] = {0};
    memset(bytes, 5, LEN);
    CHECK(HcclCommInitAll(1, &index, &comm), HCCL_SUCCESS);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_CPU_TS, 1, 1, &thread), HCCL_SUCCESS);
    void *src = device_memory(bytes), *dst = device_memory(zeros);
    for (int i = 0; i < LEN; i++) {
        CHECK(HcommLocalCopyOnThread(thread, (char *)dst + i, (char *)src + i, 1), HCCL_SUCCESS);
    }
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    check_memory(dst, bytes);
    CHECK(HcommLocalCopyOnThread(thread, dst, src, 1), HCCL_E_NOT_FOUND);
    CHECK(HcclCommDestroy(comm), HCCL_E_NOT_FOUND);
    CHECK(aclrtFree(src), ACL_SUCCESS);
    CHECK(aclrtFree(dst), ACL_SUCCESS);
}

/* A reduction is refused as in a kernel, and in the same order; what is refused changes nothing. */
static void refusals(HcclComm comm) {
    ThreadHandle thread, kernels;
    char bytes[LEN] = {3};
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_CPU_TS, 1, 1, &thread), HCCL_SUCCESS);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 1, &kernels), HCCL_SUCCESS);
    char *ptr = (char *)device_memory(bytes);
    const HcommReduceOp sum = HCOMM_REDUCE_SUM;
    const HcommDataType fp32 = HCOMM_DATA_TYPE_FP32;
    CHECK(HcommLocalReduceOnThread(0, NULL, ptr, 0, HCOMM_DATA_TYPE_FP64, HCOMM_REDUCE_PROD), HCCL_E_PTR);
    CHECK(HcommLocalReduceOnThread(thread, ptr, NULL, 0, fp32, sum), HCCL_E_PTR);
    CHECK(HcommLocalReduceOnThread(0, ptr, ptr, 1, fp32, sum), HCCL_E_PTR);
    CHECK(HcommLocalReduceOnThread(0x1234, ptr, ptr, 1, HCOMM_DATA_TYPE_FP64, sum), HCCL_E_NOT_FOUND);
    CHECK(HcommLocalReduceOnThread(kernels, ptr, ptr, 1, HCOMM_DATA_TYPE_FP64, sum), HCCL_E_NOT_FOUND);
    CHECK(HcommLocalReduceOnThread(thread, ptr + 1, ptr, UINT64_MAX, HCOMM_DATA_TYPE_FP64, sum), HCCL_E_NOT_SUPPORT);
    CHECK(HcommLocalReduceOnThread(thread, ptr, ptr, 1, fp32, HCOMM_REDUCE_PROD), HCCL_E_NOT_SUPPORT);
    CHECK(HcommLocalReduceOnThread(thread, ptr, ptr, 0, (HcommDataType)13, sum), HCCL_E_NOT_SUPPORT);
    CHECK(HcommLocalReduceOnThread(thread, ptr, ptr, UINT64_MAX / 4 + 1, fp32, sum), HCCL_E_PARA);
    CHECK(HcommLocalReduceOnThread(thread, ptr + 2, ptr, 1, fp32, sum), HCCL_E_PARA);
    CHECK(HcommLocalReduceOnThread(thread, ptr, ptr + 1, 1, fp32, sum), HCCL_E_PARA);
    CHECK(HcommLocalReduceOnThread(thread, (void *)(UINTPTR_MAX - 3), ptr, 2, fp32, sum), HCCL_E_PARA);
    CHECK(HcommLocalReduceOnThread(thread, ptr + 4, ptr, 0, fp32, sum), HCCL_SUCCESS);
    CHECK(HcommAclrtNotifyRecordOnThread(thread, 8192), HCCL_E_PARA);
    CHECK(HcommAclrtNotifyWaitOnThread(thread, (uint64_t)1 << 32, 1), HCCL_E_PARA);
    CHECK(aclrtSynchronizeDevice(), ACL_SUCCESS);
    check_memory(ptr, bytes);
    CHECK(aclrtFree(ptr), ACL_SUCCESS);
}

/* A notify of the host by its id orders a thread behind a stream. */
static void notify_by_id(HcclComm comm) {
    aclrtStream stream;
    aclrtNotify notify;
    uint32_t id;
    ThreadHandle thread;
    char bytes[LEN], zeros[LEN] = {0};
    memset(bytes, 9, LEN);
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtGetNotifyId(notify, &id), ACL_SUCCESS);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_CPU_TS, 1, 0, &thread), HCCL_SUCCESS);
    void *src = device_memory(bytes), *dst = device_memory(zeros);
    CHECK(HcommAclrtNotifyWaitOnThread(thread, id, 60), HCCL_SUCCESS);
    CHECK(HcommLocalCopyOnThread(thread, dst, src, LEN), HCCL_SUCCESS);
    check_memory(dst, zeros);
    CHECK(aclrtRecordNotify(notify, stream), ACL_SUCCESS);
    CHECK(aclrtSynchronizeDevice(), ACL_SUCCESS);
    check_memory(dst, bytes);
    CHECK(HcommAclrtNotifyRecordOnThread(thread, id), HCCL_SUCCESS);
    CHECK(aclrtWaitAndResetNotify(notify, stream, 60), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(aclrtDestroyNotify(notify), ACL_SUCCESS);
    CHECK(aclrtFree(src), ACL_SUCCESS);
    CHECK(aclrtFree(dst), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
}

/* What goes wrong on such a thread is told by the device's synchronisation, and by the end of the communicator. */
static void errors(HcclComm comm) {
    ThreadHandle thread;
    char bytes[LEN] = {1};
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_CPU_TS, 1, 0, &thread), HCCL_SUCCESS);
    char *ptr = (char *)device_memory(bytes);
    CHECK(HcommLocalReduceOnThread(thread, ptr + 4, ptr, 2, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_MAX), HCCL_SUCCESS);
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtSynchronizeDevice(), 507001);
    const char *text = aclrtGetRecentErrMsg();
    CHECK_TRUE(strstr(text, ": reduce of 8 bytes from ") != NULL && strstr(text, "overlap in part") != NULL);
    CHECK(HcclCommDestroy(comm), HCCL_E_RUNTIME);
    CHECK(HcclCommDestroy(comm), HCCL_E_NOT_FOUND);
}

int main(void) {
    int32_t index = 0;
    HcclComm comm;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &index, &comm), HCCL_SUCCESS);
    slaves_of_a_stream(comm);
    thread_by_itself(comm);
    end_of_a_communicator();
    refusals(comm);
    notify_by_id(comm);
    errors(comm);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    printf("threads of the host work\n");
    return 0;
}
