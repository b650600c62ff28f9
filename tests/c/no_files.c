/* Loads a description, and prints the code and the message. C11.
 *
 *   no_files DESCRIPTION
 */

#include "acl/acl.h"
#include "check.h"

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    aclrtBinHandle binary;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    const aclError code = aclrtBinaryLoadFromFile(argv[1], NULL, &binary);
    const char *text = aclrtGetRecentErrMsg();
    printf("%d %s\n", code, text ? text : "");
    return 0;
}
