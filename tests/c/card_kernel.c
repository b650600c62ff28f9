/* A library as the loader of a card takes it: libhcomm_aicpu.a for AArch64 Linux, a platform over memory that the launch names,
 * and one kernel. No C library is needed to link it. */

#include <stddef.h>
#include <stdint.h>

#include "card_params.h"
#include "hccl/hccl_types.h"
#include "hcomm/hcomm_platform.h"
#include "hcomm/hcomm_primitives.h"

static const void *running;
static struct CardParams *queue;

const void *hcomm_port_core(void) {
    return running;
}

void hcomm_port_set_core(const void *core) {
    running = core;
}

int32_t hcomm_port_has_queue(uint32_t sqId, uint64_t regs) {
    (void)sqId, (void)regs;
    return 1;
}

int32_t hcomm_port_head(uint32_t sqId, uint64_t regs, uint32_t *head) {
    (void)sqId, (void)regs;
    *head = 0;
    return 0;
}

int32_t hcomm_port_status(uint32_t sqId, uint64_t regs, uint64_t *status) {
    (void)sqId, (void)regs;
    *status = HCOMM_QUEUE_ENABLED;
    return 0;
}

void hcomm_port_return_addresses(uint64_t *addrs, size_t count) {
    (void)addrs, (void)count;
}

int32_t hcomm_port_ring(uint32_t sqId, uint64_t regs, uint32_t tail) {
    (void)sqId, (void)regs;
    queue->tail = tail;
    return 0;
}

void hcomm_port_store_barrier(void) {
    __asm__ volatile("dsb st" ::: "memory");
}

uint64_t hcomm_port_now_us(void) {
    uint64_t count, frequency;
    __asm__ volatile("mrs %0, cntvct_el0\n\tmrs %1, cntfrq_el0" : "=r"(count), "=r"(frequency));
    return count / (frequency / 1000000);
}

void hcomm_port_delay_ns(uint32_t ns) {
    (void)ns;
    __asm__ volatile("yield");
}

void hcomm_port_refused(const char *who, size_t whoLen, int32_t code, const void *error) {
    (void)who, (void)whoLen, (void)code, (void)error;
}

static void copy(void *args) {
    struct CardParams *params = (struct CardParams *)args;
    params->code = HcommLocalCopyOnThread(hcomm_thread_handle(params->table, 1), params->dst, params->src, params->len);
}

/* A kernel of a card: 0 or 1; the code is in the parameters. */
uint32_t card_copy(void *args) {
    struct CardParams *params = (struct CardParams *)args;
    HcommDevice *device = (HcommDevice *)params->device;
    if (params->device_size < hcomm_device_size()) {
        return 1;
    }
    queue = params;
    params->code = hcomm_device_init(device);
    if (params->code == 0) params->code = hcomm_device_set_thread_table(device, params->table, 1);
    if (params->code == 0 && hcomm_device_run(device, 0, copy, params, NULL) != 0) return 1;
    return params->code != 0;
}
