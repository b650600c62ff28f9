/* Threads that end without a reset of the device that they have set. C11 and C++17.
 *
 *   ended_threads DESCRIPTION WHICH
 *     failed   a worker has ended, the device fails, the thread that is left resets it: the device is a fresh one
 *     late     as before, but the worker has set the device in the destructor of its thread-specific data
 *     live     a worker lives and has set the device: it stays as it is until that thread resets it too
 *     alone    all threads that have set the device have ended: it stays open, and a thread that sets it later finds its memory
 */

#include <pthread.h>

#include "session.h"

static Session session;
static pthread_key_t key;
static pthread_barrier_t barrier;
static const char *description;

static void *set_and_end(void *unused) {
    (void)unused;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    return NULL;
}

static void set_late(void *unused) { (void)set_and_end(unused); }

static void *end_with_key(void *unused) {
    (void)unused;
    CHECK(pthread_setspecific(key, &key), 0);
    return NULL;
}

static void *open_and_end(void *unused) {
    (void)unused;
    session_open(&session, description, "CopyLen");
    return NULL;
}

static void *set_and_wait(void *unused) {
    (void)unused;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    pthread_barrier_wait(&barrier);
    /* The other thread resets the device in between. */
    pthread_barrier_wait(&barrier);
    CHECK(aclrtSynchronizeDevice(), ACL_ERROR_RT_TS_ERROR);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    return NULL;
}

static void run_to_its_end(void *(*run)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL), 0);
    CHECK(pthread_join(thread, NULL), 0);
}

static void reset_gives_a_fresh_device(void) {
    session_fail(&session);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(session.stream), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    session_open(&session, description, "CopyLen");
    session_copy(&session, 2);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
}

static void one_lives(void) {
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2), 0);
    CHECK(pthread_create(&thread, NULL, set_and_wait, NULL), 0);
    pthread_barrier_wait(&barrier);
    session_fail(&session);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    /* It is the same device, which has failed. */
    void *ptr;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtMalloc(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_TS_ERROR);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(thread, NULL), 0);
    session_open(&session, description, "CopyLen");
    session_copy(&session, 2);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    description = argv[1];
    CHECK(pthread_key_create(&key, set_late), 0);
    if (strcmp(argv[2], "alone") == 0) {
        run_to_its_end(open_and_end);
        CHECK(aclrtSetDevice(0), ACL_SUCCESS);
        session_copy(&session, 1);
        CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    } else {
        session_open(&session, description, "CopyLen");
        if (strcmp(argv[2], "live") == 0) {
            one_lives();
        } else {
            run_to_its_end(strcmp(argv[2], "late") == 0 ? end_with_key : set_and_end);
            reset_gives_a_fresh_device();
        }
    }
    printf("%s\n", argv[2]);
    return 0;
}
