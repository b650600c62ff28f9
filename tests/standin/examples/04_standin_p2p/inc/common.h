// What host and kernel of the operators share.

#ifndef STANDIN_COMMON_H
#define STANDIN_COMMON_H

#include <cstdint>

#include "hccl/hccl_res.h"
#include "hccl/hccl_types.h"

constexpr uint32_t NOTIFY_READY = 0;
constexpr uint32_t NOTIFY_DONE = 1;
constexpr uint32_t CHANNEL_NOTIFIES = 2;
constexpr uint32_t TIMEOUT_S = 1836;

struct Buffer {
    void *addr;
    uint64_t size;
};

// In device memory.
struct Resources {
    ThreadHandle thread;
    ThreadHandle cpuThread;
    Buffer local;
    Buffer remote;
    ChannelHandle channel;
};

struct Param {
    char tag[160];
    char commName[128];
    void *buffer;
    uint64_t bytes;
    int32_t isSend;
    int32_t is950;
    Resources *resources;
};

#endif
