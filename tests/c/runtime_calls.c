/* Calls of the runtime around a program: begin and end, last error, memory that is set and counted, numbers, settings of a
 * communicator, names of results. argv[1] is an empty folder. */

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "hccl/hccl_comm.h"

#define MIB ((size_t)1 << 20)

static void write_file(const char *path, const char *text) {
    FILE *const file = fopen(path, "w");
    CHECK_TRUE(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void begin(const char *folder) {
    char path[4096];

    CHECK(aclFinalize(), 100001);
    snprintf(path, sizeof path, "%s/not_there.json", folder);
    CHECK(aclInit(path), 100003);
    CHECK(aclInit(folder), 100003);
    snprintf(path, sizeof path, "%s/wrong.json", folder);
    write_file(path, "dump: 1");
    CHECK(aclInit(path), 100006);
    snprintf(path, sizeof path, "%s/acl.json", folder);
    write_file(path, "{\"dump\": {}}");
    CHECK(aclInit(path), 0);
    CHECK(aclInit(NULL), 100002);
    CHECK(aclFinalize(), 0);
    CHECK(aclInit(""), 0);
    CHECK(aclFinalize(), 0);
    CHECK(aclInit(NULL), 0);
    (void)aclrtGetRecentErrMsg();
    (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
}

static void last_error(void) {
    aclrtStream stream = NULL;
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
    CHECK(aclrtFree(NULL), 100000);
    CHECK(aclrtSetDevice(-1), 107001);
    CHECK(aclrtGetDeviceCount(NULL), 100000);
    CHECK(aclrtSetDevice(-1), 107001);
    CHECK(aclrtSetDevice(0), 0);
    /* What went well changes nothing. */
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107001);
    CHECK(aclrtGetLastError((aclrtLastErrLevel)1), 100000);
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107001);
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
    CHECK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
    CHECK(aclrtCreateStream(&stream), 0);
    CHECK(aclrtDestroyStream(stream), 0);
    CHECK(aclrtDestroyStream(stream), 200005);
    CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 200005);
    (void)aclrtGetRecentErrMsg();
}

static void memory_set(void) {
    static unsigned char host[3 * MIB];
    unsigned char *device = NULL;
    size_t index;

    CHECK(aclrtMalloc((void **)&device, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    CHECK(aclrtMemset(device, 3 * MIB, 0x15a, 3 * MIB), 0);
    CHECK(aclrtMemset(device + 1, 3 * MIB - 1, 0xc3, MIB + 5), 0);
    CHECK(aclrtMemcpy(host, sizeof host, device, 3 * MIB, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    for (index = 0; index < sizeof host; index++) {
        CHECK(host[index], index - 1 < MIB + 5 ? 0xc3 : 0x5a);
    }
    CHECK(aclrtMemset(host, sizeof host, 7, 2), 0);
    CHECK_TRUE(host[0] == 7 && host[1] == 7 && host[2] == 0xc3);

    CHECK(aclrtMemset(NULL, 1, 0, 1), 100000);
    CHECK(aclrtMemset(NULL, 0, 0, 0), 100000);
    CHECK(aclrtMemset(device, 4, 0, 5), 100000);
    CHECK(aclrtMemset(device, 4 * MIB, 0, 3 * MIB + 1), 100000);
    CHECK(aclrtMemset(device - 1, 2, 0, 2), 100000);
    CHECK(aclrtMemset(device + 3 * MIB, 0, 0, 0), 0);
    CHECK(aclrtMemcpy(host, 1, device, 1, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    CHECK(host[0], 0x5a);
    CHECK(aclrtFree(device), 0);
    CHECK(aclrtMemset(device, 1, 0, 1), 100000);
    (void)aclrtGetRecentErrMsg();
}

static void memory_info(void) {
    size_t before = 0, total = 0, during = 0, after = 0, same = 0;
    void *device = NULL;

    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total), 0);
    CHECK_TRUE(before > 0 && before < total && total == (size_t)16 << 30);
    CHECK(aclrtMalloc(&device, 64 * MIB, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM_NORMAL, &during, &same), 0);
    CHECK_TRUE(same == total && before - during >= 64 * MIB && before - during < 65 * MIB);
    CHECK(aclrtFree(device), 0);
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &after, &same), 0);
    CHECK_TRUE(after == before);
    CHECK(aclrtGetMemInfo(ACL_DDR_MEM, &after, &same), 0);
    CHECK_TRUE(after == 0 && same == 0);

    after = 5;
    CHECK(aclrtGetMemInfo((aclrtMemAttr)10, &after, &same), 100000);
    CHECK(aclrtGetMemInfo((aclrtMemAttr)-1, &after, &same), 100000);
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &after, NULL), 100000);
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &same), 100000);
    CHECK_TRUE(after == 5);
    (void)aclrtGetRecentErrMsg();
}

