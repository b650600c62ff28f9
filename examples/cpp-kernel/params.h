// What the program hands to the kernel. Both sides have the same sizes and offsets.
#pragma once

#include <cstdint>

#include "hcomm/hcomm_res_defs.h"

struct Params {
    ThreadHandle thread;    // queue of the kernel; its notify 0 is the start notify
    ThreadHandle cpuThread; // of the stream of the launch; its notify 0 is the end notify
    void *dst;
    const void *src;
    uint64_t half; // bytes of a half
};
