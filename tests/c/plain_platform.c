/* A platform in C over plain memory: libhcomm_aicpu.a, a ring, and nothing else. C11 and C++17, for this machine and for
 * AArch64. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hccl/hccl_types.h"
#include "hcomm/hcomm_platform.h"
#include "hcomm/hcomm_primitives.h"

#define CHECK(value, expected)                                                                    \
    do {                                                                                          \
        const unsigned long long check_got = (unsigned long long)(value);                         \
        const unsigned long long check_expected = (unsigned long long)(expected);                 \
        if (check_got != check_expected) {                                                        \
            fprintf(stderr, "%s:%d: %s is %#llx, not %#llx\n", __FILE__, __LINE__, #value,        \
                    check_got, check_expected);                                                   \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

#define DEPTH 4
#define SQ_ID 9
#define REGS 0x1234
#define SLOTS 2
#define GENERATION 7

/* The device's side of the queue, and what it has been asked for. */
static struct {
    const void *core;
    uint64_t status;
    uint32_t head, rings, tail, barriers, slots_at_barrier;
    int32_t refusal, unreadable;
    uint64_t now_us;
} port = {NULL, HCOMM_QUEUE_ENABLED, 0, 0, 0, 0, 0, 0, 0, 0};

typedef struct Entry {
    unsigned char bytes[64];
} Entry;

static Entry *ring;
static HcommThreadDescriptor *table;

static uint32_t written(void) {
    uint32_t count = 0;
    for (int i = 0; i < DEPTH; i++) {
        count += ring[i].bytes[0] != 0xee;
    }
    return count;
}

const void *hcomm_port_core(void) {
    return port.core;
}

void hcomm_port_set_core(const void *core) {
    port.core = core;
}

int32_t hcomm_port_has_queue(uint32_t sqId, uint64_t regs) {
    return sqId == SQ_ID && regs == REGS;
}

int32_t hcomm_port_head(uint32_t sqId, uint64_t regs, uint32_t *head) {
    CHECK(sqId, SQ_ID);
    CHECK(regs, REGS);
    *head = port.head;
    return port.unreadable;
}

int32_t hcomm_port_status(uint32_t sqId, uint64_t regs, uint64_t *status) {
    CHECK(sqId, SQ_ID);
    CHECK(regs, REGS);
    *status = port.status;
    return port.unreadable;
}

void hcomm_port_return_addresses(uint64_t *addrs, size_t count) {
    (void)addrs;
    (void)count;
}

int32_t hcomm_port_ring(uint32_t sqId, uint64_t regs, uint32_t tail) {
    CHECK(sqId, SQ_ID);
    CHECK(regs, REGS);
    if (port.refusal != 0) {
        return port.refusal;
    }
    port.rings++;
    port.tail = tail;
    return 0;
}

void hcomm_port_store_barrier(void) {
    port.barriers++;
    port.slots_at_barrier = written();
}

uint64_t hcomm_port_now_us(void) {
    return port.now_us;
}

void hcomm_port_delay_ns(uint32_t ns) {
    port.now_us += ns / 1000 + 1;
}

/* The last call that was refused. */
static struct {
    uint32_t count;
    int32_t code;
    char who[64], text[128];
} refused;

void hcomm_port_refused(const char *who, size_t whoLen, int32_t code, const void *error) {
    refused.count++;
    refused.code = code;
    CHECK(whoLen < sizeof refused.who, 1);
    memcpy(refused.who, who, whoLen);
    refused.who[whoLen] = 0;
    const size_t len = hcomm_refusal_text(error, NULL, 0);
    CHECK(len > 4 && len < sizeof refused.text, 1);
    memset(refused.text, 'x', sizeof refused.text);
    CHECK(hcomm_refusal_text(error, refused.text, 4), len);
    CHECK(strlen(refused.text), 3);
    CHECK(refused.text[4], 'x');
    CHECK(hcomm_refusal_text(error, refused.text, sizeof refused.text), len);
    CHECK(strlen(refused.text), len);
}

/* Aligned memory that is full of what nobody has set. */
static void *memory(size_t align, size_t size) {
    void *ptr = aligned_alloc(align, (size + align - 1) / align * align);
    CHECK(ptr != NULL, 1);
    memset(ptr, 0xee, size);
    return ptr;
}

static HcommDevice *new_device(void) {
    const size_t align = hcomm_device_align(), size = hcomm_device_size();
    HcommDevice *device = (HcommDevice *)memory(align, size);
    CHECK(hcomm_device_init(NULL), HCCL_E_PTR);
    CHECK(hcomm_device_init((HcommDevice *)((char *)device + 1)), HCCL_E_PARA);
    CHECK(hcomm_device_init(device), HCCL_SUCCESS);
    CHECK(hcomm_device_set_thread_table(NULL, table, SLOTS), HCCL_E_PTR);
    CHECK(hcomm_device_set_thread_table(device, NULL, SLOTS), HCCL_E_PTR);
    CHECK(hcomm_device_set_thread_table(device, (HcommThreadDescriptor *)((char *)table + 8), 1), HCCL_E_PARA);
    CHECK(hcomm_device_set_thread_table(device, table, HCOMM_MAX_THREADS + 1), HCCL_E_PARA);
    CHECK(hcomm_device_set_thread_table(device, table, SLOTS), HCCL_SUCCESS);
    return device;
}

