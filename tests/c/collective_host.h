/* The host's part of a collective, as operators of a library have it: what a rank acquires once for each communicator, and a launch.
 * C++14. */

#ifndef COLLECTIVE_HOST_H
#define COLLECTIVE_HOST_H

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "collective.h"
#include "hccl/hccl_channel.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hccl/hcomm_primitives.h"

/* Description of the channel to `peer`, with both ends as the rank graph has them. On Ascend910 chips no end is needed. */
inline HcclChannelDesc describe_channel(HcclComm comm, uint32_t rank, uint32_t peer, uint32_t notifies) {
    HcclChannelDesc desc;
    CHECK(HcclChannelDescInit(&desc, 1), HCCL_SUCCESS);
    desc.remoteRank = peer;
    desc.notifyNum = notifies;
    if (std::strstr(aclrtGetSocName(), "Ascend950") == nullptr) {
        desc.channelProtocol = COMM_PROTOCOL_HCCS;
        return desc;
    }
    CommLink *links = nullptr;
    uint32_t count = 0;
    CHECK(HcclRankGraphGetLinks(comm, 0, rank, peer, &links, &count), HCCL_SUCCESS);
    for (uint32_t i = 0; i < count; i++) {
        if (links[i].linkAttr.linkProtocol == COMM_PROTOCOL_UB_CTP) {
            desc.channelProtocol = links[i].linkAttr.linkProtocol;
            desc.localEndpoint = links[i].srcEndpointDesc;
            desc.remoteEndpoint = links[i].dstEndpointDesc;
        }
    }
    CHECK(desc.channelProtocol, COMM_PROTOCOL_UB_CTP);
    return desc;
}

/* One rank on its device, driven by one thread of the program. */
struct Rank {
    uint32_t rank = 0, size = 0;
    HcclComm comm = nullptr;
    aclrtStream stream = nullptr;
    aclrtBinHandle binary = nullptr;
    char name[128] = {0};

    /* The device is that of the rank's number. */
    void open(uint32_t ranks, const HcclRootInfo &root, uint32_t own, const char *description) {
        CHECK(aclrtSetDevice(static_cast<int32_t>(own)), ACL_SUCCESS);
        CHECK(HcclCommInitRootInfo(ranks, &root, own, &comm), HCCL_SUCCESS);
        CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
        CHECK(HcclGetCommName(comm, name), HCCL_SUCCESS);
        CHECK(HcclGetRankId(comm, &rank), HCCL_SUCCESS);
        CHECK(HcclGetRankSize(comm, &size), HCCL_SUCCESS);
        CHECK(rank, own);
        CHECK(size, ranks);
        CHECK(aclrtBinaryLoadFromFile(description, nullptr, &binary), ACL_SUCCESS);
    }

