/* Every function of the host with null out-pointers, wrong, foreign and destroyed handles: each is answered. C11 and C++17.
 *
 *   misuse FOLDER      FOLDER holds the operator descriptions that the test has written
 */

#include <string.h>

#include "acl/acl.h"
#include "check.h"
#include "copy_params.h"
#include "hccl/hccl_channel.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_launch.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"

enum { POLICY = ACL_MEM_MALLOC_HUGE_FIRST };

#define MALLOC(ptr, size) aclrtMalloc(ptr, size, (aclrtMemMallocPolicy)POLICY)
/* Numbers that no handle is. */
#define WRONG ((void *)0x1234)
/* What an out-pointer points to, to see that a refused call does not write it. */
#define UNTOUCHED ((void *)0x7777)

static void before_a_device_is_set(void) {
    void *ptr = UNTOUCHED;
    HcclRootInfo root;
    CHECK(aclrtCreateStream(&ptr), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtCreateNotify(&ptr, ACL_NOTIFY_DEFAULT), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(MALLOC(&ptr, 1), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtMallocWithCfg(&ptr, 1, (aclrtMemMallocPolicy)POLICY, NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtBinaryLoadFromFile("/nowhere", NULL, &ptr), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(HcclGetRootInfo(&root), HCCL_E_RUNTIME);
    memset(&root, 0, sizeof root);
    CHECK(HcclCommInitRootInfo(1, &root, 0, &ptr), HCCL_E_RUNTIME);
    CHECK_TRUE(ptr == UNTOUCHED);
    CHECK_TRUE(aclrtGetRecentErrMsg() != NULL);
    CHECK_TRUE(aclrtGetRecentErrMsg() == NULL);
}

static void devices(void) {
    uint32_t count = 0;
    CHECK(aclrtGetDeviceCount(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtGetDeviceCount(&count), ACL_SUCCESS);
    CHECK_TRUE(count >= 2);
    CHECK(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(aclrtSetDevice((int32_t)count), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(aclrtResetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtResetDevice(1), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_TRUE(strstr(aclrtGetSocName(), "Ascend950") != NULL);
}

static void runtime(void) {
    int32_t number = 0;
    size_t bytes = 0;
    CHECK(aclFinalize(), 100001);
    CHECK(aclInit("/nowhere"), 100003);
    CHECK(aclrtGetPhyDevIdByLogicDevId(-1, &number), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK(aclrtGetPhyDevIdByLogicDevId(0, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtStreamGetId(WRONG, &number), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtMemset(NULL, 1, 0, 1), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &bytes), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemsetAsync(NULL, 1, 0, 1, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemsetAsync(&bytes, 1, 0, 2, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemsetAsync(&bytes, 1, 0, 1, WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtMemcpyAsync(NULL, 1, &bytes, 1, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpyAsync(&bytes, 1, NULL, 1, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpyAsync(&bytes, 1, &number, 2, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpyAsync(&bytes, 1, &number, 1, (aclrtMemcpyKind)8, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpyAsync(&bytes, 1, &number, 1, ACL_MEMCPY_DEFAULT, WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtPeekAtLastError((aclrtLastErrLevel)1), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtGetLastError((aclrtLastErrLevel)1), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(HcclGetErrorString((HcclResult)-1) != NULL);
}

static void streams(void) {
    aclrtStream stream;
    CHECK(aclrtCreateStream(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtDestroyStream(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtDestroyStream(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtSynchronizeStream(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtSynchronizeStreamWithTimeout(WRONG, 1), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, -2), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, -1), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, 0), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtSynchronizeStream(NULL), ACL_SUCCESS);
}

static void events(void) {
    aclrtEvent event = UNTOUCHED;
    aclrtEventRecordedStatus status;
    aclrtStream elsewhere;
    void *there = NULL, *here = NULL;
    float ms;
    CHECK(aclrtCreateStreamWithConfig(NULL, 0, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateStreamWithConfig(&elsewhere, 8, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateStreamWithConfig(&elsewhere, 0, 0x40), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateStreamWithConfig(&elsewhere, 0, ACL_STREAM_DEVICE_USE_ONLY), 200001);
    CHECK(aclrtCreateEvent(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateEventWithFlag(NULL, ACL_EVENT_SYNC), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateEventWithFlag(&event, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateEventWithFlag(&event, 0x10), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(event == UNTOUCHED);
    CHECK(aclrtCreateEvent(&event), ACL_SUCCESS);
    CHECK(aclrtRecordEvent(NULL, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRecordEvent(WRONG, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtRecordEvent(event, WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtStreamWaitEvent(NULL, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtStreamWaitEvent(WRONG, event), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtQueryEventStatus(NULL, &status), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtQueryEventStatus(event, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtQueryEventStatus(WRONG, &status), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtSynchronizeEvent(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtSynchronizeEvent(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtEventElapsedTime(NULL, event, event), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtEventElapsedTime(&ms, NULL, event), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtEventElapsedTime(&ms, event, WRONG), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRecordEvent(event, NULL), ACL_SUCCESS);
    CHECK(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK(aclrtEventElapsedTime(&ms, event, WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);

    /* Of another device: event, and memory of a copy or fill. */
    CHECK(MALLOC(&here, 64), ACL_SUCCESS);
    CHECK(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&elsewhere), ACL_SUCCESS);
    CHECK(MALLOC(&there, 64), ACL_SUCCESS);
    CHECK(aclrtRecordEvent(event, elsewhere), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtStreamWaitEvent(elsewhere, event), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpyAsync(there, 64, here, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, elsewhere), 200001);
    CHECK(aclrtMemsetAsync(here, 64, 0, 64, elsewhere), 200001);
    CHECK(aclrtMemcpyAsync(there, 65, &ms, 65, ACL_MEMCPY_HOST_TO_DEVICE, elsewhere), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtFree(here), ACL_SUCCESS);
    CHECK(aclrtDestroyEvent(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK(aclrtDestroyEvent(event), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtRecordEvent(event, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
}

static void notifies(void) {
    aclrtNotify notify = UNTOUCHED, second;
    aclrtStream stream;
    uint32_t id = 5, other = 5;
    CHECK(aclrtCreateNotify(NULL, ACL_NOTIFY_DEFAULT), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateNotify(&notify, 2), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtCreateNotify(&notify, UINT64_MAX), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(notify == UNTOUCHED);
    CHECK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtCreateNotify(&second, ACL_NOTIFY_DEVICE_USE_ONLY), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);

    CHECK(aclrtGetNotifyId(notify, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtGetNotifyId(NULL, &id), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtGetNotifyId(WRONG, &id), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtGetNotifyId(stream, &id), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(id, 5);
    CHECK(aclrtGetNotifyId(notify, &id), ACL_SUCCESS);
    CHECK(aclrtGetNotifyId(second, &other), ACL_SUCCESS);
    CHECK_TRUE(id != other);

    CHECK(aclrtRecordNotify(NULL, stream), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRecordNotify(WRONG, stream), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtRecordNotify(notify, WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtRecordNotify(notify, notify), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtWaitAndResetNotify(NULL, stream, 1), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtWaitAndResetNotify(WRONG, stream, 1), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtWaitAndResetNotify(notify, WRONG, 1), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    /* Null is the default stream. */
    CHECK(aclrtWaitAndResetNotify(notify, stream, UINT32_MAX), ACL_SUCCESS);
    CHECK(aclrtWaitAndResetNotify(second, stream, 0), ACL_SUCCESS);
    CHECK(aclrtRecordNotify(second, NULL), ACL_SUCCESS);
    CHECK(aclrtRecordNotify(notify, NULL), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(NULL), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);

    /* On a stream of another device; and a notify ends with its device. */
    aclrtStream elsewhere;
    aclrtNotify ended;
    CHECK(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&elsewhere), ACL_SUCCESS);
    CHECK(aclrtCreateNotify(&ended, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtRecordNotify(notify, elsewhere), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtWaitAndResetNotify(notify, elsewhere, 1), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtGetNotifyId(ended, &id), ACL_ERROR_INVALID_RESOURCE_HANDLE);

    CHECK(aclrtDestroyNotify(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtDestroyNotify(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtDestroyNotify(stream), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtDestroyNotify(ended), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtDestroyNotify(notify), ACL_SUCCESS);
    CHECK(aclrtDestroyNotify(notify), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtGetNotifyId(notify, &id), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtRecordNotify(notify, stream), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtWaitAndResetNotify(notify, stream, 1), ACL_ERROR_INVALID_RESOURCE_HANDLE);

    /* Destroyed too early: the operation fails that comes to it, and the stream continues. */
    CHECK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtWaitAndResetNotify(notify, stream, 0), ACL_SUCCESS);
    CHECK(aclrtDestroyNotify(notify), ACL_SUCCESS);
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_RT_TS_ERROR);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "belongs to no thread and to no host") != NULL);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(aclrtDestroyNotify(second), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
}

static void memory(void) {
    void *ptr = UNTOUCHED, *other, *host;
    char bytes[16] = {0};
    CHECK(MALLOC(NULL, 16), ACL_ERROR_INVALID_PARAM);
    CHECK(MALLOC(&ptr, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(MALLOC(&ptr, SIZE_MAX), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(MALLOC(&ptr, (size_t)1 << 45), ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK(aclrtMalloc(&ptr, 16, ACL_MEM_ACCESS_USER_SPACE_READONLY), ACL_ERROR_API_NOT_SUPPORT);
    CHECK(aclrtMallocWithCfg(NULL, 16, (aclrtMemMallocPolicy)POLICY, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMallocWithCfg(&ptr, 0, (aclrtMemMallocPolicy)POLICY, NULL), ACL_ERROR_INVALID_PARAM);
    aclrtMallocAttribute attribute;
    memset(&attribute, 0, sizeof attribute);
    aclrtMallocConfig cfg = {NULL, 1};
    CHECK(aclrtMallocWithCfg(&ptr, 16, (aclrtMemMallocPolicy)POLICY, &cfg), ACL_ERROR_INVALID_PARAM);
    cfg.attrs = &attribute;
    CHECK(aclrtMallocWithCfg(&ptr, 16, (aclrtMemMallocPolicy)POLICY, &cfg), ACL_ERROR_INVALID_PARAM);
    attribute.attr = ACL_RT_MEM_ATTR_DEVICE_ID;
    attribute.value.deviceId = 1;
    CHECK(aclrtMallocWithCfg(&ptr, 16, (aclrtMemMallocPolicy)POLICY, &cfg), ACL_ERROR_API_NOT_SUPPORT);
    attribute.attr = ACL_RT_MEM_ATTR_VA_FLAG;
    CHECK(aclrtMallocWithCfg(&ptr, 16, (aclrtMemMallocPolicy)POLICY, &cfg), ACL_ERROR_API_NOT_SUPPORT);
    CHECK_TRUE(ptr == UNTOUCHED);

    CHECK(MALLOC(&ptr, 16), ACL_SUCCESS);
    CHECK(MALLOC(&other, 16), ACL_SUCCESS);
    CHECK((uintptr_t)ptr % 64, 0);
    CHECK(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtFree(WRONG), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtFree(bytes), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtFree((char *)ptr + 1), ACL_ERROR_INVALID_PARAM);

    CHECK(aclrtMemcpy(NULL, 16, bytes, 16, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpy(ptr, 16, NULL, 16, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpy(ptr, 15, bytes, 16, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpy(ptr, 16, bytes, 16, (aclrtMemcpyKind)8), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpy(ptr, 17, other, 17, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpy((char *)ptr + 1, 16, bytes, 16, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
    /* Where a device would be that is not open. */
    CHECK(aclrtMemcpy((void *)0x2fc000001000, 16, bytes, 16, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
    /* No bytes are copied from and to any address, whichever way. */
    void *const ends[4] = {(char *)ptr + 16, (char *)ptr + 17, bytes, WRONG};
    for (int to = 0; to < 4; to++) {
        for (int from = 0; from < 4; from++) {
            CHECK(aclrtMemcpy(ends[to], 0, ends[from], 0, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
        }
        CHECK(aclrtMemcpy(NULL, 0, ends[to], 0, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
        CHECK(aclrtMemcpy(ends[to], 0, NULL, 0, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
    }
    CHECK(aclrtMemcpy(ptr, 0, bytes, 0, (aclrtMemcpyKind)8), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpy(ptr, 16, bytes, 16, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(aclrtMemcpy(other, 16, ptr, 16, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
    CHECK(aclrtMemcpy(bytes, 16, other, 16, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);

    CHECK(aclrtFree(ptr), ACL_SUCCESS);
    CHECK(aclrtFree(ptr), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMemcpy(ptr, 16, bytes, 16, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtFree(other), ACL_SUCCESS);

    CHECK(aclrtMallocHost(NULL, 16), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMallocHost(&host, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMallocHost(&host, SIZE_MAX), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtMallocHost(&host, 16), ACL_SUCCESS);
    memset(host, 1, 16);
    CHECK(aclrtFreeHost(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtFreeHost(bytes), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtFree(host), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtFreeHost(host), ACL_SUCCESS);
    CHECK(aclrtFreeHost(host), ACL_ERROR_INVALID_PARAM);
}

/* A binary that can be loaded, for the tests of kernels. */
static char description[4096];

static int load(const char *folder, const char *name) {
    char path[4096];
    aclrtBinHandle binary = UNTOUCHED;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int code = aclrtBinaryLoadFromFile(path, NULL, &binary);
    CHECK_TRUE((binary == UNTOUCHED) == (code != ACL_SUCCESS));
    if (code == ACL_SUCCESS) {
        CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    }
    return code;
}

static void binaries(const char *folder) {
    aclrtBinHandle binary;
    aclrtFuncHandle function = UNTOUCHED, again;
    CHECK(load(folder, "good.json"), ACL_SUCCESS);
    CHECK(load(folder, "not_there.json"), ACL_ERROR_INVALID_FILE);
    CHECK(load(folder, "."), ACL_ERROR_INVALID_FILE);
    CHECK(load(folder, "empty.json"), ACL_ERROR_PARSE_FILE);
    CHECK(load(folder, "not_json.json"), ACL_ERROR_PARSE_FILE);
    CHECK(load(folder, "no_operator.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "no_op_info.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "no_library.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "no_function.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "number.json"), ACL_ERROR_FILE_ATTR_INVALID);
    CHECK(load(folder, "wrong_kind.json"), ACL_ERROR_FILE_ATTR_INVALID);
    CHECK(load(folder, "path_as_library.json"), ACL_ERROR_FILE_ATTR_INVALID);
    CHECK(load(folder, "library_not_there.json"), ACL_ERROR_RT_AICPU_INFO_LOAD_ERROR);
    CHECK(load(folder, "library_no_elf.json"), ACL_ERROR_OP_LOAD_FAILED);
    CHECK(load(folder, "image.json"), ACL_ERROR_OP_LOAD_FAILED);

    CHECK(aclrtBinaryLoadFromFile(NULL, NULL, &binary), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryLoadFromFile("\xff", NULL, &binary), ACL_ERROR_INVALID_FILE);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, NULL), ACL_ERROR_INVALID_PARAM);
    aclrtBinaryLoadOption option;
    memset(&option, 0, sizeof option);
    aclrtBinaryLoadOptions options = {NULL, 1};
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_INVALID_PARAM);
    options.options = &option;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_INVALID_PARAM);
    option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 2;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_INVALID_PARAM);
    option.type = ACL_RT_BINARY_LOAD_OPT_MAGIC;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_API_NOT_SUPPORT);
    option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 1;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_SUCCESS);

    CHECK(aclrtBinaryGetFunction(NULL, "CopyLen", &function), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryGetFunction(WRONG, "CopyLen", &function), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryGetFunction(binary, NULL, &function), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryGetFunction(binary, "copy_len", &function), ACL_ERROR_OP_NOT_FOUND);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen\xff", &function), ACL_ERROR_OP_NOT_FOUND);
    CHECK(aclrtBinaryGetFunction(binary, "NoSuchFunction", &function), ACL_ERROR_KERNEL_NOT_FOUND);
    CHECK_TRUE(function == UNTOUCHED);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &function), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &again), ACL_SUCCESS);
    CHECK_TRUE(function == again);

    CHECK(aclrtBinaryUnLoad(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryUnLoad(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryUnLoad(function), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    CHECK(aclrtBinaryUnLoad(binary), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &again), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    aclrtArgsHandle args;
    CHECK(aclrtKernelArgsInit(function, &args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, NULL, NULL, NULL, 0, NULL, 0), ACL_ERROR_INVALID_RESOURCE_HANDLE);
}

static void launches(void) {
    aclrtBinHandle binary;
    aclrtFuncHandle function, fails;
    aclrtArgsHandle args;
    aclrtParamHandle place = UNTOUCHED;
    aclrtStream stream;
    uint64_t bytes[8] = {0};
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, &binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &function), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "Fail", &fails), ACL_SUCCESS);

    CHECK(aclrtKernelArgsInit(NULL, &args), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsInit(WRONG, &args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsInit(binary, &args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsInit(function, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsInit(function, &args), ACL_SUCCESS);
    CHECK(aclrtKernelArgsAppend(NULL, bytes, 8, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(WRONG, bytes, 8, &place), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsAppend(args, NULL, 8, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(args, bytes, 0, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(args, bytes, SIZE_MAX, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(args, bytes, 8, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(place == UNTOUCHED);
    CHECK(aclrtKernelArgsAppend(args, bytes, 8, &place), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsFinalize(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsFinalize(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsFinalize(args), ACL_SUCCESS);
    CHECK(aclrtKernelArgsAppend(args, bytes, 8, &place), ACL_ERROR_INVALID_PARAM);

    aclrtLaunchKernelAttr attribute;
    memset(&attribute, 0, sizeof attribute);
    aclrtLaunchKernelCfg cfg = {NULL, 1};
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, &cfg, args, NULL), ACL_ERROR_INVALID_PARAM);
    cfg.attrs = &attribute;
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, &cfg, args, NULL), ACL_ERROR_API_NOT_SUPPORT);
    CHECK(aclrtLaunchKernelWithConfig(NULL, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(WRONG, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithConfig(fails, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(function, 0, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(function, 2, stream, NULL, args, NULL), ACL_ERROR_API_NOT_SUPPORT);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, WRONG, NULL, args, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, NULL, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, WRONG, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, bytes), ACL_ERROR_INVALID_PARAM);
    aclrtPlaceHolderInfo holder = {0, 0};
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, bytes, 64, &holder, 1), ACL_ERROR_API_NOT_SUPPORT);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, NULL, 64, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 0, stream, NULL, bytes, 64, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);

    /* A kernel of another device's stream. */
    aclrtStream other;
    CHECK(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&other), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, other, NULL, bytes, 64, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(other), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);

    /* Zeroes are null pointers: the kernel returns 2, and the stream reports it once. */
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, bytes, 64, NULL, 0), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICPU_EXCEPTION);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "copy_len returned 2") != NULL);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    uint32_t code = 77;
    CHECK(aclrtLaunchKernelWithHostArgs(fails, 1, NULL, NULL, &code, sizeof code, NULL, 0), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_AICPU_EXCEPTION);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "fail returned 77") != NULL);
    /* Without arguments a kernel gets null. */
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, NULL, 0, NULL, 0), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICPU_EXCEPTION);

    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    CHECK(aclrtKernelArgsFinalize(args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
}

static HcclComm communicators(void) {
    HcclComm comm = UNTOUCHED, second;
    HcclRootInfo root, forged;
    int32_t index = 0, none = 99;
    uint32_t number = 5;
    char name[COMM_NAME_MAX_LENGTH], other[COMM_NAME_MAX_LENGTH];
    CHECK(HcclCommInitAll(1, &index, NULL), HCCL_E_PTR);
    CHECK(HcclCommInitAll(1, NULL, &comm), HCCL_E_PTR);
    CHECK(HcclCommInitAll(0, &index, &comm), HCCL_E_PARA);
    CHECK(HcclCommInitAll(2, &index, &comm), HCCL_E_NOT_SUPPORT);
    CHECK(HcclCommInitAll(1, &none, &comm), HCCL_E_PARA);
    CHECK(HcclGetRootInfo(NULL), HCCL_E_PTR);
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    memset(&forged, 7, sizeof forged);
    CHECK(HcclCommInitRootInfo(1, NULL, 0, &comm), HCCL_E_PTR);
    CHECK(HcclCommInitRootInfo(1, &root, 0, NULL), HCCL_E_PTR);
    CHECK(HcclCommInitRootInfo(0, &root, 0, &comm), HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(2, &root, 0, &comm), HCCL_E_NOT_SUPPORT);
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
    uint32_t number = 7;
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
    CHECK(HcclChannelGetHcclBuffer(WRONG, handle, &ptr, &size), HCCL_E_NOT_FOUND);
    CHECK(HcclChannelGetRemoteMems(comm, handle, NULL, &mems, &tags), HCCL_E_PTR);
    CHECK(HcclChannelGetRemoteMems(WRONG, handle, &number, &mems, &tags), HCCL_E_NOT_FOUND);
    CHECK(HcclCommMemReg(comm, NULL, &mem, &memory), HCCL_E_PTR);
    CHECK(HcclCommMemReg(WRONG, "tag", &mem, &memory), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetLinks(comm, 0, 0, 1, NULL, &number), HCCL_E_PTR);
    CHECK(HcclRankGraphGetLinks(WRONG, 0, 0, 1, &links, &number), HCCL_E_NOT_FOUND);
    CHECK(HcclRankGraphGetRankSizeByLayer(comm, 0, NULL), HCCL_E_PTR);
    CHECK(HcclRankGraphGetRankSizeByLayer(WRONG, 0, &number), HCCL_E_NOT_FOUND);
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
    CHECK_TRUE(thread == 7 && handle == 7 && size == 7 && number == 7);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: misuse FOLDER\n");
        return 2;
    }
    snprintf(description, sizeof description, "%s/good.json", argv[1]);
    before_a_device_is_set();
    devices();
    runtime();
    streams();
    events();
    notifies();
    notifies_run_out();
    memory();
    binaries(argv[1]);
    launches();
    HcclComm comm = communicators();
    threads(comm);
    resources(comm);
    by_configuration(comm);
    /* The first message is kept, whatever follows. */
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtFree(WRONG), ACL_ERROR_INVALID_PARAM);
    for (int i = 0; i < 100; i++) {
        CHECK(aclrtDestroyStream(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    }
    CHECK_TRUE(strncmp(aclrtGetRecentErrMsg(), "aclrtFree: ", 11) == 0);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(HcclCommDestroy(comm), HCCL_E_NOT_FOUND);
    printf("every misuse was answered\n");
    return 0;
}