static uint32_t notify_ids[2] = {5, 77};

static void publish_thread(void) {
    HcommThreadDescriptor thread;
    memset(&thread, 0, sizeof thread);
    thread.version = HCOMM_THREAD_VERSION;
    thread.generation = GENERATION;
    thread.engine = COMM_ENGINE_AICPU_TS;
    thread.streamId = 3;
    thread.sqId = SQ_ID;
    thread.depth = DEPTH;
    thread.sqBase = (uintptr_t)ring;
    thread.regs = REGS;
    thread.notifies = (uintptr_t)notify_ids | (uint64_t)2 << 48;
    table[1] = thread;
    table[1].magic = HCOMM_THREAD_MAGIC;
}

static void check_entry(uint32_t slot, const unsigned char *expected) {
    for (int i = 0; i < 64; i++) {
        CHECK(ring[slot].bytes[i], expected[i]);
    }
}

/* A copy of 4096 bytes from 0x12c180000000 to 0x12c0c0000000 on an Ascend950, with task id 0. */
static const unsigned char COPY[64] = {
    0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0, 0x00, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /**/
    0, 0, 0, 0x80, 0xc1, 0x12, 0, 0, 0, 0, 0, 0xc0, 0xc0, 0x12, 0, 0, 0x00, 0x10, 0, 0};

static int32_t copy(ThreadHandle thread) {
    return HcommLocalCopyOnThread(thread, (void *)(uintptr_t)0x12c0c0000000, (void *)(uintptr_t)0x12c180000000, 4096);
}

static void copies(void *arg) {
    const ThreadHandle thread = *(const ThreadHandle *)arg;
    const uint32_t before_refusal = refused.count;
    CHECK(copy(0), HCCL_E_PTR);
    CHECK(refused.count, before_refusal + 1);
    CHECK(refused.code, HCCL_E_PTR);
    CHECK(strcmp(refused.who, "HcommLocalCopyOnThread"), 0);
    CHECK(strcmp(refused.text, "thread handle is 0"), 0);
    CHECK(hcomm_refusal_text(NULL, refused.text, 4), 0);
    CHECK(copy(thread ^ (uint64_t)1 << 48), HCCL_E_NOT_FOUND);
    CHECK(copy(hcomm_thread_handle(table, GENERATION)), HCCL_E_NOT_FOUND);
    CHECK(written(), 0);

    port.unreadable = 7;
    CHECK(copy(thread), HCCL_E_DRV);
    CHECK(strcmp(refused.text, "status of sq 9 can't be read: the platform answers 7"), 0);
    port.unreadable = 0;
    CHECK(copy(thread), HCCL_SUCCESS);
    check_entry(0, COPY);
    CHECK(port.rings, 1);
    CHECK(port.tail, 1);
    /* Written before the barrier, rung for after it. */
    CHECK(port.barriers, 1);
    CHECK(port.slots_at_barrier, 1);
    CHECK(written(), 1);

    port.refusal = -1;
    CHECK(copy(thread), HCCL_E_DRV);
    port.refusal = 0;
    port.status = HCOMM_QUEUE_SUSPENDED;
    CHECK(copy(thread), HCCL_E_SUSPENDING);
    port.status = HCOMM_QUEUE_ENABLED;
    CHECK(port.rings, 1);

    /* The ring has room for DEPTH - 1; then the call gives up when its time is over. */
    CHECK(copy(thread), HCCL_SUCCESS);
    CHECK(copy(thread), HCCL_SUCCESS);
    CHECK(HcommThreadResAcquireTimeOut(1), HCCL_SUCCESS);
    const uint64_t before = port.now_us;
    CHECK(copy(thread), HCCL_E_TIMEOUT);
    CHECK(port.now_us - before >= 1000000, 1);
    port.head = 3;
    CHECK(copy(thread), HCCL_SUCCESS);
    CHECK(port.tail, 0);
    CHECK(ring[3].bytes[0], 0x0b);
}

static void batches(void *arg) {
    const ThreadHandle thread = *(const ThreadHandle *)arg;
    const uint32_t rings = port.rings;
    port.head = port.tail;
    CHECK(HcommBatchModeStart(NULL), HCCL_SUCCESS);
    CHECK(HcommThreadNotifyRecordOnThread(thread, thread, 1), HCCL_SUCCESS);
    CHECK(HcommThreadNotifyWaitOnThread(thread, 1, 1), HCCL_SUCCESS);
    CHECK(HcommThreadNotifyWaitOnThread(thread, 2, 1), HCCL_E_PTR);
    CHECK(port.rings, rings);
    CHECK(HcommBatchModeEnd(NULL), HCCL_SUCCESS);
    CHECK(port.rings, rings + 1);
    CHECK(port.tail, 2);
    CHECK(ring[0].bytes[8], 77);
    CHECK(ring[1].bytes[0], 7);
}

