/* Loads a kernel and copies with it, or tells why it can't be loaded. C11 and C++17.
 *
 *   load_and_copy DESCRIPTION OPERATOR      prints "copied", or the code of the load and its message
 */

#include "session.h"

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    aclrtBinHandle binary;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    const aclError code = aclrtBinaryLoadFromFile(argv[1], NULL, &binary);
    if (code != ACL_SUCCESS) {
        const char *text = aclrtGetRecentErrMsg();
        printf("%d %s\n", code, text ? text : "");
        return 0;
    }
    Session session;
    session_open(&session, argv[1], argv[2]);
    session_copy(&session, 1);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    printf("copied\n");
    return 0;
}
