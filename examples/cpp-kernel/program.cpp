// Launches the kernel on 2 MiB and checks the bytes.
//
//   program DESCRIPTION

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"
#include "params.h"

static void check(int code, const char *call) {
    if (code != 0) {
        const char *text = aclrtGetRecentErrMsg();
        std::fprintf(stderr, "%s: %d %s\n", call, code, text != nullptr ? text : "");
        std::exit(1);
    }
}
#define CHECK(call) check(static_cast<int>(call), #call)

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: program DESCRIPTION\n");
        return 2;
    }
    int32_t device = 0;
    HcclComm comm;
    aclrtStream stream;
    CHECK(aclrtSetDevice(device));
    CHECK(HcclCommInitAll(1, &device, &comm));
    CHECK(aclrtCreateStream(&stream));

    // The kernel's queue, and the notifies by which it and the stream wait for each other.
    Params param{};
    ThreadHandle cpuThread, threadOnCpu;
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 1, &param.thread));
    CHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &cpuThread));
    CHECK(HcclThreadExportToCommEngine(comm, 1, &cpuThread, COMM_ENGINE_AICPU_TS, &param.cpuThread));
    CHECK(HcclThreadExportToCommEngine(comm, 1, &param.thread, COMM_ENGINE_CPU_TS, &threadOnCpu));

    constexpr size_t len = 2 << 20;
    void *src, *dst;
    CHECK(aclrtMalloc(&src, len, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&dst, len, ACL_MEM_MALLOC_HUGE_FIRST));
    std::vector<unsigned char> bytes(len), found(len);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = static_cast<unsigned char>(i * 7 + (i >> 8));
    }
    CHECK(aclrtMemcpy(src, len, bytes.data(), len, ACL_MEMCPY_HOST_TO_DEVICE));
    param.dst = dst;
    param.src = src;
    param.half = len / 2;

    aclrtBinHandle binary;
    aclrtFuncHandle function;
    CHECK(aclrtBinaryLoadFromFile(argv[1], nullptr, &binary));
    CHECK(aclrtBinaryGetFunction(binary, "swap_halves", &function));
    CHECK(HcommThreadNotifyRecordOnThread(cpuThread, threadOnCpu, 0));
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, nullptr, &param, sizeof param, nullptr, 0));
    CHECK(HcommThreadNotifyWaitOnThread(cpuThread, 0, 1836));
    CHECK(aclrtSynchronizeStream(stream));

    CHECK(aclrtMemcpy(found.data(), len, dst, len, ACL_MEMCPY_DEVICE_TO_HOST));
    for (size_t i = 0; i < len; i++) {
        if (found[i] != bytes[(i + len / 2) % len]) {
            std::fprintf(stderr, "byte %zu is %d, not %d\n", i, found[i], bytes[(i + len / 2) % len]);
            return 1;
        }
    }
    CHECK(HcclCommDestroy(comm));
    CHECK(aclrtResetDevice(device));
    std::printf("swapped\n");
    return 0;
}