static void open_batch(void *arg) {
    CHECK(HcommBatchModeStart(NULL), HCCL_SUCCESS);
    CHECK(copy(*(const ThreadHandle *)arg), HCCL_SUCCESS);
}

static void nothing(void *arg) {
    (void)arg;
}

/* A launch on the core that a kernel runs on. */
static void on_busy_core(void *device) {
    CHECK(hcomm_device_run((const HcommDevice *)device, 1, nothing, NULL, NULL), HCCL_E_AGAIN);
    CHECK(hcomm_device_run((const HcommDevice *)device, 2, nothing, NULL, NULL), HCCL_SUCCESS);
    CHECK(port.core != NULL, 1);
}

static void run(const HcommDevice *device, HcommKernel kernel, void *arg, uint32_t expected) {
    uint32_t left_behind = 77;
    CHECK(port.core == NULL, 1);
    CHECK(hcomm_device_run(device, 1, kernel, arg, &left_behind), HCCL_SUCCESS);
    CHECK(left_behind, expected);
    CHECK(port.core == NULL, 1);
}

static void lock(void *expected) {
    CHECK(HcommAcquireComm("world"), *(const int32_t *)expected);
}

static void locks(void *arg) {
    (void)arg;
    CHECK(HcommAcquireComm("world"), HCCL_SUCCESS);
    CHECK(HcommAcquireComm("world"), HCCL_E_AGAIN);
    CHECK(HcommAcquireComm("worl"), HCCL_E_PTR);
}

static void record(void *arg) {
    CHECK(HcommAclrtNotifyRecordOnThread(*(const ThreadHandle *)arg, 1), HCCL_SUCCESS);
}

/* Two devices know nothing of each other: here the other has another chip's descriptors, and a communicator. */
static void other_device(ThreadHandle thread) {
    static HcommCommEntry comms[HCOMM_MAX_COMMS];
    HcommDevice *device = new_device();
    CHECK(hcomm_device_set_soc(NULL, 2), HCCL_E_PTR);
    CHECK(hcomm_device_set_soc(device, 3), HCCL_E_PARA);
    CHECK(hcomm_device_set_soc(device, 2), HCCL_SUCCESS);
    CHECK(hcomm_device_set_comm_table(NULL, comms), HCCL_E_PTR);
    CHECK(hcomm_device_set_comm_table(device, NULL), HCCL_E_PTR);
    CHECK(hcomm_device_set_comm_table(device, (HcommCommEntry *)((char *)comms + 4)), HCCL_E_PARA);
    memcpy(comms[63].name, "world", 6);
    comms[63].live = 1;
    int32_t codes[2] = {HCCL_E_PTR, HCCL_SUCCESS};
    run(device, lock, &codes[0], 0);
    CHECK(hcomm_device_set_comm_table(device, comms), HCCL_SUCCESS);
    run(device, locks, NULL, 0);
    /* The end of a launch has released it. */
    run(device, lock, &codes[1], 0);
    port.head = 0;
    run(device, record, &thread, 0);
    CHECK(port.tail, 1);
    CHECK(ring[0].bytes[0], 6);
    CHECK(ring[0].bytes[4], 3);
    CHECK(ring[0].bytes[8], 1);
    free(device);
}

int main(void) {
    ring = (Entry *)memory(64, DEPTH * sizeof(Entry));
    table = (HcommThreadDescriptor *)memory(64, SLOTS * sizeof *table);
    HcommDevice *device = new_device();
    publish_thread();
    ThreadHandle thread = hcomm_thread_handle(&table[1], GENERATION);
    /* No core runs the caller. */
    CHECK(copy(thread), HCCL_E_UNAVAIL);
    CHECK(hcomm_device_run(NULL, 1, nothing, NULL, NULL), HCCL_E_PTR);
    CHECK(hcomm_device_run(device, 1, NULL, NULL, NULL), HCCL_E_PTR);
    CHECK(hcomm_device_run(device, HCOMM_MAX_CORES, nothing, NULL, NULL), HCCL_E_PARA);
    run(device, copies, &thread, 0);
    run(device, batches, &thread, 0);
    const uint32_t rings = port.rings;
    run(device, open_batch, &thread, HCOMM_LEFT_BATCH_OPEN);
    run(device, nothing, NULL, 0);
    CHECK(port.rings, rings);
    run(device, on_busy_core, device, 0);
    other_device(thread);
    free(device);
    free(table);
    free(ring);
    printf("platform in C works\n");
    return 0;
}
