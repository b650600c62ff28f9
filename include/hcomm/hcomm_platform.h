/* A platform of one's own for libhcomm_aicpu.a: what the library asks of it (hcomm_port_*), and what it makes its device with
 * and runs kernels by.
 *
 * A device is what the cores of one AI CPU share. Its threads are descriptors in a table that the platform owns; a handle is
 * the address of a descriptor and its generation. Which core runs the caller is a word of the calling thread of execution, which
 * the platform keeps and the library sets.
 *
 * Codes are those of HcclResult: 0, 1 for a wrong argument, 2 for null.
 */

#ifndef HCOMM_SIM_HCOMM_PLATFORM_H
#define HCOMM_SIM_HCOMM_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include "hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#define HCOMM_PLATFORM_ASSERT static_assert
#else
#define HCOMM_PLATFORM_ASSERT _Static_assert
#endif

/* Bytes that only the library looks into. */
typedef struct HcommDevice HcommDevice;

/* One slot of the table of threads, 64-byte aligned. The first eight bytes are written last and cleared first. */
typedef struct HcommThreadDescriptor {
    uint32_t magic;        /* HCOMM_THREAD_MAGIC; anything else: the slot is not in use */
    uint16_t version;      /* HCOMM_THREAD_VERSION */
    uint16_t generation;   /* counts the lives of the slot, never 0 */
    int32_t engine;        /* COMM_ENGINE_AICPU_TS; threads of other engines can only be sent notifies */
    uint32_t streamId;     /* on A2 and A3 a part of every descriptor */
    uint32_t sqId;         /* handed to hcomm_port_* */
    uint32_t depth;        /* entries of the ring, 2 and more */
    uint64_t sqBase;       /* address of the ring, 64-byte aligned, depth entries of 64 bytes */
    uint64_t regs;         /* handed to hcomm_port_*, means something to them alone */
    uint64_t notifies;     /* address of the ids of 32 bits (bits 0 to 47) and their number (bits 48 to 63), as one word */
    uint64_t comm;         /* communicator, counted from 1; 0: none */
    uint64_t reserved;     /* 0 */
} HcommThreadDescriptor;

#define HCOMM_THREAD_MAGIC 0x44544348u
#define HCOMM_THREAD_VERSION 2u
#define HCOMM_MAX_THREADS 2048u

HCOMM_PLATFORM_ASSERT(sizeof(HcommThreadDescriptor) == 64, "layout of a descriptor");
HCOMM_PLATFORM_ASSERT(offsetof(HcommThreadDescriptor, engine) == 8, "layout of a descriptor");
HCOMM_PLATFORM_ASSERT(offsetof(HcommThreadDescriptor, sqBase) == 24, "layout of a descriptor");
HCOMM_PLATFORM_ASSERT(offsetof(HcommThreadDescriptor, notifies) == 40, "layout of a descriptor");

/* The handle of the thread in a slot. */
static inline ThreadHandle hcomm_thread_handle(const HcommThreadDescriptor *slot, uint16_t generation) {
    return (uint64_t)(uintptr_t)slot | (uint64_t)generation << 48;
}

/* One of the HCOMM_MAX_COMMS entries of the table of communicators. */
typedef struct HcommCommEntry {
    uint64_t live;   /* not 0 while the communicator exists; written last, cleared first */
    char name[128];  /* filled up with zero bytes, of which there is at least one */
} HcommCommEntry;

#define HCOMM_MAX_COMMS 64u

HCOMM_PLATFORM_ASSERT(sizeof(HcommCommEntry) == 136, "layout of an entry");

/* Bytes of a device, and what their address is a multiple of. They are never freed by the library. */
size_t hcomm_device_size(void);
size_t hcomm_device_align(void);

/* Makes a device without threads. */
int32_t hcomm_device_init(HcommDevice *device);

/* Tells where the table of threads is, before the first launch. It has `slots` entries, at most HCOMM_MAX_THREADS, that stay
 * readable, and each one in use names a ring that may be written and ids of notifies that may be read, also while a kernel still runs that
 * has used a thread before it was freed. While its thread lives, and no longer, the status of a queue may be
 * HCOMM_QUEUE_ENABLED. No generation of a slot is used twice. */
