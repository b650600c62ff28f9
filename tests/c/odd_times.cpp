/* Calls every function of the host, once and rightly, at a time when programs do so seldom; prints a line "CALL CODE" for
 * each. docs/c-api.md has them as a table. C++17.
 *
 *   odd_times DESCRIPTION TIME      TIME: normal, atexit, destructor, thread-exit, fork, failed
 */

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "hccl/hccl_channel.h"
#include "hccl/hccl_launch.h"
#include "hccl/hccl_rank_graph.h"
#include "hcomm/hcomm_log.h"
#include "hcomm/hcomm_res.h"
#include "session.h"

namespace {

const char *description, *moment;
Session session;
aclrtNotify notify;
aclrtEvent event, reached;
ThreadHandle pooled;
HcclRootInfo second_root;
char *library;
size_t library_len;
aclrtArgsHandle args;
HcclRootInfo root;
pthread_key_t key;

// At exit the buffers of stdio may be gone.
void report(const char *call, long code) { dprintf(1, "%.*s %ld\n", (int)strcspn(call, "("), call, code); }
void report(const char *call, const char *text) {
    dprintf(1, "%.*s %s\n", (int)strcspn(call, "("), call, text == nullptr ? "null" : "text");
}

#define CALL(call) report(#call, call)

// The library beside the description, in memory.
void read_library() {
    std::string path(description);
    path.replace(path.find_last_of('/') + 1, std::string::npos, "libcopy_kernel.so");
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK_TRUE(!bytes.empty());
    library_len = bytes.size();
    library = static_cast<char *>(malloc(library_len));
    memcpy(library, bytes.data(), library_len);
}

void prepare() {
    // A thread that has had a message before its end has another one later.
    CHECK(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(aclrtGetRecentErrMsg() != nullptr);
    session_open(&session, description, "CopyLen");
    session_copy(&session, 1);
    CHECK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    CHECK(HcclGetRootInfo(&second_root), HCCL_SUCCESS);
    CHECK(aclrtCreateEvent(&event), ACL_SUCCESS);
    CHECK(aclrtCreateEvent(&reached), ACL_SUCCESS);
    CHECK(aclrtRecordEvent(reached, session.stream), ACL_SUCCESS);
    CHECK(aclrtSynchronizeEvent(reached), ACL_SUCCESS);
    const uint32_t notifies = 1;
    CHECK(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 1, &notifies, &pooled), HCCL_SUCCESS);
    read_library();
    CHECK(aclrtKernelArgsInit(session.function, &args), ACL_SUCCESS);
}

void call_device_and_memory() {
    uint32_t count;
    void *ptr;
    char bytes[16] = {1};
    CALL(aclrtGetSocName());
    CALL(aclrtGetDeviceCount(&count));
    int32_t physical;
    CALL(aclrtGetPhyDevIdByLogicDevId(0, &physical));
    // The last error of this thread, whatever it was, is taken first.
    (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    CALL(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
    CALL(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    CALL(aclrtSetDevice(0));
    CALL(aclrtMalloc(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CALL(aclrtMallocWithCfg(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST, nullptr));
    report("aclrtMemcpy to", aclrtMemcpy(session.param.userIn, 16, bytes, 16, ACL_MEMCPY_HOST_TO_DEVICE));
    report("aclrtMemcpy from", aclrtMemcpy(bytes, 16, session.param.userIn, 16, ACL_MEMCPY_DEVICE_TO_HOST));
    size_t free_bytes, total;
    CALL(aclrtMemset(session.param.userIn, 16, 1, 16));
    CALL(aclrtMemsetAsync(session.param.userIn, 16, 1, 16, session.stream));
    CALL(aclrtMemcpyAsync(session.param.cclBuf, 16, session.param.userIn, 16, ACL_MEMCPY_DEVICE_TO_DEVICE, session.stream));
    CALL(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
    void *host = nullptr;
    CALL(aclrtMallocHost(&host, 64));
    if (host == nullptr) {
        host = bytes;
    }
    CALL(aclrtFreeHost(host));
}

void call_streams_and_notifies() {
    aclrtStream stream;
    aclrtNotify second;
    uint32_t id;
    int32_t number;
    CALL(aclrtCreateStream(&stream));
    CALL(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH));
    CALL(aclrtStreamGetId(session.stream, &number));
    CALL(aclrtCreateNotify(&second, ACL_NOTIFY_DEFAULT));
    CALL(aclrtGetNotifyId(notify, &id));
    CALL(aclrtRecordNotify(notify, session.stream));
    CALL(aclrtWaitAndResetNotify(notify, session.stream, 30));
    aclrtEvent made;
    aclrtEventRecordedStatus status;
    float ms;
    CALL(aclrtCreateEvent(&made));
    CALL(aclrtCreateEventWithFlag(&made, ACL_EVENT_SYNC));
    CALL(aclrtRecordEvent(event, session.stream));
    CALL(aclrtStreamWaitEvent(session.stream, event));
    CALL(aclrtQueryEventStatus(event, &status));
    CALL(aclrtSynchronizeEvent(event));
    CALL(aclrtEventElapsedTime(&ms, reached, reached));
    CALL(aclrtDestroyEvent(event));
}

void call_communicator() {
    HcclComm comm;
    int32_t device = 0;
    char name[COMM_NAME_MAX_LENGTH], bytes[8] = {1};
    uint32_t number;
    uint64_t size;
    ThreadHandle thread;
    void *ptr;
    CALL(HcclGetErrorString(HCCL_SUCCESS));
    CALL(HcclCommInitAll(1, &device, &comm));
    CALL(HcclCommInitRootInfo(1, &root, 0, &comm));
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    CALL(HcclCommInitRootInfoConfig(1, &second_root, 0, &config, &comm));
    CALL(HcclGetRootInfo(&root));
    CALL(HcclGetCommName(session.comm, name));
    CALL(HcclGetRankId(session.comm, &number));
    CALL(HcclGetRankSize(session.comm, &number));
    CALL(HcclThreadAcquire(session.comm, COMM_ENGINE_AICPU_TS, 1, 1, &thread));
    CALL(HcclThreadAcquireWithStream(session.comm, COMM_ENGINE_CPU_TS, session.stream, 1, &thread));
    CALL(HcclThreadExportToCommEngine(session.comm, 1, &session.param.thread, COMM_ENGINE_CPU_TS, &thread));
    CALL(HcclGetHcclBuffer(session.comm, &ptr, &size));
    CALL(HcclGetHcclBufferCleared(session.comm, &ptr, &size));
    ThreadConfig threads;
    (void)ThreadConfigInit(&threads, 1);
    CALL(HcclThreadAcquireWithConfig(session.comm, COMM_ENGINE_AICPU_TS, 1, THREAD_TYPE_TS, &threads, &thread));
    CALL(HcclThreadResGetInfo(session.comm, session.pair.cpuThread, THREAD_RES_TYPE_STREAM, sizeof ptr, &ptr));
    const uint32_t notifies = 1;
    CALL(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 1, &notifies, &thread));
    CALL(HcommThreadFree(&pooled, 1));
    HcclChannelDesc channel;
    (void)HcclChannelDescInit(&channel, 1);
    ChannelHandle handle = 0;
    CommLink *links;
    CommMem *mems, mem = {COMM_MEM_TYPE_DEVICE, session.param.userIn, 16};
    HcclMemHandle mem_handle;
    char **tags;
    CALL(HcclChannelAcquire(session.comm, COMM_ENGINE_AICPU_TS, &channel, 0, &handle));
    CALL(HcclChannelQuery(session.comm, COMM_ENGINE_AICPU_TS, &channel, 0, &handle));
    CALL(HcclChannelDestroy(session.comm, &handle, 1));
    const ChannelHandle none = 1;
    CALL(HcclChannelGetHcclBuffer(session.comm, none, &ptr, &size));
    CALL(HcclChannelGetRemoteMems(session.comm, none, &number, &mems, &tags));
    CALL(HcclCommMemReg(session.comm, "tag", &mem, &mem_handle));
    CALL(HcclRankGraphGetLinks(session.comm, 0, 0, 1, &links, &number));
    CALL(HcclRankGraphGetRankSizeByLayer(session.comm, 0, &number));
    uint32_t *list;
    CommTopo topo;
    EndpointDesc endpoint;
    (void)EndpointDescInit(&endpoint, 1);
    CALL(HcclRankGraphGetLayers(session.comm, &list, &number));
    CALL(HcclRankGraphGetRanksByLayer(session.comm, 0, &list, &number));
    CALL(HcclRankGraphGetTopoTypeByLayer(session.comm, 0, &topo));
    CALL(HcclRankGraphGetInstSizeListByLayer(session.comm, 0, &list, &number));
    CALL(HcclRankGraphGetTopoInstsByLayer(session.comm, 0, &list, &number));
    CALL(HcclRankGraphGetTopoType(session.comm, 0, 0, &topo));
    CALL(HcclRankGraphGetRanksByTopoInst(session.comm, 0, 0, &list, &number));
    CALL(HcclRankGraphGetEndpointNum(session.comm, 0, 0, &number));
    CALL(HcclRankGraphGetEndpointDesc(session.comm, 0, 0, &number, &endpoint));
    CALL(HcclRankGraphGetEndpointInfo(session.comm, 0, &endpoint, ENDPOINT_ATTR_DIE_ID, sizeof number, &number));
    HcclComm by_table;
    CALL(HcclCommInitClusterInfo("ranks.json", 0, &by_table));
    CALL(HcclCommInitClusterInfoConfig("ranks.json", 0, &config, &by_table));
    const HcclOpDesc op = {};
    const HcclKernelFuncInfo info = {};
    CALL(HcclAicpuKernelLaunch(session.comm, &op, &info, session.param.thread, session.stream, nullptr));
    CALL(HcclEngineCtxCreate(session.comm, "tag", COMM_ENGINE_CPU_TS, 8, &ptr));
    CALL(HcclEngineCtxCopy(session.comm, COMM_ENGINE_CPU_TS, "tag", bytes, 8, 0));
    CALL(HcclEngineCtxGet(session.comm, "tag", COMM_ENGINE_CPU_TS, &ptr, &size));
    CALL(HcclEngineCtxDestroy(session.comm, "tag", COMM_ENGINE_CPU_TS));
}

void call_kernel() {
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    aclrtArgsHandle second;
    aclrtParamHandle place;
    CopyParams param = session.param;
    const ControlPair &pair = session.pair;
    param.len = SESSION_LEN;
    CALL(aclrtBinaryLoadFromFile(description, nullptr, &binary));
    CALL(aclrtBinaryGetFunction(session.binary, "CopyLen", &function));
    aclrtBinaryLoadOption in_data = {ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE, {}};
    in_data.value.cpuKernelMode = 2;
    const aclrtBinaryLoadOptions options = {&in_data, 1};
    binary = session.binary;
    CALL(aclrtBinaryLoadFromData(library, library_len, &options, &binary));
    CALL(aclrtRegisterCpuFunc(binary, "copy_len", "CopyOfData", &function));
    CALL(aclrtKernelArgsInit(session.function, &second));
    CALL(aclrtKernelArgsAppend(args, &param, sizeof param, &place));
    CALL(aclrtKernelArgsFinalize(args));
    CALL(HcommThreadNotifyRecordOnThread(pair.cpuThread, pair.aicpuThreadOnCpu, 0));
    CALL(aclrtLaunchKernelWithConfig(session.function, 1, session.stream, nullptr, args, nullptr));
    CALL(HcommThreadNotifyWaitOnThread(pair.cpuThread, 0, 30));
    (void)HcommThreadNotifyRecordOnThread(pair.cpuThread, pair.aicpuThreadOnCpu, 0);
    CALL(aclrtLaunchKernelWithHostArgs(session.function, 1, session.stream, nullptr, &param, sizeof param, nullptr, 0));
    CALL(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(pair.cpuThread, 0));
    CALL(aclrtSynchronizeStream(session.stream));
    CALL(aclrtSynchronizeStreamWithTimeout(session.stream, 30000));
    CALL(aclrtSynchronizeDevice());
}

// What Atlas 350 has in kernels alone.
void call_what_kernels_call() {
    const ThreadHandle thread = session.param.thread;
    void *const ptr = session.param.userIn;
    CALL(HcommLocalCopyOnThread(thread, ptr, ptr, 1));
    CALL(HcommLocalReduceOnThread(thread, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM));
    CALL(HcommAclrtNotifyRecordOnThread(session.pair.cpuThread, 0));
    CALL(HcommAclrtNotifyWaitOnThread(session.pair.cpuThread, 0, 1));
    CALL(HcommSetNotifyWaitTimeOut(1));
    CALL(hcomm_log_line(HCOMM_LOG_INFO, "line"));
    CALL(HcommThreadResAcquireTimeOut(1));
    CALL(HcommBatchModeStart(nullptr));
    CALL(HcommBatchModeEnd(nullptr));
    CALL(HcommAcquireComm("comm"));
    CALL(HcommReleaseComm("comm"));
    CALL(HcommThreadSynchronize(thread));
    CALL(HcommThreadJoin(thread, 1));
    CALL(HcommWriteOnThread(thread, 1, ptr, ptr, 1));
    CALL(HcommReadOnThread(thread, 1, ptr, ptr, 1));
    CALL(HcommWriteReduceOnThread(thread, 1, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM));
    CALL(HcommReadReduceOnThread(thread, 1, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM));
    CALL(HcommWriteWithNotifyOnThread(thread, 1, ptr, ptr, 1, 0));
    CALL(HcommWriteReduceWithNotifyOnThread(thread, 1, ptr, ptr, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_SUM, 0));
    CALL(HcommChannelNotifyRecordOnThread(thread, 1, 0));
    CALL(HcommChannelNotifyWaitOnThread(thread, 1, 0, 1));
    CALL(HcommChannelNotifyWaitOnThreadWithDefaultTimeout(thread, 1, 0));
    CALL(HcommChannelFenceOnThread(thread, 1));
    CALL(HcommBatchTransferOnThread(thread, 1, nullptr, 0));
}

void call_all() {
    CALL(aclInit(nullptr));
    call_device_and_memory();
    call_streams_and_notifies();
    call_communicator();
    call_kernel();
    call_what_kernels_call();
    CALL(aclrtDestroyNotify(notify));
    CALL(aclrtDestroyStream(session.stream));
    CALL(aclrtFree(session.param.userIn));
    CALL(aclrtBinaryUnLoad(session.binary));
    CALL(HcclCommDestroy(session.comm));
    // After a call that is always refused.
    (void)aclrtDestroyStream(session.stream);
    CALL(aclrtGetRecentErrMsg());
    CALL(aclrtResetDevice(0));
    CALL(aclFinalize());
}

void by_key(void *) { call_all(); }

void *end_of_a_thread(void *) {
    CHECK(pthread_key_create(&key, by_key), 0);
    CHECK(pthread_setspecific(key, &key), 0);
    prepare();
    return nullptr;
}

int forked() {
    const pid_t child = fork();
    if (child == 0) {
        call_all();
        const char *text = (aclrtSetDevice(0), aclrtGetRecentErrMsg());
        char expected[64];
        snprintf(expected, sizeof expected, "opened by process %d,", getppid());
        _exit(text != nullptr && strstr(text, expected) != nullptr ? 0 : 3);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
    // The parent is as it was.
    session_copy(&session, 2);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    return 0;
}

// Constructed before main, so destroyed after all that main has registered for its exit.
struct AtTheEnd {
    ~AtTheEnd() {
        if (moment != nullptr && strcmp(moment, "destructor") == 0) {
            call_all();
        }
    }
} at_the_end;

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    description = argv[1];
    moment = argv[2];
    if (strcmp(moment, "thread-exit") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, end_of_a_thread, nullptr), 0);
        CHECK(pthread_join(thread, nullptr), 0);
        return 0;
    }
    if (strcmp(moment, "atexit") == 0) {
        CHECK(atexit(call_all), 0);
    }
    prepare();
    if (strcmp(moment, "normal") == 0) {
        call_all();
    } else if (strcmp(moment, "failed") == 0) {
        session_fail(&session);
        call_all();
    } else if (strcmp(moment, "fork") == 0) {
        return forked();
    }
    return 0;
}
