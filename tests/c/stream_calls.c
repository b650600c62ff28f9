/* Copies and fills by streams, and events: order, waits, queries, times. C11 and C++17.
 *
 *   stream_calls DESCRIPTION
 */

#include "session.h"

enum { LEN = 1 << 16 };

static aclrtEventRecordedStatus status_of(aclrtEvent event) {
    aclrtEventRecordedStatus status = (aclrtEventRecordedStatus)7;
    CHECK(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
    return status;
}

/* The bytes go host, device, device, host; each step comes after the one before it. */
static void copies_are_in_order(aclrtStream stream) {
    static unsigned char in[LEN], out[LEN + 1];
    char *first = NULL, *second = NULL;
    int i;
    for (i = 0; i < LEN; i++) {
        in[i] = (unsigned char)(i * 7 + (i >> 8));
    }
    CHECK(aclrtMalloc((void **)&first, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMalloc((void **)&second, LEN, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemcpyAsync(first, LEN, in, LEN, ACL_MEMCPY_HOST_TO_DEVICE, stream), ACL_SUCCESS);
    CHECK(aclrtMemcpyAsync(second, LEN, first, LEN, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), ACL_SUCCESS);
    /* After the copy: it must not change what was copied. */
    CHECK(aclrtMemsetAsync(first, LEN, 0x1ff, LEN, stream), ACL_SUCCESS);
    CHECK(aclrtMemcpyAsync(out, LEN, second, LEN, ACL_MEMCPY_DEVICE_TO_HOST, stream), ACL_SUCCESS);
    CHECK(aclrtMemcpyAsync(out + LEN, 1, out, 1, ACL_MEMCPY_HOST_TO_HOST, stream), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK(memcmp(in, out, LEN), 0);
    CHECK(out[LEN], in[0]);
    /* Ranges that overlap are copied as by memmove. */
    CHECK(aclrtMemcpyAsync(second + 1, LEN - 1, second, LEN - 1, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), ACL_SUCCESS);
    CHECK(aclrtMemsetAsync(out, LEN, 5, LEN, stream), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    CHECK_TRUE(out[0] == 5 && out[LEN - 1] == 5);
    CHECK(aclrtMemcpy(out, LEN, second, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK(memcmp(in, out + 1, LEN - 1), 0);
    CHECK(aclrtMemcpy(out, LEN, first, LEN, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK_TRUE(out[0] == 0xff && out[LEN - 1] == 0xff);
    CHECK(aclrtFree(first), ACL_SUCCESS);
    CHECK(aclrtFree(second), ACL_SUCCESS);
}

/* Stream `second` copies what `first` has written: by an event, without the host in between. */
static void stream_waits_for_event(aclrtStream first, aclrtStream second) {
    unsigned char out = 0;
    void *ptr = NULL;
    aclrtNotify gate;
    aclrtEvent event;
    CHECK(aclrtMalloc(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemset(ptr, 64, 1, 64), ACL_SUCCESS);
    CHECK(aclrtCreateNotify(&gate, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtCreateEvent(&event), ACL_SUCCESS);
    CHECK(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    /* Never recorded: nothing waits for it. */
    CHECK(aclrtStreamWaitEvent(second, event), ACL_SUCCESS);
    CHECK(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(second), ACL_SUCCESS);

    CHECK(aclrtWaitAndResetNotify(gate, first, 30), ACL_SUCCESS);
    CHECK(aclrtMemsetAsync(ptr, 64, 2, 64, first), ACL_SUCCESS);
    CHECK(aclrtRecordEvent(event, first), ACL_SUCCESS);
    CHECK(aclrtMemsetAsync(ptr, 64, 3, 0, first), ACL_SUCCESS);
    CHECK(aclrtStreamWaitEvent(second, event), ACL_SUCCESS);
    CHECK(aclrtMemcpyAsync(&out, 1, ptr, 1, ACL_MEMCPY_DEVICE_TO_HOST, second), ACL_SUCCESS);
    CHECK(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK(aclrtSynchronizeStreamWithTimeout(second, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK(out, 0);
    CHECK(aclrtRecordNotify(gate, NULL), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(second), ACL_SUCCESS);
    CHECK(out, 2);
    CHECK(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK(aclrtSynchronizeStream(first), ACL_SUCCESS);

    /* A host that waits for an event does not wait for what comes after it on the stream. */
    CHECK(aclrtRecordEvent(event, first), ACL_SUCCESS);
    CHECK(aclrtWaitAndResetNotify(gate, first, 30), ACL_SUCCESS);
    CHECK(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStreamWithTimeout(first, 0), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    /* Nor does a stream wait for a record that is made after its call. */
    CHECK(aclrtStreamWaitEvent(second, event), ACL_SUCCESS);
    CHECK(aclrtRecordEvent(event, first), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(second), ACL_SUCCESS);
    CHECK(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    /* Destroyed while a stream still has to reach it. */
    CHECK(aclrtStreamWaitEvent(second, event), ACL_SUCCESS);
    CHECK(aclrtDestroyEvent(event), ACL_SUCCESS);
    CHECK(aclrtRecordNotify(gate, NULL), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(first), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(second), ACL_SUCCESS);
    CHECK(aclrtDestroyNotify(gate), ACL_SUCCESS);
    CHECK(aclrtFree(ptr), ACL_SUCCESS);
    (void)aclrtGetRecentErrMsg();
}

/* Times of a launch: from before it to after its end notify. */
static void times_of_a_launch(Session *session) {
    aclrtEvent start, end;
    float ms = -1;
    CHECK(aclrtCreateEventWithFlag(&start, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
    CHECK(aclrtCreateEventWithFlag(&end, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE), ACL_SUCCESS);
    CHECK(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtRecordEvent(start, session->stream), ACL_SUCCESS);
    session_queue(session, session->param.userIn, SESSION_LEN);
    CHECK(aclrtRecordEvent(end, session->stream), ACL_SUCCESS);
    CHECK(aclrtSynchronizeEvent(end), ACL_SUCCESS);
    CHECK(aclrtEventElapsedTime(&ms, start, end), ACL_SUCCESS);
    CHECK_TRUE(ms > 0);
    CHECK(aclrtSynchronizeStream(session->stream), ACL_SUCCESS);
    CHECK(aclrtDestroyEvent(start), ACL_SUCCESS);
    CHECK(aclrtDestroyEvent(end), ACL_SUCCESS);
    (void)aclrtGetRecentErrMsg();
}

/* Freed before the stream comes to it: an error of the device, not a write into memory of another. */
static void freed_memory_is_an_error(void) {
    aclrtStream stream;
    aclrtNotify gate;
    void *ptr = NULL;
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(aclrtCreateNotify(&gate, ACL_NOTIFY_DEFAULT), ACL_SUCCESS);
    CHECK(aclrtMalloc(&ptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtWaitAndResetNotify(gate, stream, 30), ACL_SUCCESS);
    CHECK(aclrtMemsetAsync(ptr, 64, 1, 64, stream), ACL_SUCCESS);
    CHECK(aclrtFree(ptr), ACL_SUCCESS);
    CHECK(aclrtRecordNotify(gate, NULL), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_RT_TS_ERROR);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "fill of 64 bytes at") != NULL);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
}

int main(int argc, char **argv) {
    Session session;
    aclrtStream second;
    if (argc != 2) {
        return 2;
    }
    session_open(&session, argv[1], "CopyLen");
    CHECK(aclrtCreateStreamWithConfig(&second, 7, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC), ACL_SUCCESS);
    copies_are_in_order(second);
    stream_waits_for_event(session.stream, second);
    times_of_a_launch(&session);
    session_copy(&session, 3);
    freed_memory_is_an_error();
    puts("stream calls");
    return 0;
}
