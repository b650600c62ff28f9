/* A device with one stream and the kernel CopyLen, and a copy through it whose bytes are checked. C11 and C++17. */

#ifndef SESSION_H
#define SESSION_H

#include <string.h>

#include "acl/acl.h"
#include "check.h"
#include "copy_params.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "launch_in_step.h"

enum { SESSION_LEN = 5000 };

typedef struct Session {
    HcclComm comm;
    aclrtStream stream;
    aclrtBinHandle binary;
    aclrtFuncHandle function;
    ControlPair pair;
    CopyParams param;
} Session;

/* The kernel of operator `name` is that of `description`. */
static inline void session_open(Session *session, const char *description, const char *name) {
    int32_t device = 0;
    memset(session, 0, sizeof *session);
    CopyParams *param = &session->param;
    CHECK(aclrtSetDevice(device), ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &device, &session->comm), HCCL_SUCCESS);
    CHECK(HcclThreadAcquire(session->comm, COMM_ENGINE_AICPU_TS, 1, 1, &param->thread), HCCL_SUCCESS);
    CHECK(aclrtCreateStream(&session->stream), ACL_SUCCESS);
    session->pair = control_pair(session->comm, session->stream, param->thread);
    param->cpuThread = session->pair.cpuThreadOnAicpu;
    CHECK(aclrtMalloc(&param->userIn, SESSION_LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMalloc(&param->cclBuf, SESSION_LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, &session->binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(session->binary, name, &session->function), ACL_SUCCESS);
}

/* Queues a copy of `len` bytes of device memory from `src`. */
static inline void session_queue(Session *session, void *src, uint64_t len) {
    CopyParams param = session->param;
    param.userIn = src;
    param.len = len;
    record_start(&session->pair);
    CHECK(aclrtLaunchKernelWithHostArgs(session->function, 1, session->stream, NULL, &param, sizeof param, NULL, 0),
          ACL_SUCCESS);
    wait_for_end(&session->pair);
}

/* Copies bytes that depend on `seed`, and checks them. */
static inline void session_copy(Session *session, unsigned seed) {
    static unsigned char bytes[SESSION_LEN], found[SESSION_LEN];
    for (unsigned i = 0; i < SESSION_LEN; i++) {
        bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
    }
    memset(found, 0, SESSION_LEN);
    CHECK(aclrtMemcpy(session->param.userIn, SESSION_LEN, bytes, SESSION_LEN, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    session_queue(session, session->param.userIn, SESSION_LEN);
    CHECK(aclrtSynchronizeStream(session->stream), ACL_SUCCESS);
    CHECK(aclrtMemcpy(found, SESSION_LEN, session->param.cclBuf, SESSION_LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(bytes, found, SESSION_LEN), 0);
}

/* Lets the device fail: a task reads what is no memory of it. */
static inline void session_fail(Session *session) {
    session_queue(session, (void *)0x1000, 64);
    CHECK(aclrtSynchronizeStream(session->stream), ACL_ERROR_RT_TS_ERROR);
    (void)aclrtGetRecentErrMsg();
}

#endif /* SESSION_H */
