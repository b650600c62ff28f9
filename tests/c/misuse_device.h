/* Misuse of devices, streams, events, notifies and memory: part of misuse.c. */

#ifndef MISUSE_DEVICE_H
#define MISUSE_DEVICE_H

#include "misuse.h"

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

#endif /* MISUSE_DEVICE_H */
