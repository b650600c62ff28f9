/* Misuse of communicators, threads and what belongs to them: part of misuse.c. */

#ifndef MISUSE_COMM_H
#define MISUSE_COMM_H

#include "misuse.h"

static HcclComm communicators(void) {
    HcclComm comm = UNTOUCHED, second, both[2] = {UNTOUCHED, UNTOUCHED};
    HcclRootInfo root, forged;
    int32_t index = 0, none = 99, twice[2] = {0, 0};
    uint32_t number = 5;
    char name[COMM_NAME_MAX_LENGTH], other[COMM_NAME_MAX_LENGTH];
    CHECK(HcclCommInitAll(1, &index, NULL), HCCL_E_PTR);
    CHECK(HcclCommInitAll(1, NULL, &comm), HCCL_E_PTR);
    CHECK(HcclCommInitAll(0, &index, &comm), HCCL_E_PARA);
    CHECK(HcclCommInitAll(17, &index, &comm), HCCL_E_NOT_SUPPORT);
    CHECK(HcclCommInitAll(2, twice, both), HCCL_E_PARA);
    CHECK_TRUE(both[0] == UNTOUCHED && both[1] == UNTOUCHED);
    CHECK(HcclCommInitAll(1, &none, &comm), HCCL_E_PARA);
    CHECK(HcclGetRootInfo(NULL), HCCL_E_PTR);
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    memset(&forged, 7, sizeof forged);
    CHECK(HcclCommInitRootInfo(1, NULL, 0, &comm), HCCL_E_PTR);
    CHECK(HcclCommInitRootInfo(1, &root, 0, NULL), HCCL_E_PTR);
    CHECK(HcclCommInitRootInfo(0, &root, 0, &comm), HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(17, &root, 0, &comm), HCCL_E_NOT_SUPPORT);
    CHECK(HcclCommInitRootInfo(1, &root, 1, &comm), HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(1, &forged, 0, &comm), HCCL_E_PARA);
    CHECK_TRUE(comm == UNTOUCHED);
    CHECK(HcclCommInitRootInfo(1, &root, 0, &comm), HCCL_SUCCESS);
    CHECK(HcclCommInitRootInfo(1, &root, 0, &second), HCCL_E_PARA);
    CHECK(HcclCommInitAll(1, &index, &second), HCCL_SUCCESS);

    CHECK(HcclGetCommName(comm, NULL), HCCL_E_PTR);
    CHECK(HcclGetCommName(NULL, name), HCCL_E_PTR);
    CHECK(HcclGetCommName(WRONG, name), HCCL_E_NOT_FOUND);
    CHECK(HcclGetCommName(comm, name), HCCL_SUCCESS);
    CHECK(HcclGetCommName(second, other), HCCL_SUCCESS);
    CHECK_TRUE(name[0] != 0 && strcmp(name, other) != 0);
    CHECK(HcclGetRankId(comm, NULL), HCCL_E_PTR);
    CHECK(HcclGetRankId(NULL, &number), HCCL_E_PTR);
    CHECK(HcclGetRankId(WRONG, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclGetRankSize(comm, NULL), HCCL_E_PTR);
    CHECK(HcclGetRankSize(NULL, &number), HCCL_E_PTR);
    CHECK(HcclGetRankSize(WRONG, &number), HCCL_E_NOT_FOUND);
    CHECK(number, 5);
    CHECK(HcclGetRankId(comm, &number), HCCL_SUCCESS);
    CHECK(number, 0);
    CHECK(HcclGetRankSize(comm, &number), HCCL_SUCCESS);
    CHECK(number, 1);

    CHECK(HcclCommDestroy(NULL), HCCL_E_PTR);
    CHECK(HcclCommDestroy(WRONG), HCCL_E_NOT_FOUND);
    CHECK(HcclCommDestroy(second), HCCL_SUCCESS);
    CHECK(HcclCommDestroy(second), HCCL_E_NOT_FOUND);
    CHECK(HcclGetRankId(second, &number), HCCL_E_NOT_FOUND);
    return comm;
}

/* `thread` is tied to a stream and has 2 notifies, `other` is a kernel's and has 3. */
static void notifies_of_threads(ThreadHandle thread, ThreadHandle other) {
    CHECK(HcommThreadNotifyRecordOnThread(0, other, 0), HCCL_E_PTR);
    CHECK(HcommThreadNotifyRecordOnThread(thread, 0, 0), HCCL_E_PTR);
    CHECK(HcommThreadNotifyRecordOnThread(0x1234, 0, 0), HCCL_E_PTR);
    CHECK(HcommThreadNotifyRecordOnThread(0x1234, other, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyRecordOnThread(thread, 0x1234, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyRecordOnThread(thread, other + 8, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyRecordOnThread(thread, other ^ (uint64_t)1 << 48, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyRecordOnThread(other, thread, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyRecordOnThread(thread, other, 3), HCCL_E_PTR);
    CHECK(HcommThreadNotifyRecordOnThread(thread, other, UINT32_MAX), HCCL_E_PTR);
    CHECK(HcommThreadNotifyWaitOnThread(0, 0, 1), HCCL_E_PTR);
    CHECK(HcommThreadNotifyWaitOnThread(0x1234, 0, 1), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyWaitOnThread(other, 0, 1), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyWaitOnThread(thread, 2, 1), HCCL_E_PTR);
    CHECK(HcommThreadNotifyWaitOnThread(thread, UINT32_MAX, 1), HCCL_E_PTR);
    CHECK(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(0, 0), HCCL_E_PTR);
    CHECK(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(0x1234, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(other, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread, 2), HCCL_E_PTR);
}

static void exports(HcclComm comm, ThreadHandle of_host, const ThreadHandle *two) {
    const CommEngine cpu = COMM_ENGINE_CPU_TS, aicpu = COMM_ENGINE_AICPU_TS;
    ThreadHandle out[2] = {5, 5}, mixed[2] = {two[0], 0x1234}, with_null[2] = {two[0], 0};
    int32_t index = 0;
    HcclComm other;
    CHECK(HcclCommInitAll(1, &index, &other), HCCL_SUCCESS);
    CHECK(HcclThreadExportToCommEngine(NULL, 2, two, cpu, out), HCCL_E_PTR);
    CHECK(HcclThreadExportToCommEngine(WRONG, 2, two, cpu, out), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadExportToCommEngine(comm, 2, NULL, cpu, out), HCCL_E_PTR);
    CHECK(HcclThreadExportToCommEngine(comm, 2, two, cpu, NULL), HCCL_E_PTR);
    CHECK(HcclThreadExportToCommEngine(comm, 0, two, cpu, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, UINT32_MAX, two, cpu, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, 2, two, COMM_ENGINE_RESERVED, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, 2, two, (CommEngine)6, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, 2, two, COMM_ENGINE_AIV, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, 2, two, COMM_ENGINE_CCU, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, 2, mixed, cpu, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, 2, with_null, cpu, out), HCCL_E_PTR);
    /* The engine is looked at before the handles. */
    CHECK(HcclThreadExportToCommEngine(comm, 2, with_null, COMM_ENGINE_RESERVED, out), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(other, 2, two, cpu, out), HCCL_E_PARA);
    enum { EXPORT_MAX = 40 };
    ThreadHandle many[EXPORT_MAX + 1], exported[EXPORT_MAX + 1];
    for (int i = 0; i <= EXPORT_MAX; i++) {
        many[i] = two[0];
    }
    CHECK(HcclThreadExportToCommEngine(comm, EXPORT_MAX + 1, many, cpu, exported), HCCL_E_PARA);
    CHECK(HcclThreadExportToCommEngine(comm, EXPORT_MAX, many, cpu, exported), HCCL_SUCCESS);
    CHECK_TRUE(out[0] == 5 && out[1] == 5);
    CHECK(HcclThreadExportToCommEngine(comm, 2, two, cpu, out), HCCL_SUCCESS);
    CHECK_TRUE(out[0] != 5 && out[1] != 5 && out[0] != out[1]);
    CHECK(HcclThreadExportToCommEngine(comm, 1, &of_host, aicpu, out), HCCL_SUCCESS);
    CHECK(HcclCommDestroy(other), HCCL_SUCCESS);
}

/* More notifies than a device has. */
static void notifies_run_out(void) {
    int32_t index = 0;
    uint32_t created = 0;
    HcclComm comms[2];
    ThreadHandle thread;
    aclrtNotify notifies[3];
    for (int i = 0; i < 2; i++) {
        CHECK(HcclCommInitAll(1, &index, &comms[i]), HCCL_SUCCESS);
        CHECK(HcclThreadAcquire(comms[i], COMM_ENGINE_AICPU_TS, 1, 65535, &thread), HCCL_SUCCESS);
    }
    aclError code = ACL_SUCCESS;
    while (created < 3 && (code = aclrtCreateNotify(&notifies[created], ACL_NOTIFY_DEFAULT)) == ACL_SUCCESS) {
        created++;
    }
    CHECK(code, ACL_ERROR_RT_NO_NOTIFY_RESOURCE);
    CHECK(created, 2);
    CHECK(aclrtDestroyNotify(notifies[0]), ACL_SUCCESS);
    CHECK(aclrtCreateNotify(&notifies[0], ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    for (int i = 0; i < 2; i++) {
        CHECK(aclrtDestroyNotify(notifies[i]), ACL_SUCCESS);
        CHECK(HcclCommDestroy(comms[i]), HCCL_SUCCESS);
    }
}

static void threads(HcclComm comm) {
    ThreadHandle two[2] = {5, 5}, thread = 5, again;
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(HcclThreadAcquire(NULL, COMM_ENGINE_AICPU_TS, 1, 1, two), HCCL_E_PTR);
    CHECK(HcclThreadAcquire(WRONG, COMM_ENGINE_AICPU_TS, 1, 1, two), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 1, NULL), HCCL_E_PTR);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_RESERVED, 1, 1, two), HCCL_E_PARA);
    CHECK(HcclThreadAcquire(comm, (CommEngine)6, 1, 1, two), HCCL_E_PARA);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AIV, 1, 1, two), HCCL_E_PARA);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 0, 1, two), HCCL_E_PARA);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1000000, 1, two), HCCL_E_PARA);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 65536, two), HCCL_E_PARA);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 2, 65535, two), HCCL_E_UNAVAIL);
    CHECK_TRUE(two[0] == 5 && two[1] == 5);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU, 2, 3, two), HCCL_SUCCESS);
    CHECK_TRUE(two[0] != two[1]);

    const CommEngine cpu = COMM_ENGINE_CPU_TS;
    CHECK(HcclThreadAcquireWithStream(NULL, cpu, stream, 1, &thread), HCCL_E_PTR);
    CHECK(HcclThreadAcquireWithStream(WRONG, cpu, stream, 1, &thread), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadAcquireWithStream(comm, cpu, NULL, 1, &thread), HCCL_E_PTR);
    CHECK(HcclThreadAcquireWithStream(comm, cpu, WRONG, 1, &thread), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadAcquireWithStream(comm, cpu, stream, 1, NULL), HCCL_E_PTR);
    CHECK(HcclThreadAcquireWithStream(comm, cpu, stream, 65536, &thread), HCCL_E_PARA);
    CHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_AICPU_TS, stream, 1, &thread), HCCL_E_PARA);
    CHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CCU, stream, 1, &thread), HCCL_E_NOT_SUPPORT);
    CHECK_TRUE(thread == 5);
    CHECK(HcclThreadAcquireWithStream(comm, cpu, stream, 2, &thread), HCCL_SUCCESS);
    CHECK(HcclThreadAcquireWithStream(comm, cpu, stream, 1, &again), HCCL_SUCCESS);
    CHECK_TRUE(thread == again);
    /* With more notifies it is another one, and the first one still works. */
    CHECK(HcclThreadAcquireWithStream(comm, cpu, stream, 3, &again), HCCL_SUCCESS);
    CHECK_TRUE(thread != again);
    CHECK(HcommThreadNotifyRecordOnThread(thread, again, 2), HCCL_SUCCESS);
    CHECK(HcommThreadNotifyWaitOnThread(again, 2, 1), HCCL_SUCCESS);
    CHECK(HcommThreadNotifyRecordOnThread(again, thread, 1), HCCL_SUCCESS);
    CHECK(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread, 1), HCCL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);

    void *ptr;
    CHECK(MALLOC(&ptr, 64), ACL_SUCCESS);
    CHECK(HcommLocalCopyOnThread(thread, NULL, ptr, 0), HCCL_E_PTR);
    CHECK(HcommLocalCopyOnThread(thread, ptr, NULL, 0), HCCL_E_PTR);
    CHECK(HcommLocalCopyOnThread(0, ptr, ptr, 1), HCCL_E_PTR);
    CHECK(HcommLocalCopyOnThread(0x1234, ptr, ptr, 1), HCCL_E_NOT_FOUND);
    CHECK(HcommLocalCopyOnThread(thread, ptr, ptr, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommLocalCopyOnThread(two[0], ptr, ptr, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommLocalReduceOnThread(0, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM), HCCL_E_PTR);
    CHECK(HcommLocalReduceOnThread(thread, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM), HCCL_E_NOT_SUPPORT);
    notifies_of_threads(thread, two[0]);
    exports(comm, thread, two);
    CHECK(HcommAclrtNotifyRecordOnThread(0, 0), HCCL_E_PTR);
    CHECK(HcommAclrtNotifyRecordOnThread(0x1234, 0), HCCL_E_NOT_FOUND);
    CHECK(HcommAclrtNotifyRecordOnThread(two[0], 0), HCCL_E_NOT_FOUND);
    CHECK(HcommAclrtNotifyRecordOnThread(thread, 0), HCCL_E_NOT_SUPPORT);
    CHECK(HcommAclrtNotifyWaitOnThread(0, 0, 1), HCCL_E_PTR);
    CHECK(HcommAclrtNotifyWaitOnThread(0x1234, 0, 1), HCCL_E_NOT_FOUND);
    CHECK(HcommAclrtNotifyWaitOnThread(two[0], 0, 1), HCCL_E_NOT_FOUND);
    CHECK(HcommAclrtNotifyWaitOnThread(thread, 0, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommWriteOnThread(thread, 1, ptr, ptr, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommReadOnThread(thread, 1, ptr, ptr, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommWriteReduceOnThread(thread, 1, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM), HCCL_E_NOT_SUPPORT);
    CHECK(HcommReadReduceOnThread(thread, 1, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM), HCCL_E_NOT_SUPPORT);
    CHECK(HcommWriteWithNotifyOnThread(thread, 1, ptr, ptr, 1, 0), HCCL_E_NOT_SUPPORT);
    CHECK(HcommWriteReduceWithNotifyOnThread(thread, 1, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM, 0),
          HCCL_E_NOT_SUPPORT);
    CHECK(HcommChannelNotifyRecordOnThread(thread, 1, 0), HCCL_E_NOT_SUPPORT);
    CHECK(HcommChannelNotifyWaitOnThread(thread, 1, 0, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommChannelNotifyWaitOnThreadWithDefaultTimeout(thread, 1, 0), HCCL_E_NOT_SUPPORT);
    CHECK(HcommChannelFenceOnThread(thread, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommBatchTransferOnThread(thread, 1, NULL, 0), HCCL_E_NOT_SUPPORT);
    CHECK(HcommSetNotifyWaitTimeOut(1), HCCL_E_NOT_SUPPORT);
    CHECK(hcomm_log_line(HCOMM_LOG_INFO, NULL), HCCL_E_PTR);
    CHECK(hcomm_log_line(0, "level"), HCCL_E_PARA);
    CHECK(hcomm_log_line(6, "level"), HCCL_E_PARA);
    CHECK(HcommThreadResAcquireTimeOut(1), HCCL_E_NOT_SUPPORT);
    CHECK(HcommBatchModeStart("tag"), HCCL_E_NOT_SUPPORT);
    CHECK(HcommBatchModeEnd("tag"), HCCL_E_NOT_SUPPORT);
    CHECK(HcommAcquireComm("comm"), HCCL_E_NOT_SUPPORT);
    CHECK(HcommReleaseComm("comm"), HCCL_E_NOT_SUPPORT);
    CHECK(HcommThreadSynchronize(thread), HCCL_E_NOT_SUPPORT);
    CHECK(HcommThreadJoin(thread, 1), HCCL_E_NOT_SUPPORT);

    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK(HcommLocalCopyOnThread(thread, ptr, ptr, 1), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyRecordOnThread(thread, two[0], 0), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadNotifyWaitOnThread(thread, 0, 1), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadExportToCommEngine(comm, 1, &thread, COMM_ENGINE_AICPU_TS, &again), HCCL_E_PARA);
    CHECK(HcclThreadAcquireWithStream(comm, cpu, stream, 2, &thread), HCCL_E_NOT_FOUND);
    CHECK(aclrtFree(ptr), ACL_SUCCESS);
}

static void resources(HcclComm comm) {
    void *ptr = UNTOUCHED, *same;
    uint64_t size = 5;
    char long_tag[300], bytes[64] = {1};
    memset(long_tag, 'x', sizeof long_tag);
    long_tag[256] = 0;
    const CommEngine engines[2] = {COMM_ENGINE_AICPU_TS, COMM_ENGINE_CPU_TS};
    CHECK(HcclGetHcclBuffer(NULL, &ptr, &size), HCCL_E_PTR);
    CHECK(HcclGetHcclBuffer(WRONG, &ptr, &size), HCCL_E_NOT_FOUND);
    CHECK(HcclGetHcclBuffer(comm, NULL, &size), HCCL_E_PTR);
    CHECK(HcclGetHcclBuffer(comm, &ptr, NULL), HCCL_E_PTR);
    CHECK_TRUE(ptr == UNTOUCHED && size == 5);
    CHECK(HcclGetHcclBuffer(comm, &ptr, &size), HCCL_SUCCESS);
    CHECK(size, (uint64_t)400 << 20);
    CHECK(HcclGetHcclBuffer(comm, &same, &size), HCCL_SUCCESS);
    CHECK_TRUE(ptr == same);

    for (int i = 0; i < 2; i++) {
        const CommEngine engine = engines[i];
        ptr = UNTOUCHED;
        CHECK(HcclEngineCtxCreate(NULL, "tag", engine, 64, &ptr), HCCL_E_PTR);
        CHECK(HcclEngineCtxCreate(WRONG, "tag", engine, 64, &ptr), HCCL_E_NOT_FOUND);
        CHECK(HcclEngineCtxCreate(comm, long_tag, engine, 64, &ptr), HCCL_E_PARA);
        CHECK(HcclEngineCtxCreate(comm, "tag", COMM_ENGINE_RESERVED, 64, &ptr), HCCL_E_PARA);
        CHECK(HcclEngineCtxCreate(comm, "tag", COMM_ENGINE_CCU, 64, &ptr), HCCL_E_NOT_SUPPORT);
        CHECK(HcclEngineCtxCreate(comm, "tag", engine, 0, &ptr), HCCL_E_PARA);
        CHECK(HcclEngineCtxCreate(comm, "tag", engine, 64, NULL), HCCL_E_PTR);
        CHECK_TRUE(ptr == UNTOUCHED);
        CHECK(HcclEngineCtxGet(comm, "tag", engine, &ptr, &size), HCCL_E_PARA);
        CHECK(HcclEngineCtxCreate(comm, "tag", engine, 64, &ptr), HCCL_SUCCESS);
        CHECK(HcclEngineCtxCreate(comm, "tag", engine, 64, &same), HCCL_E_PARA);
        CHECK(HcclEngineCtxGet(NULL, "tag", engine, &same, &size), HCCL_E_PTR);
        CHECK(HcclEngineCtxGet(comm, NULL, engine, &same, &size), HCCL_E_PARA);
        CHECK(HcclEngineCtxGet(comm, "tag", engine, NULL, &size), HCCL_E_PTR);
        CHECK(HcclEngineCtxGet(comm, "tag", engine, &same, NULL), HCCL_E_PTR);
        CHECK(HcclEngineCtxGet(comm, "tag", engine, &same, &size), HCCL_SUCCESS);
        CHECK_TRUE(ptr == same && size == 64);
        CHECK(HcclEngineCtxCopy(NULL, engine, "tag", bytes, 64, 0), HCCL_E_PTR);
        CHECK(HcclEngineCtxCopy(comm, engine, NULL, bytes, 64, 0), HCCL_E_PARA);
        CHECK(HcclEngineCtxCopy(comm, engine, "tag", NULL, 64, 0), HCCL_E_PTR);
        CHECK(HcclEngineCtxCopy(comm, engine, "other", bytes, 64, 0), HCCL_E_PARA);
        CHECK(HcclEngineCtxCopy(comm, engine, "tag", bytes, 64, 1), HCCL_E_PARA);
        CHECK(HcclEngineCtxCopy(comm, engine, "tag", bytes, 64, UINT64_MAX), HCCL_E_PARA);
        CHECK(HcclEngineCtxCopy(comm, engine, "tag", bytes, 32, 32), HCCL_SUCCESS);
        CHECK(HcclEngineCtxCopy(comm, engine, "tag", bytes, 0, 64), HCCL_SUCCESS);
        CHECK(HcclEngineCtxCopy(comm, engine, "tag", NULL, 0, 0), HCCL_SUCCESS);
        CHECK(HcclEngineCtxCopy(comm, engine, "tag", bytes, 0, 65), HCCL_E_PARA);
        char found = 0;
        CHECK(aclrtMemcpy(&found, 1, (char *)ptr + 32, 1, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
        CHECK(found, 1);
        CHECK(HcclEngineCtxDestroy(NULL, "tag", engine), HCCL_E_PTR);
        CHECK(HcclEngineCtxDestroy(comm, NULL, engine), HCCL_E_PARA);
        CHECK(HcclEngineCtxDestroy(comm, "other", engine), HCCL_E_PARA);
        CHECK(HcclEngineCtxDestroy(comm, "tag", engine), HCCL_SUCCESS);
        CHECK(HcclEngineCtxDestroy(comm, "tag", engine), HCCL_E_PARA);
        /* A null tag is the empty one. */
        CHECK(HcclEngineCtxCreate(comm, NULL, engine, 8, &ptr), HCCL_SUCCESS);
        CHECK(HcclEngineCtxCreate(comm, "", engine, 8, &same), HCCL_E_PARA);
        CHECK(HcclEngineCtxCopy(comm, engine, NULL, bytes, 8, 0), HCCL_SUCCESS);
        CHECK(HcclEngineCtxGet(comm, "", engine, &same, &size), HCCL_SUCCESS);
        CHECK_TRUE(ptr == same && size == 8);
        CHECK(HcclEngineCtxDestroy(comm, NULL, engine), HCCL_SUCCESS);
        /* A tag is bytes of any encoding. */
        CHECK(HcclEngineCtxCreate(comm, "\xd6\xd0", engine, 8, &ptr), HCCL_SUCCESS);
        CHECK(HcclEngineCtxGet(comm, "\xd6\xd1", engine, &same, &size), HCCL_E_PARA);
        CHECK(HcclEngineCtxDestroy(comm, "\xd6\xd0", engine), HCCL_SUCCESS);
    }
}

/* Communicators by settings, threads by configuration and without a communicator, channels, kernels from memory. */
static void by_configuration(HcclComm comm) {
    const uint32_t count = 1;
    HcclCommConfig config;
    HcclRootInfo root;
    HcclComm other = UNTOUCHED;
    ThreadConfig threads;
    HcclChannelDesc channel;
    ThreadHandle thread = 7;
    ChannelHandle handle = 7;
    CommLink *links = NULL;
    CommMem mem = {COMM_MEM_TYPE_DEVICE, NULL, 0}, *mems = NULL;
    HcclMemHandle memory = UNTOUCHED;
    HcclOpDesc op;
    HcclKernelFuncInfo info;
    aclrtBinaryLoadOptions options = {NULL, 0};
    void *ptr = UNTOUCHED;
    char **tags = NULL;
    uint64_t size = 7;
    uint32_t number = 7, *list = NULL;
    CommTopo topo = COMM_TOPO_RESERVED;
    HcclCommConfigInit(&config);
    memset(&root, 0, sizeof root);
    memset(&op, 0, sizeof op);
    memset(&info, 0, sizeof info);
    CHECK(ThreadConfigInit(&threads, 1), HCCL_SUCCESS);
    CHECK(HcclChannelDescInit(&channel, 1), HCCL_SUCCESS);

    CHECK(HcclCommInitRootInfoConfig(1, NULL, 0, &config, &other), HCCL_E_PTR);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, NULL, &other), HCCL_E_PTR);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, NULL), HCCL_E_PTR);
    CHECK(HcclCommInitRootInfoConfig(0, &root, 0, &config, &other), HCCL_E_PARA);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 1, &config, &other), HCCL_E_PARA);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, &other), HCCL_E_PARA);
    CHECK(HcclGetHcclBufferCleared(NULL, &ptr, &size), HCCL_E_PTR);
    CHECK(HcclGetHcclBufferCleared(comm, NULL, &size), HCCL_E_PTR);
    CHECK(HcclGetHcclBufferCleared(comm, &ptr, NULL), HCCL_E_PTR);
    CHECK(HcclGetHcclBufferCleared(WRONG, &ptr, &size), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadAcquireWithConfig(NULL, COMM_ENGINE_AICPU, 1, THREAD_TYPE_TS, &threads, &thread), HCCL_E_PTR);
    CHECK(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_AICPU, 1, THREAD_TYPE_TS, NULL, &thread), HCCL_E_PTR);
    CHECK(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_AICPU, 1, THREAD_TYPE_TS, &threads, NULL), HCCL_E_PTR);
    CHECK(HcclThreadAcquireWithConfig(WRONG, COMM_ENGINE_AICPU, 1, THREAD_TYPE_TS, &threads, &thread), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_AICPU, 0, THREAD_TYPE_TS, &threads, &thread), HCCL_E_PARA);
    CHECK(HcclThreadResGetInfo(NULL, 1, THREAD_RES_TYPE_STREAM, 8, &ptr), HCCL_E_PTR);
    CHECK(HcclThreadResGetInfo(comm, 0, THREAD_RES_TYPE_STREAM, 8, &ptr), HCCL_E_PTR);
    CHECK(HcclThreadResGetInfo(comm, 1, THREAD_RES_TYPE_STREAM, 8, NULL), HCCL_E_PTR);
    CHECK(HcclThreadResGetInfo(comm, 1, THREAD_RES_TYPE_STREAM, 7, &ptr), HCCL_E_PARA);
    CHECK(HcclThreadResGetInfo(comm, 1, THREAD_RES_TYPE_STREAM, 8, &ptr), HCCL_E_NOT_FOUND);
    CHECK(HcclThreadResGetInfo(WRONG, 1, THREAD_RES_TYPE_STREAM, 8, &ptr), HCCL_E_NOT_FOUND);
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 1, NULL, &thread), HCCL_E_PTR);
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 1, &count, NULL), HCCL_E_PTR);
    CHECK(HcommThreadAlloc(COMM_ENGINE_RESERVED, 1, &count, &thread), HCCL_E_PARA);
    CHECK(HcommThreadFree(NULL, 1), HCCL_E_PTR);
    CHECK(HcommThreadFree(&thread, 0), HCCL_E_PARA);
    CHECK(HcommThreadFree(&thread, 1), HCCL_E_NOT_FOUND);

    CHECK(HcclChannelAcquire(NULL, COMM_ENGINE_AICPU_TS, &channel, 1, &handle), HCCL_E_PTR);
    CHECK(HcclChannelAcquire(comm, COMM_ENGINE_AICPU_TS, NULL, 1, &handle), HCCL_E_PTR);
    CHECK(HcclChannelAcquire(comm, COMM_ENGINE_AICPU_TS, &channel, 1, NULL), HCCL_E_PTR);
    CHECK(HcclChannelAcquire(WRONG, COMM_ENGINE_AICPU_TS, &channel, 0, &handle), HCCL_E_NOT_FOUND);
    CHECK(HcclChannelQuery(NULL, COMM_ENGINE_AICPU_TS, &channel, 1, &handle), HCCL_E_PTR);
    CHECK(HcclChannelQuery(comm, COMM_ENGINE_AICPU_TS, NULL, 1, &handle), HCCL_E_PTR);
    CHECK(HcclChannelQuery(WRONG, COMM_ENGINE_AICPU_TS, &channel, 1, &handle), HCCL_E_NOT_FOUND);
    CHECK(HcclChannelDestroy(NULL, &handle, 1), HCCL_E_PTR);
    CHECK(HcclChannelDestroy(comm, NULL, 1), HCCL_E_PTR);
    CHECK(HcclChannelDestroy(WRONG, &handle, 1), HCCL_E_NOT_FOUND);
    CHECK(HcclChannelGetHcclBuffer(NULL, handle, &ptr, &size), HCCL_E_PTR);
    CHECK(HcclChannelGetHcclBuffer(comm, handle, &ptr, NULL), HCCL_E_PTR);
    CHECK(HcclChannelGetHcclBuffer(comm, 0, &ptr, &size), HCCL_E_PTR);
    CHECK(HcclChannelGetHcclBuffer(comm, handle, &ptr, &size), HCCL_E_NOT_FOUND);
    CHECK(HcclChannelGetHcclBuffer(WRONG, handle, &ptr, &size), HCCL_E_NOT_FOUND);
    CHECK(HcclChannelGetRemoteMems(comm, handle, NULL, &mems, &tags), HCCL_E_PTR);
    CHECK(HcclChannelGetRemoteMems(WRONG, handle, &number, &mems, &tags), HCCL_E_NOT_FOUND);
    CHECK(HcclCommMemReg(comm, NULL, &mem, &memory), HCCL_E_PTR);
    CHECK(HcclCommMemReg(WRONG, "tag", &mem, &memory), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetLinks(comm, 0, 0, 1, NULL, &number), HCCL_E_PTR);
    CHECK(HcclRankGraphGetLinks(WRONG, 0, 0, 1, &links, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetLinks(comm, 0, 1, 1, &links, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetLinks(comm, 1, 0, 1, &links, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetLinks(comm, 0, 0, 1, &links, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetRankSizeByLayer(comm, 0, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetRankSizeByLayer(WRONG, 0, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetRankSizeByLayer(comm, 1, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetLayers(comm, NULL, &number), HCCL_E_PTR);
    CHECK(HcclRankGraphGetLayers(comm, &list, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetLayers(WRONG, &list, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetRanksByLayer(comm, 0, NULL, &number), HCCL_E_PTR);
    CHECK(HcclRankGraphGetRanksByLayer(comm, 1, &list, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetRanksByLayer(WRONG, 0, &list, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetTopoTypeByLayer(comm, 0, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetTopoTypeByLayer(comm, 1, &topo), HCCL_E_PARA);
    CHECK(HcclRankGraphGetTopoTypeByLayer(WRONG, 0, &topo), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetInstSizeListByLayer(comm, 0, NULL, &number), HCCL_E_PTR);
    CHECK(HcclRankGraphGetInstSizeListByLayer(WRONG, 0, &list, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetTopoInstsByLayer(comm, 0, NULL, &number), HCCL_E_PTR);
    CHECK(HcclRankGraphGetTopoInstsByLayer(WRONG, 0, &list, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetTopoType(comm, 0, 0, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetTopoType(WRONG, 0, 0, &topo), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetRanksByTopoInst(comm, 0, 0, &list, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetRanksByTopoInst(WRONG, 0, 0, &list, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetEndpointNum(comm, 0, 0, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetEndpointNum(WRONG, 0, 0, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetEndpointDesc(comm, 0, 0, &number, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetEndpointDesc(WRONG, 0, 0, &number, &channel.localEndpoint), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetEndpointInfo(comm, 0, NULL, ENDPOINT_ATTR_DIE_ID, 4, &number), HCCL_E_PTR);
    CHECK(HcclRankGraphGetEndpointInfo(WRONG, 0, &channel.localEndpoint, ENDPOINT_ATTR_DIE_ID, 4, &number),
          HCCL_E_NOT_FOUND);
    CHECK(HcclCommInitClusterInfo(NULL, 0, &other), HCCL_E_PTR);
    CHECK(HcclCommInitClusterInfo("ranks.json", 0, NULL), HCCL_E_PTR);
    CHECK(HcclCommInitClusterInfo("ranks.json", 0, &other), HCCL_E_NOT_SUPPORT);
    CHECK(HcclCommInitClusterInfoConfig("ranks.json", 0, NULL, &other), HCCL_E_PTR);
    CHECK(HcclCommInitClusterInfoConfig("ranks.json", 0, &config, &other), HCCL_E_NOT_SUPPORT);
    CHECK(HcclAicpuKernelLaunch(comm, NULL, &info, 0, NULL, NULL), HCCL_E_PTR);
    CHECK(HcclAicpuKernelLaunch(WRONG, &op, &info, 0, NULL, NULL), HCCL_E_NOT_FOUND);

    CHECK(aclrtBinaryLoadFromData(NULL, 1, &options, &ptr), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryLoadFromData(&root, 1, &options, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryLoadFromData(&root, sizeof root, &options, &ptr), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRegisterCpuFunc(NULL, "f", "k", &ptr), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRegisterCpuFunc(WRONG, NULL, "k", &ptr), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRegisterCpuFunc(WRONG, "f", NULL, &ptr), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRegisterCpuFunc(WRONG, "f", "k", NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRegisterCpuFunc(WRONG, "f", "k", &ptr), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK_TRUE(ptr == UNTOUCHED && other == UNTOUCHED && memory == UNTOUCHED && links == NULL && mems == NULL);
    CHECK_TRUE(list == NULL && topo == COMM_TOPO_RESERVED);
    CHECK_TRUE(thread == 7 && handle == 7 && size == 7 && number == 7);
}

#endif /* MISUSE_COMM_H */
