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

uint32_t hcomm_port_head(uint32_t sqId, uint64_t regs) {
    (void)sqId, (void)regs;
    return 0;
}

uint64_t hcomm_port_status(uint32_t sqId, uint64_t regs) {
    (void)sqId, (void)regs;
    return HCOMM_QUEUE_ENABLED;
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

/* A kernel of a card: 0 or 1; the code is in the parameters. */
uint32_t card_copy(void *args) {
    struct CardParams *params = (struct CardParams *)args;
    HcommDevice *device = (HcommDevice *)params->device;
    HcommCore *core = (HcommCore *)params->core;
    if (params->device_size < hcomm_device_size() || params->core_size < hcomm_core_size()) {
        return 1;
    }
    queue = params;
    params->code = hcomm_device_init(device);
    if (params->code == 0) params->code = hcomm_device_set_thread_table(device, params->table, 1);
    if (params->code == 0) params->code = hcomm_core_init(core, device);
    if (params->code == 0) {
        running = core;
        params->code = HcommLocalCopyOnThread(hcomm_thread_handle(params->table, 1), params->dst, params->src, params->len);
        running = NULL;
        hcomm_core_finish_launch(core);
    }
    return params->code != 0;
}
