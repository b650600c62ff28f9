/* Loads libraries as the scheduler of a card does: card_loader DECOY LIBRARY FUNCTION. DECOY, which is loaded first, has the
 * names of the vendor's library. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card_params.h"

#define DEPTH 4

static void *open_library(const char *path) {
    char real[4096];
    void *library = realpath(path, real) == NULL ? NULL : dlopen(real, RTLD_LAZY | RTLD_GLOBAL);
    if (library == NULL) {
        fprintf(stderr, "11002: %s: %s\n", path, dlerror());
        exit(1);
    }
    return library;
}

static void *memory(size_t size) {
    void *ptr = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (ptr == NULL) exit(1);
    memset(ptr, 0xee, size);
    return ptr;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    open_library(argv[1]);
    void *library = open_library(argv[2]);
    uint32_t (*function)(void *);
    *(void **)&function = dlsym(library, argv[3]);
    if (function == NULL) {
        fprintf(stderr, "11003: %s\n", argv[3]);
        return 1;
    }
    unsigned char *ring = (unsigned char *)memory(DEPTH * 64);
    HcommThreadDescriptor *table = (HcommThreadDescriptor *)memory(sizeof *table);
    memset(table, 0, sizeof *table);
    table->magic = HCOMM_THREAD_MAGIC;
    table->version = HCOMM_THREAD_VERSION;
    table->generation = 1;
    table->engine = COMM_ENGINE_AICPU_TS;
    table->depth = DEPTH;
    table->sqBase = (uintptr_t)ring;
    struct CardParams params;
    memset(&params, 0, sizeof params);
    params.device_size = 1 << 20;
    params.device = memory(params.device_size);
    params.table = table;
    params.dst = (void *)(uintptr_t)0x12c0c0000000;
    params.src = (void *)(uintptr_t)0x12c180000000;
    params.len = 4096;
    const uint32_t answer = function(&params);
    printf("answer %u, code %d, tail %u, entry", answer, params.code, params.tail);
    for (int i = 0; i < 64; i++) printf(" %02x", ring[i]);
    printf("\n");
    return 0;
}
