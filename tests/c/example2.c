/* Second call example of the interface document, its statements unchanged; what the document leaves out is added around
 * them. The device half is in copy_kernel.c. C11 and C++17. Prints the answer, and checks the bytes if it is 0.
 *
 *   example2 DESCRIPTION KERNEL
 */

#include <string.h>

#include "acl/acl.h"
#include "check.h"
#include "copy_params.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"

#ifndef __cplusplus
#define nullptr NULL
#endif

static int32_t copy(const char *description, const char *kernel) {
    HcclComm comm;
    int32_t device = 0;
    CHECK(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS);
    CommEngine engine = COMM_ENGINE_AICPU_TS;
    void *cclBufferAddr = nullptr;
    uint64_t cclBufferSize = 0;
    HcclGetHcclBuffer(comm, &cclBufferAddr, &cclBufferSize);
    ThreadHandle thread;
    const HcclResult result =
    HcclThreadAcquire(comm, engine, 1, 1, &thread);
    if (result != HCCL_SUCCESS) {
        CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
        return result;
    }

    /* 其余资源申请 */
    enum { LEN = 256, GUARD = 64 };
    unsigned char input[LEN], output[LEN + GUARD];
    CHECK_TRUE(cclBufferSize >= LEN + GUARD);
    for (int i = 0; i < LEN; i++) {
        input[i] = (unsigned char)(i * 13 + 5);
    }
    memset(output, 0xee, sizeof output);
    void *userIn;
    CHECK(aclrtMalloc(&userIn, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemcpy(userIn, LEN, input, LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    CHECK(aclrtMemcpy(cclBufferAddr, cclBufferSize, output, sizeof output, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    /* What stream and kernel release each other by: start notify 0 of `thread`, end notify 0 of `cpuThread`. */
    ThreadHandle cpuThread, cpuThreadOnAicpu, threadOnCpu;
    CHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &cpuThread), HCCL_SUCCESS);
    CHECK(HcclThreadExportToCommEngine(comm, 1, &cpuThread, engine, &cpuThreadOnAicpu), HCCL_SUCCESS);
    CHECK(HcclThreadExportToCommEngine(comm, 1, &thread, COMM_ENGINE_CPU_TS, &threadOnCpu), HCCL_SUCCESS);
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    CHECK(aclrtBinaryLoadFromFile(description, NULL, &binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, kernel, &function), ACL_SUCCESS);

    /* 拷贝参数并 Launch Kernel */
    CopyParams param;
    memset(&param, 0, sizeof param);
    param.thread = thread;
    param.userIn = userIn;
    param.cclBuf = cclBufferAddr;
    param.len = LEN;
    param.cpuThread = cpuThreadOnAicpu;
    aclrtArgsHandle args;
    aclrtParamHandle place;
    CHECK(aclrtKernelArgsInit(function, &args), ACL_SUCCESS);
    CHECK(aclrtKernelArgsAppend(args, &param, sizeof param, &place), ACL_SUCCESS);
    CHECK(aclrtKernelArgsFinalize(args), ACL_SUCCESS);
    aclrtLaunchKernelAttr timeout;
    timeout.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
    timeout.value.timeout = 1836;
    aclrtLaunchKernelCfg cfg;
    cfg.attrs = &timeout;
    cfg.numAttrs = 1;
    CHECK(HcommThreadNotifyRecordOnThread(cpuThread, threadOnCpu, 0), HCCL_SUCCESS);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, &cfg, args, NULL), ACL_SUCCESS);
    CHECK(HcommThreadNotifyWaitOnThread(cpuThread, 0, timeout.value.timeout), HCCL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);

    CHECK(aclrtMemcpy(output, sizeof output, cclBufferAddr, sizeof output, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(output, input, LEN), 0);
    for (int i = LEN; i < LEN + GUARD; i++) {
        CHECK(output[i], 0xee);
    }
    CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK(aclrtFree(userIn), ACL_SUCCESS);
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    return HCCL_SUCCESS;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: example2 DESCRIPTION KERNEL\n");
        return 2;
    }
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    const int32_t code = copy(argv[1], argv[2]);
    const char *message = aclrtGetRecentErrMsg();
    printf("%s: %d\n%s\n", aclrtGetSocName(), (int)code, message ? message : "");
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    return 0;
}