int32_t hcomm_device_set_thread_table(HcommDevice *device, const HcommThreadDescriptor *table, uint32_t slots);

/* Tells where the table of communicators is, before the first launch; without one there are none to lock. */
int32_t hcomm_device_set_comm_table(HcommDevice *device, const HcommCommEntry *table);

/* Tells which chip's descriptors to queue, by the driver's device type, before the first launch: 2 Ascend910B, 4 Ascend910_93,
 * 6 Ascend950, which a new device is. */
int32_t hcomm_device_set_soc(HcommDevice *device, uint32_t deviceType);

/* Cores that a device has, numbered from 0. */
#define HCOMM_MAX_CORES 64u

/* A kernel. */
typedef void (*HcommKernel)(void *arg);

/* Runs `kernel` with `arg` on core `core` of a device: until it returns, calls of this thread of execution are the core's. Then
 * limits are back at their defaults, locks are released, and what a batch had staged is dropped; `leftBehind`, unless NULL, gets
 * HCOMM_LEFT_BATCH_OPEN if the kernel has not ended its batch, else 0. HCCL_E_PARA for a core that there is not, HCCL_E_AGAIN
 * for one that runs a kernel. */
int32_t hcomm_device_run(const HcommDevice *device, uint32_t core, HcommKernel kernel, void *arg, uint32_t *leftBehind);

#define HCOMM_LEFT_BATCH_OPEN 1u

/* What is wrong, for hcomm_port_refused: writes what fits into `size` bytes, with a zero byte at the end, and gives the length of
 * the whole text, as snprintf does. */
size_t hcomm_refusal_text(const void *error, char *text, size_t size);

/* What hcomm_port_status gives in its low 8 bits. The other 56 change when a queue gets another thread or is reset, and never
 * return to an earlier value: after a change the library restarts at the head. */
#define HCOMM_QUEUE_FREE 0u
#define HCOMM_QUEUE_ENABLED 1u
#define HCOMM_QUEUE_REFUSING 2u
#define HCOMM_QUEUE_SUSPENDED 3u

/* The platform defines these. */

/* What hcomm_port_set_core was last given in the calling thread of execution (on bare metal: core), null before. */
const void *hcomm_port_core(void);
/* Keeps `core` for the calling thread of execution. */
void hcomm_port_set_core(const void *core);
/* Whether `regs` of a thread descriptor names the registers of queue `sqId`: 0 if not. Asked before anything else of a queue. */
int32_t hcomm_port_has_queue(uint32_t sqId, uint64_t regs);
/* Entry that the device fetches next, below the depth. 0, or a code if it can't be read: the call then answers HCCL_E_DRV. */
int32_t hcomm_port_head(uint32_t sqId, uint64_t regs, uint32_t *head);
/* Whether the queue takes tasks. 0, or a code as for the head. */
int32_t hcomm_port_status(uint32_t sqId, uint64_t regs, uint64_t *status);
/* The doorbell: the device may run everything before entry `tail`. 0, or anything else for a refusal. */
int32_t hcomm_port_ring(uint32_t sqId, uint64_t regs, uint32_t tail);
/* Makes every store before it visible to the device before any store after it. */
void hcomm_port_store_barrier(void);
/* Monotonic time in microseconds. */
uint64_t hcomm_port_now_us(void);
/* Waits for at least `ns` nanoseconds; 0: the caller waits for another core. */
void hcomm_port_delay_ns(uint32_t ns);
/* Function `who` (`whoLen` bytes, without a zero byte at the end) refuses a call with `code`, for a log; `error` is for
 * hcomm_refusal_text, during the call. */
void hcomm_port_refused(const char *who, size_t whoLen, int32_t code, const void *error);
/* Fills `addrs` from the front with up to `count` return addresses of the caller, innermost first; may leave them alone. Only
 * asked for while calls are recorded, which a platform in C can't ask for. */
void hcomm_port_return_addresses(uint64_t *addrs, size_t count);

#undef HCOMM_PLATFORM_ASSERT
#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HCOMM_SIM_HCOMM_PLATFORM_H */