    /* Address and bytes of the context under `tag`: made by the first call, found by the others. */
    void *context(const char *tag, uint64_t *bytes) {
        void *memory = nullptr;
        if (HcclEngineCtxGet(comm, tag, COMM_ENGINE_AICPU, &memory, bytes) == HCCL_SUCCESS) {
            return memory;
        }
        Context made;
        void *buffer = nullptr;
        CHECK(HcclGetHcclBuffer(comm, &buffer, &made.bufferBytes), HCCL_SUCCESS);
        made.buffer = reinterpret_cast<uint64_t>(buffer);
        const uint32_t peers = size - 1;
        made.threads.resize(peers);
        made.startNotify = peers - 1;
        CHECK(HcclThreadAcquire(comm, COMM_ENGINE_AICPU, peers, peers, made.threads.data()), HCCL_SUCCESS);
        std::vector<HcclChannelDesc> descs;
        for (uint32_t peer = 0; peer < size; peer++) {
            if (peer != rank) {
                descs.push_back(describe_channel(comm, rank, peer, CHANNEL_NOTIFIES));
                made.channels.push_back(Channel{peer, 0, 0, 0});
            }
        }
        std::vector<ChannelHandle> handles(peers);
        CHECK(HcclChannelAcquire(comm, COMM_ENGINE_AICPU, descs.data(), peers, handles.data()), HCCL_SUCCESS);
        for (uint32_t i = 0; i < peers; i++) {
            void *remote = nullptr;
            made.channels[i].handle = handles[i];
            CHECK(HcclChannelGetHcclBuffer(comm, handles[i], &remote, &made.channels[i].bufferBytes), HCCL_SUCCESS);
            made.channels[i].buffer = reinterpret_cast<uint64_t>(remote);
        }
        const std::vector<char> text = made.serialize();
        *bytes = text.size();
        CHECK(HcclEngineCtxCreate(comm, tag, COMM_ENGINE_AICPU, *bytes, &memory), HCCL_SUCCESS);
        CHECK(HcclEngineCtxCopy(comm, COMM_ENGINE_AICPU, tag, text.data(), *bytes, 0), HCCL_SUCCESS);
        /* The thread of the start stands in a context of the host. */
        void *host = nullptr;
        CHECK(HcclEngineCtxCreate(comm, tag, COMM_ENGINE_CPU_TS, sizeof(uint64_t) * 2, &host), HCCL_SUCCESS);
        uint64_t start[2] = {0, made.startNotify};
        CHECK(HcclThreadExportToCommEngine(comm, 1, made.threads.data(), COMM_ENGINE_CPU_TS, &start[0]), HCCL_SUCCESS);
        CHECK(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU_TS, tag, start, sizeof start, 0), HCCL_SUCCESS);
        return memory;
    }

    /* Queues the operator. `param` says what it works on. */
    void launch(const char *kernel, OpParam param) {
        ThreadHandle cpu = 0;
        CHECK(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &cpu), HCCL_SUCCESS);
        CHECK(HcclThreadExportToCommEngine(comm, 1, &cpu, COMM_ENGINE_AICPU_TS, &param.cpuThread), HCCL_SUCCESS);
        std::strcpy(param.tag, "collective");
        std::strcpy(param.commName, name);
        param.rank = rank;
        param.rankSize = size;
        param.context = context(param.tag, &param.contextBytes);
        void *host = nullptr;
        uint64_t bytes = 0, start[2];
        CHECK(HcclEngineCtxGet(comm, param.tag, COMM_ENGINE_CPU_TS, &host, &bytes), HCCL_SUCCESS);
        std::memcpy(start, host, sizeof start);
        aclrtFuncHandle function = nullptr;
        CHECK(aclrtBinaryGetFunction(binary, kernel, &function), ACL_SUCCESS);
        CHECK(HcommThreadNotifyRecordOnThread(cpu, start[0], static_cast<uint32_t>(start[1])), HCCL_SUCCESS);
        aclrtArgsHandle args = nullptr;
        aclrtParamHandle appended = nullptr;
        CHECK(aclrtKernelArgsInit(function, &args), ACL_SUCCESS);
        CHECK(aclrtKernelArgsAppend(args, &param, sizeof param, &appended), ACL_SUCCESS);
        CHECK(aclrtKernelArgsFinalize(args), ACL_SUCCESS);
        CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, nullptr, args, nullptr), ACL_SUCCESS);
        CHECK(HcommThreadNotifyWaitOnThread(cpu, 0, 1836), HCCL_SUCCESS);
    }

    void close() {
        CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
        CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
        CHECK(aclrtResetDevice(static_cast<int32_t>(rank)), ACL_SUCCESS);
    }
};

/* Device memory with `bytes` of a pattern that `seed` gives. */
inline unsigned char pattern(uint32_t seed, uint64_t at) {
    return static_cast<unsigned char>(seed * 37 + at * 11 + (at >> 8) + 1);
}

inline void *device_memory(uint32_t seed, uint64_t bytes) {
    std::vector<unsigned char> text(bytes);
    for (uint64_t at = 0; at < bytes; at++) {
        text[at] = pattern(seed, at);
    }
    void *memory = nullptr;
    CHECK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_ONLY), ACL_SUCCESS);
    CHECK(aclrtMemcpy(memory, bytes, text.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    return memory;
}

/* Checks that device memory has the pattern of `seed`. */
inline void check_memory(uint32_t seed, const void *memory, uint64_t bytes) {
    std::vector<unsigned char> text(bytes);
    CHECK(aclrtMemcpy(text.data(), bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    for (uint64_t at = 0; at < bytes; at++) {
        CHECK(text[at], pattern(seed, at));
    }
}

/* A root info, made by a thread that has no device afterwards. */
inline HcclRootInfo root_info() {
    HcclRootInfo root;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(HcclGetRootInfo(&root), HCCL_SUCCESS);
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    return root;
}

#endif /* COLLECTIVE_HOST_H */
