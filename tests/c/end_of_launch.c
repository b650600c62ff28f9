/* A launch without the end of a control pair: prints what the synchronise returns. C11 and C++17.
 *
 *   end_of_launch DESCRIPTION
 */

#include "control_params.h"
#include "session.h"

int main(int argc, char **argv) {
    Session session;
    ControlParams params;
    unsigned char byte = 0;
    aclError code;
    if (argc != 2) {
        return 2;
    }
    if (aclrtSetDevice(0) != ACL_SUCCESS) {
        printf("%s\n", aclrtGetRecentErrMsg());
        return 0;
    }
    session_open(&session, argv[1], "NoEnd");
    memset(&params, 0, sizeof params);
    params.threads[0] = session.param.thread;
    params.src = (unsigned char *)session.param.userIn;
    params.dst = (unsigned char *)session.param.cclBuf;
    params.len = SESSION_LEN;
    CHECK(aclrtMemset(params.src, SESSION_LEN, 9, SESSION_LEN), ACL_SUCCESS);
    record_start(&session.pair);
    CHECK(aclrtLaunchKernelWithHostArgs(session.function, 1, session.stream, NULL, &params, sizeof params, NULL, 0), ACL_SUCCESS);
    CHECK(aclrtMemcpyAsync(&byte, 1, params.dst + SESSION_LEN - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST, session.stream), ACL_SUCCESS);
    code = aclrtSynchronizeStream(session.stream);
    if (code != ACL_SUCCESS) {
        const char *const text = aclrtGetRecentErrMsg();
        CHECK_TRUE(strstr(text, "end notify") != NULL && strstr(text, "HCOMM_SIM_END=queues") != NULL);
        printf("%d\n", code);
        return 0;
    }
    printf("%d %d\n", code, byte);
    return 0;
}
