/* Communicators with settings, threads by configuration and without a communicator, streams of threads, a cleared buffer, kernels
 * from memory, and what functions of channels answer. C11 and C++17.
 *
 *   resources DESCRIPTION LIBRARY
 */

#include "hccl/hccl_channel.h"
#include "hccl/hccl_launch.h"
#include "hccl/hccl_rank_graph.h"
#include "hcomm/hcomm_res.h"
#include "session.h"

static void communicator_with_settings(void) {
    HcclCommConfig config;
    HcclRootInfo root;
    HcclComm comm = NULL, second = NULL;
    char name[COMM_NAME_MAX_LENGTH];
    void *buffer = NULL;
    uint64_t size = 0;
    unsigned char bytes[2] = {1, 1};
    HcclCommConfigInit(&config);
    config.hcclBufferSize = 3;
    strcpy(config.hcclCommName, "my group");
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm), HCCL_SUCCESS);
    CHECK(HcclGetCommName(comm, name), HCCL_SUCCESS);
    CHECK(strcmp(name, "my group"), 0);
    CHECK(HcclGetHcclBuffer(comm, &buffer, &size), HCCL_SUCCESS);
    CHECK(size, 6u << 20);

    CHECK(aclrtMemset(buffer, size, 9, size), ACL_SUCCESS);
    CHECK(HcclGetHcclBufferCleared(comm, &buffer, &size), HCCL_SUCCESS);
    CHECK(size, 6u << 20);
    CHECK(aclrtMemcpy(bytes, 1, buffer, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(aclrtMemcpy(bytes + 1, 1, (char *)buffer + size - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK_TRUE(bytes[0] == 0 && bytes[1] == 0);

    /* A name is unique on a device, and free again when its communicator is gone. */
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, &second), HCCL_E_PARA);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "\"my group\" is in use") != NULL);
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, &second), HCCL_SUCCESS);
    CHECK(HcclCommDestroy(second), HCCL_SUCCESS);

    /* Settings that were not initialised, and wrong ones. */
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    config.hcclBufferSize = 0;
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, &second), HCCL_E_PARA);
    HcclCommConfigInit(&config);
    memset(config.hcclCommName, 'x', sizeof config.hcclCommName);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, &second), HCCL_E_PARA);
    memset(&config, 0, sizeof config);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, &config, &second), HCCL_E_PARA);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "HcclCommConfigInit") != NULL);
    CHECK(HcclCommInitRootInfoConfig(1, &root, 0, NULL, &second), HCCL_E_PTR);
    (void)aclrtGetRecentErrMsg();
}

static void threads_by_configuration(Session *session) {
    ThreadConfig config;
    ThreadHandle threads[2] = {0, 0};
    CHECK(ThreadConfigInit(NULL, 1), HCCL_E_PTR);
    CHECK(ThreadConfigInit(&config, 1), HCCL_SUCCESS);
    config.notifyNumPerThread = 3;
    CHECK(HcclThreadAcquireWithConfig(session->comm, COMM_ENGINE_AICPU, 2, THREAD_TYPE_TS, &config, threads), HCCL_SUCCESS);
    CHECK_TRUE(threads[0] != 0 && threads[1] != 0 && threads[0] != threads[1]);
    CHECK(HcommThreadNotifyRecordOnThread(session->pair.cpuThread, threads[1], 3), HCCL_E_PTR);
    CHECK(HcclThreadAcquireWithConfig(session->comm, COMM_ENGINE_AICPU, 1, THREAD_TYPE_INVALID, &config, threads),
          HCCL_E_PARA);
    CHECK(HcclThreadAcquireWithConfig(session->comm, COMM_ENGINE_AIV, 1, THREAD_TYPE_TS, &config, threads), HCCL_E_PARA);
    memset(&config, 0, sizeof config);
    CHECK(HcclThreadAcquireWithConfig(session->comm, COMM_ENGINE_AICPU, 1, THREAD_TYPE_TS, &config, threads), HCCL_E_PARA);
    CHECK(HcclThreadAcquireWithConfig(session->comm, COMM_ENGINE_AICPU, 1, THREAD_TYPE_TS, NULL, threads), HCCL_E_PTR);
    (void)aclrtGetRecentErrMsg();
}

