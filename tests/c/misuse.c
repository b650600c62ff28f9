/* Every function of the host with null out-pointers, wrong, foreign and destroyed handles: each is answered. C11 and C++17.
 *
 *   misuse FOLDER      FOLDER holds the operator descriptions that the test has written
 */

#include "misuse_comm.h"
#include "misuse_device.h"
#include "misuse_kernels.h"

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
