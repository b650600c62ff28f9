/* Launches one kernel and prints how it ended.
 *
 *   log_host DESCRIPTION OPERATOR
 */

#include "session.h"

int main(int argc, char **argv) {
    Session session;
    if (argc != 3) {
        return 2;
    }
    session_open(&session, argv[1], argv[2]);
    CHECK(aclrtLaunchKernelWithHostArgs(session.function, 1, session.stream, NULL, &session.param, sizeof session.param,
                                        NULL, 0),
          ACL_SUCCESS);
    const aclError code = aclrtSynchronizeStream(session.stream);
    const char *text = code == 0 ? NULL : aclrtGetRecentErrMsg();
    printf("%s %d %s\n", argv[2], (int)code, text ? text : "");
    while (aclrtResetDevice(0) == ACL_SUCCESS) {
    }
    return 0;
}
