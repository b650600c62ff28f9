/* Forked children. C11 and C++17.
 *
 *   forks DESCRIPTION WHEN
 *     before   the child is forked before the first call: each process has devices of its own
 *     closed   as before, but the parent has opened, used and closed its device
 *     exits    the child of a parent with an open device ends by exit, with the calls of its parent's exit handler
 *     busy     children are forked while other threads of the parent are inside calls: none of them hangs
 */

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"

enum { THREADS = 3, CHILDREN = 60 };

static Session session;
static const char *description;
static volatile int done;
static pid_t parent;

static void use_a_device(unsigned seed) {
    session_open(&session, description, "CopyLen");
    session_copy(&session, seed);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
}

/* The child must end by itself, with status 0. */
static void wait_for(pid_t child) {
    int status = 0;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
}

static void at_exit(void) {
    const aclError expected = getpid() == parent ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
    if (aclrtDestroyStream(session.stream) != expected || aclrtResetDevice(0) != expected) {
        _exit(4);
    }
}

/* Calls that take every lock there is, without end. */
static void *keep_calling(void *unused) {
    (void)unused;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    while (!done) {
        aclrtStream stream;
        void *ptr;
        char byte = 1;
        CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
        CHECK(aclrtMalloc(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
        CHECK(aclrtMemcpy(ptr, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
        CHECK(aclrtDestroyNotify((void *)0x1234), ACL_ERROR_INVALID_RESOURCE_HANDLE);
        CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        CHECK(aclrtFree(ptr), ACL_SUCCESS);
        CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
        (void)aclrtGetRecentErrMsg();
    }
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    return NULL;
}

static void fork_while_busy(void) {
    pthread_t threads[THREADS];
    /* The threads' failing call takes the lock of standard error, too. */
    CHECK(setenv("HCOMM_SIM_LOG", "error", 1), 0);
    session_open(&session, description, "CopyLen");
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, keep_calling, NULL), 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        if (child == 0) {
            aclrtStream stream;
            alarm(30);
            const int refused = aclrtSetDevice(1) == ACL_ERROR_RT_CONTEXT_NULL &&
                                aclrtCreateStream(&stream) == ACL_ERROR_RT_CONTEXT_NULL &&
                                aclrtSynchronizeDevice() == ACL_ERROR_RT_CONTEXT_NULL &&
                                HcommThreadNotifyWaitOnThread(session.pair.cpuThread, 0, 1) == HCCL_E_RUNTIME &&
                                aclrtGetSocName() != NULL && aclrtGetRecentErrMsg() != NULL;
            _exit(!refused);
        }
        wait_for(child);
    }
    done = 1;
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL), 0);
    }
    session_copy(&session, 3);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    description = argv[1];
    parent = getpid();
    if (strcmp(argv[2], "busy") == 0) {
        fork_while_busy();
    } else if (strcmp(argv[2], "exits") == 0) {
        CHECK(atexit(at_exit), 0);
        session_open(&session, description, "CopyLen");
        const pid_t child = fork();
        if (child == 0) {
            exit(0);
        }
        wait_for(child);
        session_copy(&session, 2);
    } else {
        if (strcmp(argv[2], "closed") == 0) {
            use_a_device(1);
        }
        const pid_t child = fork();
        use_a_device(2);
        if (child == 0) {
            _exit(0);
        }
        wait_for(child);
        use_a_device(3);
    }
    printf("%s\n", argv[2]);
    return 0;
}
