/* The first error of a device is the answer to everything after it (case 62 of the case log).
 *
 *   first_error DESCRIPTION
 */

#include <string.h>

#include "acl/acl.h"
#include "check.h"
#include "copy_params.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "launch_in_step.h"

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    HcclComm comm;
    int32_t device = 0;
    CopyParams param;
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    void *ptr = NULL;
    memset(&param, 0, sizeof param);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS);
    CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 1, 1, &param.thread), HCCL_SUCCESS);
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    const ControlPair pair = control_pair(comm, stream, param.thread);
    param.cpuThread = pair.cpuThreadOnAicpu;
    CHECK(aclrtMalloc(&param.userIn, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtBinaryLoadFromFile(argv[1], NULL, &binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &function), ACL_SUCCESS);

    /* One byte more than there is. */
    param.cclBuf = (char *)param.userIn + 1;
    param.len = 64;
    record_start(&pair);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, &param, sizeof param, NULL, 0), ACL_SUCCESS);
    wait_for_end(&pair);
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_RT_TS_ERROR);
    const char *text = aclrtGetRecentErrMsg();
    CHECK_TRUE(text != NULL && strstr(text, "translation fault") != NULL);

    /* Not "out of memory". */
    CHECK(aclrtMalloc(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_TS_ERROR);
    CHECK_TRUE(ptr == NULL);
    text = aclrtGetRecentErrMsg();
    CHECK_TRUE(text != NULL && strstr(text, "device already failed") && strstr(text, "translation fault"));
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, NULL, NULL, &param, sizeof param, NULL, 0), ACL_ERROR_RT_TS_ERROR);

    /* A reset is a new device. */
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtMalloc(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    printf("the first error was kept\n");
    return 0;
}
