// What host and kernel of the operator share.

#ifndef STANDIN_COMMON_H
#define STANDIN_COMMON_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "hccl/hccl_res.h"
#include "hccl/hccl_types.h"

constexpr uint32_t NOTIFY_READY = 0;
constexpr uint32_t NOTIFY_DONE = 1;
constexpr uint32_t CHANNEL_NOTIFIES = 3;
constexpr uint32_t TIMEOUT_S = 1836;

struct Param {
    char tag[160];
    char commName[128];
    void *input;
    void *output;
    uint64_t bytes;
    uint32_t rank;
    uint32_t rankSize;
    ThreadHandle cpuThread;
    void *context;
    uint64_t contextSize;
};

struct ChannelInfo {
    uint32_t remoteRank;
    uint32_t notifyNum;
    ChannelHandle handle;
    void *buffer;
    uint64_t size;
};

// Laid into device memory as a stream of bytes.
struct Resources {
    void *buffer = nullptr;
    uint64_t size = 0;
    uint32_t startNotify = 0;
    std::vector<ThreadHandle> threads;
    std::vector<ChannelInfo> channels;

    template <typename T> static void Put(std::string &to, const T &value) {
        to.append(reinterpret_cast<const char *>(&value), sizeof value);
    }

    template <typename T> static void Put(std::string &to, const std::vector<T> &values) {
        Put(to, values.size());
        for (const T &value : values) {
            Put(to, value);
        }
    }

    template <typename T> static void Get(const char *&from, T &value) {
        memcpy(&value, from, sizeof value);
        from += sizeof value;
    }

    template <typename T> static void Get(const char *&from, std::vector<T> &values) {
        size_t count = 0;
        Get(from, count);
        values.resize(count);
        for (T &value : values) {
            Get(from, value);
        }
    }

    std::string Serialize() const {
        std::string bytes;
        Put(bytes, buffer);
        Put(bytes, size);
        Put(bytes, startNotify);
        Put(bytes, threads);
        Put(bytes, channels);
        return bytes;
    }

    void Deserialize(const void *bytes) {
        const char *from = static_cast<const char *>(bytes);
        Get(from, buffer);
        Get(from, size);
        Get(from, startNotify);
        Get(from, threads);
        Get(from, channels);
    }
};

#endif