static void streams_of_threads(Session *session) {
    void *stream = NULL;
    ThreadHandle own;
    const uint32_t len = sizeof stream;
    CHECK(HcclThreadResGetInfo(session->comm, session->pair.cpuThread, THREAD_RES_TYPE_STREAM, len, &stream), HCCL_SUCCESS);
    CHECK_TRUE(stream == session->stream);
    /* A thread of the host that was acquired without a stream has one, always the same. */
    CHECK(HcclThreadAcquire(session->comm, COMM_ENGINE_CPU, 1, 0, &own), HCCL_SUCCESS);
    CHECK(HcclThreadResGetInfo(session->comm, own, THREAD_RES_TYPE_STREAM, len, &stream), HCCL_SUCCESS);
    void *again = NULL;
    CHECK(HcclThreadResGetInfo(session->comm, own, THREAD_RES_TYPE_STREAM, len, &again), HCCL_SUCCESS);
    CHECK_TRUE(again == stream && stream != session->stream);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(HcclThreadResGetInfo(session->comm, session->param.thread, THREAD_RES_TYPE_STREAM, len, &stream),
          HCCL_E_NOT_SUPPORT);
    CHECK(HcclThreadResGetInfo(session->comm, own, THREAD_RES_TYPE_INVALID, len, &stream), HCCL_E_PARA);
    CHECK(HcclThreadResGetInfo(session->comm, own, THREAD_RES_TYPE_STREAM, 4, &stream), HCCL_E_PARA);
    CHECK(HcclThreadResGetInfo(session->comm, 0, THREAD_RES_TYPE_STREAM, len, &stream), HCCL_E_PTR);
    CHECK(HcclThreadResGetInfo(session->comm, 5, THREAD_RES_TYPE_STREAM, len, &stream), HCCL_E_NOT_FOUND);
    (void)aclrtGetRecentErrMsg();
}

static void threads_without_a_communicator(Session *session) {
    const uint32_t notifies[3] = {0, 1, 64}, too_many[2] = {1, 65};
    ThreadHandle threads[3] = {0, 0, 0}, last = 7;
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 3, notifies, threads), HCCL_SUCCESS);
    /* A kernel works on such a thread as on any other. */
    Session pooled = *session;
    pooled.param.thread = threads[1];
    pooled.pair.aicpuThreadOnCpu = threads[1];
    session_copy(&pooled, 5);
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 2, too_many, &last), HCCL_E_PARA);
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 0, notifies, &last), HCCL_E_PARA);
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 1001, notifies, &last), HCCL_E_PARA);
    CHECK(HcommThreadAlloc(COMM_ENGINE_CCU, 1, notifies, &last), HCCL_E_PARA);
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 1, NULL, &last), HCCL_E_PTR);
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 1, notifies, NULL), HCCL_E_PTR);
    CHECK(last, 7);
    CHECK(HcommThreadFree(&session->param.thread, 1), HCCL_E_PARA);
    CHECK(HcommThreadFree(NULL, 1), HCCL_E_PTR);
    CHECK(HcommThreadFree(threads, 0), HCCL_E_PARA);
    CHECK(HcommThreadFree(threads, 3), HCCL_SUCCESS);
    CHECK(HcommThreadFree(threads, 3), HCCL_E_NOT_FOUND);
    (void)aclrtGetRecentErrMsg();
    session_copy(session, 6);
}

