/* Launches kernels of a library, each on a stream of its own, and prints how each ended.
 *
 *   linux_launch DESCRIPTION OPERATOR...
 *
 * One line for each: the code of its synchronise, and the message. Then the code that opening the device again, and a launch of
 * operator "Copy" on it, gives.
 */

#include "session.h"

enum { MOST = 4 };

static void print(const char *what, long code) {
    const char *text = code == 0 ? NULL : aclrtGetRecentErrMsg();
    printf("%s %ld %s\n", what, code, text ? text : "");
}

int main(int argc, char **argv) {
    const int count = argc - 2;
    Session session[MOST];
    if (count < 1 || count > MOST) {
        return 2;
    }
    for (int i = 0; i < count; i++) {
        aclrtBinHandle binary;
        CHECK(aclrtSetDevice(0), ACL_SUCCESS);
        const aclError code = aclrtBinaryLoadFromFile(argv[1], NULL, &binary);
        if (code != ACL_SUCCESS) {
            print("load", code);
            return 0;
        }
        session_open(&session[i], argv[1], argv[2 + i]);
    }
    for (int i = 0; i < count; i++) {
        session_queue(&session[i], session[i].param.userIn, SESSION_LEN);
    }
    for (int i = 0; i < count; i++) {
        print(argv[2 + i], aclrtSynchronizeStream(session[i].stream));
    }
    /* A failed device ends only when it is closed. */
    while (aclrtResetDevice(0) == ACL_SUCCESS) {
    }
    (void)aclrtGetRecentErrMsg();
    Session again;
    session_open(&again, argv[1], "Copy");
    session_copy(&again, 7);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    printf("copied\n");
    return 0;
}
