/* Loads a description whose library lies beside it, and asks for a kernel.
 *
 *   load_beside DESCRIPTION KERNEL CODE      CODE: what loading answers
 */

#include "acl/acl.h"
#include "check.h"

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    aclrtBinaryLoadOption option;
    option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 1;
    aclrtBinaryLoadOptions options = {&option, 1};
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    const aclError code = aclrtBinaryLoadFromFile(argv[1], &options, &binary);
    CHECK(code, atoi(argv[3]));
    if (code == ACL_SUCCESS) {
        CHECK(aclrtBinaryGetFunction(binary, argv[2], &function), ACL_SUCCESS);
    }
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    return 0;
}