static void channels(Session *session) {
    HcclChannelDesc desc;
    CommLink link, *links = NULL;
    CommMem mem = {COMM_MEM_TYPE_DEVICE, NULL, 0}, *mems = NULL;
    HcclMemHandle handle;
    ChannelHandle channel = 9;
    char **tags;
    void *buffer;
    uint64_t size;
    uint32_t number = 5;
    CHECK(HcclChannelDescInit(&desc, 1), HCCL_SUCCESS);
    CHECK(HcclChannelDescInit(NULL, 0), HCCL_SUCCESS);
    CHECK(HcclChannelDescInit(NULL, 1), HCCL_E_PTR);
    CHECK_TRUE(desc.header.version == 1 && desc.header.magicWord == 0x0f0f0f0f && desc.header.size == 496);
    CHECK_TRUE(desc.remoteRank == UINT32_MAX && desc.channelProtocol == COMM_PROTOCOL_RESERVED);
    CHECK_TRUE(desc.localEndpoint.protocol == COMM_PROTOCOL_RESERVED && desc.remoteEndpoint.raws[51] == 0xff);
    CHECK_TRUE(desc.notifyNum == 0 && desc.memHandles == NULL && desc.memHandleNum == 0 && desc.roceAttr.tc == 0xff);
    CHECK(CommLinkInit(&link, 1), HCCL_SUCCESS);
    CHECK_TRUE(link.header.magicWord == 0x0f0e0f0f && link.header.size == 464 && link.linkAttr.hop == 1);
    CHECK(link.linkAttr.linkProtocol, COMM_PROTOCOL_RESERVED);
    CHECK(EndpointDescInit(NULL, 1), HCCL_E_PTR);

    CHECK(HcclChannelAcquire(session->comm, COMM_ENGINE_AICPU_TS, &desc, 0, &channel), HCCL_SUCCESS);
    CHECK(HcclChannelAcquire(session->comm, COMM_ENGINE_AICPU_TS, &desc, 1, &channel), HCCL_E_PARA);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "channelProtocol is -1") != NULL);
    CHECK(HcclChannelAcquire(session->comm, COMM_ENGINE_AICPU_TS, NULL, 1, &channel), HCCL_E_PTR);
    CHECK(HcclChannelAcquire(NULL, COMM_ENGINE_AICPU_TS, &desc, 0, &channel), HCCL_E_PTR);
    CHECK(HcclChannelQuery(session->comm, COMM_ENGINE_AICPU_TS, &desc, 1, &channel), HCCL_E_PARA);
    CHECK(HcclChannelDestroy(session->comm, &channel, 1), HCCL_E_NOT_SUPPORT);
    CHECK(HcclChannelGetHcclBuffer(session->comm, channel, &buffer, &size), HCCL_E_NOT_FOUND);
    CHECK(HcclChannelGetHcclBuffer(session->comm, channel, NULL, &size), HCCL_E_PTR);
    CHECK(HcclChannelGetRemoteMems(session->comm, channel, &number, &mems, &tags), HCCL_E_NOT_FOUND);
    CHECK(HcclCommMemReg(session->comm, "tag", &mem, &handle), HCCL_E_NOT_SUPPORT);
    CHECK(HcclRankGraphGetLinks(session->comm, 0, 0, 1, &links, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetLinks(session->comm, 0, 1, 1, &links, &number), HCCL_E_PARA);
    CHECK_TRUE(channel == 9 && number == 5);
    CHECK(HcclRankGraphGetRankSizeByLayer(session->comm, 1, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetRankSizeByLayer(session->comm, 0, &number), HCCL_SUCCESS);
    CHECK(number, 1);
    HcclOpDesc op;
    HcclKernelFuncInfo info;
    memset(&op, 0, sizeof op);
    memset(&info, 0, sizeof info);
    CHECK(HcclAicpuKernelLaunch(session->comm, &op, &info, session->param.thread, session->stream, NULL),
          HCCL_E_NOT_SUPPORT);
    (void)aclrtGetRecentErrMsg();
}

/* The library as bytes; the file could be gone by then. */
static void kernels_from_memory(Session *session, const char *library) {
    static char bytes[1 << 20];
    aclrtBinaryLoadOption option;
    aclrtBinaryLoadOptions options = {&option, 1};
    aclrtBinHandle binary = NULL, other = NULL;
    aclrtFuncHandle found = NULL;
    size_t len;
    FILE *const file = fopen(library, "rb");
    CHECK_TRUE(file != NULL);
    len = fread(bytes, 1, sizeof bytes, file);
    CHECK_TRUE(len > 0 && len < sizeof bytes && fclose(file) == 0);
    memset(&option, 0, sizeof option);
    option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 1;
    CHECK(aclrtBinaryLoadFromData(bytes, len, &options, &binary), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryLoadFromData(bytes, len, NULL, &binary), ACL_ERROR_INVALID_PARAM);
    option.value.cpuKernelMode = 2;
    CHECK(aclrtBinaryLoadFromData(NULL, len, &options, &binary), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryLoadFromData(bytes, 0, &options, &binary), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryLoadFromFile(library, &options, &binary), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(binary == NULL);
    CHECK(aclrtBinaryLoadFromData(bytes, len, &options, &binary), ACL_SUCCESS);
    memset(bytes, 0, len);
    CHECK(aclrtBinaryGetFunction(binary, "Mine", &found), 100024);
    CHECK(aclrtRegisterCpuFunc(binary, "no_such_function", "Mine", &found), 100029);
    CHECK(aclrtRegisterCpuFunc(session->binary, "copy_len", "Mine", &found), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRegisterCpuFunc(binary, NULL, "Mine", &found), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(found == NULL);
    CHECK(aclrtRegisterCpuFunc(binary, "copy_len", "Mine", &session->function), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "Mine", &found), ACL_SUCCESS);
    CHECK_TRUE(found == session->function);
    (void)aclrtGetRecentErrMsg();
    session_copy(session, 7);
    CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    CHECK(aclrtRegisterCpuFunc(binary, "copy_len", "Mine", &found), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryLoadFromData(bytes, 0, &options, &other), ACL_ERROR_INVALID_PARAM);
    (void)aclrtGetRecentErrMsg();
}

int main(int argc, char **argv) {
    Session session;
    if (argc != 3) {
        return 2;
    }
    session_open(&session, argv[1], "CopyLen");
    communicator_with_settings();
    threads_by_configuration(&session);
    streams_of_threads(&session);
    threads_without_a_communicator(&session);
    channels(&session);
    kernels_from_memory(&session, argv[2]);
    CHECK(HcclCommDestroy(session.comm), HCCL_SUCCESS);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    puts("resources");
    return 0;
}
