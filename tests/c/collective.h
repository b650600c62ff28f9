/* What programs and kernels of collectives share: the parameters of a launch, and the bytes of the context that the host makes once
 * for each communicator. C++14. */

#ifndef COLLECTIVE_H
#define COLLECTIVE_H

#include <cstdint>
#include <cstring>
#include <vector>

#include "hcomm/hcomm_res_defs.h"

/* Notifies of a channel. */
enum { READY = 0, DONE = 1, CHANNEL_NOTIFIES = 3 };

/* Parameters of a launch. */
struct OpParam {
    char tag[64];
    char commName[128];
    void *input;
    void *output;
    uint64_t bytes; /* of one rank */
    uint32_t rank;
    uint32_t rankSize;
    uint32_t fails; /* the kernel fails */
    uint32_t peer;  /* of a send or receive */
    ThreadHandle cpuThread;
    void *context;
    uint64_t contextBytes;
};

struct Channel {
    uint32_t rank;
    ChannelHandle handle;
    uint64_t buffer; /* the peer's */
    uint64_t bufferBytes;
};

/* What is acquired once for each communicator. Thread i works on channel i; the first one has the notify of the start. */
struct Context {
    uint64_t buffer = 0;
    uint64_t bufferBytes = 0;
    uint64_t startNotify = 0;
    std::vector<ThreadHandle> threads;
    std::vector<Channel> channels;

    std::vector<char> serialize() const {
        std::vector<char> bytes;
        const auto put = [&bytes](const void *from, size_t len) {
            const char *first = static_cast<const char *>(from);
            bytes.insert(bytes.end(), first, first + len);
        };
        const uint64_t counts[2] = {threads.size(), channels.size()};
        put(&buffer, sizeof buffer);
        put(&bufferBytes, sizeof bufferBytes);
        put(&startNotify, sizeof startNotify);
        put(counts, sizeof counts);
        put(threads.data(), threads.size() * sizeof(ThreadHandle));
        put(channels.data(), channels.size() * sizeof(Channel));
        return bytes;
    }

    /* False: the bytes are too few. */
    bool deserialize(const void *from, uint64_t len) {
        const char *at = static_cast<const char *>(from);
        const auto get = [&at, &len](void *to, uint64_t count) {
            if (count > len) {
                return false;
            }
            std::memcpy(to, at, count);
            at += count;
            len -= count;
            return true;
        };
        uint64_t counts[2] = {0, 0};
        if (!get(&buffer, sizeof buffer) || !get(&bufferBytes, sizeof bufferBytes) ||
            !get(&startNotify, sizeof startNotify) || !get(counts, sizeof counts)) {
            return false;
        }
        threads.resize(counts[0]);
        channels.resize(counts[1]);
        return get(threads.data(), counts[0] * sizeof(ThreadHandle)) &&
               get(channels.data(), counts[1] * sizeof(Channel));
    }
};

#endif /* COLLECTIVE_H */