static void numbers(void) {
    aclrtStream one = NULL, other = NULL;
    int32_t first = -1, second = -1, again = -1, by_default = -1, device = -1;

    CHECK(aclrtCreateStream(&one), 0);
    CHECK(aclrtCreateStream(&other), 0);
    CHECK(aclrtStreamGetId(one, &first), 0);
    CHECK(aclrtStreamGetId(other, &second), 0);
    CHECK(aclrtStreamGetId(one, &again), 0);
    CHECK(aclrtStreamGetId(NULL, &by_default), 0);
    CHECK_TRUE(first >= 0 && second >= 0 && first != second && first == again);
    CHECK_TRUE(by_default >= 0 && by_default != first && by_default != second);
    CHECK(aclrtStreamGetId(one, NULL), 100000);
    CHECK(aclrtDestroyStream(one), 0);
    CHECK(aclrtStreamGetId(one, &again), 200005);
    CHECK(again, first);
    CHECK(aclrtDestroyStream(other), 0);

    CHECK(aclrtGetPhyDevIdByLogicDevId(3, &device), 0);
    CHECK(device, 3);
    CHECK(aclrtGetPhyDevIdByLogicDevId(8, &device), 107001);
    CHECK(aclrtGetPhyDevIdByLogicDevId(-1, &device), 107001);
    CHECK(aclrtGetPhyDevIdByLogicDevId(0, NULL), 100000);
    CHECK(device, 3);
    (void)aclrtGetRecentErrMsg();
}

static void settings(void) {
    HcclCommConfig config;
    size_t size = 0;
    uint32_t words[2] = {0, 0};

    memset(&config, 0x77, sizeof config);
    HcclCommConfigInit(&config);
    memcpy(&size, config.reserved, sizeof size);
    memcpy(words, config.reserved + sizeof size, sizeof words);
    CHECK_TRUE(size == sizeof config && words[0] == 0xf0f0f0f0 && words[1] == 11);
    CHECK_TRUE(config.reserved[16] == 0 && config.reserved[23] == 0);
    CHECK_TRUE(config.hcclBufferSize == 0xffffffff && config.hcclDeterministic == 0xffffffff);
    CHECK_TRUE(config.hcclCommName[0] == '\0' && config.hcclUdi[0] == '\0' && config.hcclOpExpansionMode == 0);
    CHECK_TRUE(config.hcclRdmaTrafficClass == 0xffffffff && config.hcclRdmaServiceLevel == 0xffffffff);
    CHECK_TRUE(config.hcclWorldRankID == 0 && config.hcclJobID == 0 && config.aclGraphZeroCopyEnable == 0);
    CHECK(config.hcclExecTimeOut, -1);
    CHECK_TRUE(config.hcclAlgo[0] == '\0' && config.hcclRetryEnable[0] == '\0' && config.hcclRetryParams[0] == '\0');
    CHECK_TRUE(config.hcclBufferName[0] == '\0' && config.hcclQos == 0xffffffff);
    CHECK_TRUE(config.hcclSymWinMaxMemSizePerRank == 16 && config.hcclChannelSqDepth == 0xffffffff);
    HcclCommConfigInit(NULL);
}

static void names(void) {
    const char *const ok = HcclGetErrorString(HCCL_SUCCESS);
    int code;

    CHECK_TRUE(strcmp(ok, "HCCL_SUCCESS: done") == 0 && ok == HcclGetErrorString(HCCL_SUCCESS));
    CHECK_TRUE(strstr(HcclGetErrorString(HCCL_E_PTR), "HCCL_E_PTR") != NULL);
    CHECK_TRUE(strstr(HcclGetErrorString(HCCL_E_OOM), "HCCL_E_OOM") != NULL);
    CHECK_TRUE(strstr(HcclGetErrorString(HCCL_E_RESERVED), "HCCL_E_RESERVED") != NULL);
    for (code = 0; code <= 24; code++) {
        CHECK_TRUE(strncmp(HcclGetErrorString((HcclResult)code), "HCCL_", 5) == 0);
    }
    CHECK_TRUE(strcmp(HcclGetErrorString((HcclResult)25), "not a number of HcclResult") == 0);
    CHECK_TRUE(strcmp(HcclGetErrorString((HcclResult)-1), "not a number of HcclResult") == 0);
}

/* The end closes what is open, and a device can be set again. */
static void end(void) {
    void *memory = NULL;
    aclrtStream stream = NULL;

    CHECK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    CHECK(aclrtCreateStream(&stream), 0);
    CHECK(aclFinalize(), 0);
    CHECK(aclrtFree(memory), 100000);
    CHECK(aclrtSynchronizeStream(stream), 200005);
    CHECK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST), 107002);
    CHECK(aclrtResetDevice(0), 107002);
    CHECK(aclrtSetDevice(0), 0);
    CHECK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    CHECK(aclrtResetDevice(0), 0);
}

int main(int argc, char **argv) {
    CHECK(argc, 2);
    begin(argv[1]);
    last_error();
    memory_set();
    memory_info();
    numbers();
    settings();
    names();
    end();
    puts("runtime calls");
    return 0;
}
