/* Declares a kernel, so that the host finds it by name: in a shared library, and in the image of the AI CPU.
 *
 *     HCOMM_KERNEL(my_kernel) {
 *         const struct MyParams *params = args;
 *         return (uint32_t)HcommLocalCopyOnThread(params->thread, params->dst, params->src, params->len);
 *     }
 *
 * `args` points to the bytes that the host has launched the kernel with (64-byte aligned), or is null if there are
 * none. 0 means success; any other number fails the launch. A kernel returns before its tasks have run: notifies order
 * them with the stream of the launch, see docs/c-api.md.
 */

#ifndef HCOMM_SIM_HCOMM_KERNEL_H
#define HCOMM_SIM_HCOMM_KERNEL_H

#include <stdint.h>

#include "hcomm_primitives.h"

#ifdef __cplusplus
#define HCOMM_KERNEL_LINKAGE extern "C"
#else
#define HCOMM_KERNEL_LINKAGE extern
#endif

/* One entry of section .kernels of the image, which the loader on the host reads. */
typedef struct HcommKernelEntry {
    const char *name;
    uint32_t (*function)(void *args);
} HcommKernelEntry;

/* HCOMM_DEVICE_IMAGE is set by `make image`: otherwise compilers for Linux and for bare metal can't be distinguished. In a
 * shared library the host needs only the symbol. */
#if defined(HCOMM_DEVICE_IMAGE) || !defined(__linux__)
#define HCOMM_KERNEL_ENTRY(kernel)                                                                \
    __attribute__((used, section(".kernels"), aligned(8))) static const HcommKernelEntry          \
        hcomm_kernel_entry_of_##kernel = {#kernel, kernel};
#else
#define HCOMM_KERNEL_ENTRY(kernel)
#endif

#define HCOMM_KERNEL(kernel)                                                                      \
    HCOMM_KERNEL_LINKAGE __attribute__((visibility("default"))) uint32_t kernel(void *args);      \
    HCOMM_KERNEL_ENTRY(kernel)                                                                    \
    HCOMM_KERNEL_LINKAGE uint32_t kernel(void *args)

#endif /* HCOMM_SIM_HCOMM_KERNEL_H */
