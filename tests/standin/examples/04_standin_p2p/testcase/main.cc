#include <iostream>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_types.h"
#include "standin_p2p.h"

#define CALL(call)                                                                       \
    do {                                                                                 \
        const int ret = static_cast<int>(call);                                          \
        if (ret != 0) {                                                                  \
            std::cerr << #call << " at line " << __LINE__ << " returned " << ret << std::endl; \
            return ret;                                                                  \
        }                                                                                \
    } while (0)

static const uint64_t COUNT = 1000;

// Ranks with even numbers send to the next one.
static int Sample(uint32_t rank, uint32_t rankSize, const HcclRootInfo &root)
{
    CALL(aclrtSetDevice(static_cast<int32_t>(rank)));
    HcclComm comm = nullptr;
    CALL(HcclCommInitRootInfo(rankSize, &root, rank, &comm));
    aclrtStream stream = nullptr;
    CALL(aclrtCreateStream(&stream));
    void *buffer = nullptr;
    const size_t bytes = COUNT * sizeof(float);
    CALL(aclrtMalloc(&buffer, bytes, ACL_MEM_MALLOC_HUGE_ONLY));
    std::vector<float> values(COUNT, 0);
    const uint32_t peer = rank ^ 1u;
    if (rank % 2 == 0) {
        for (uint64_t i = 0; i < COUNT; i++) {
            values[i] = static_cast<float>(rank * COUNT + i);
        }
        CALL(aclrtMemcpy(buffer, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
        CALL(StandinSend(buffer, COUNT, HCCL_DATA_TYPE_FP32, peer, comm, stream));
        CALL(aclrtSynchronizeStream(stream));
    } else {
        CALL(StandinReceive(buffer, COUNT, HCCL_DATA_TYPE_FP32, peer, comm, stream));
        CALL(aclrtSynchronizeStream(stream));
        CALL(aclrtMemcpy(values.data(), bytes, buffer, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
        for (uint64_t i = 0; i < COUNT; i++) {
            if (values[i] != static_cast<float>(peer * COUNT + i)) {
                std::cerr << "rank " << rank << ": element " << i << " is " << values[i] << std::endl;
                return 1;
            }
        }
        std::cout << "rank " << rank << " has received from rank " << peer << std::endl;
    }
    CALL(HcclCommDestroy(comm));
    CALL(aclrtFree(buffer));
    CALL(aclrtDestroyStream(stream));
    CALL(aclrtResetDevice(static_cast<int32_t>(rank)));
    return 0;
}

int main()
{
    CALL(aclInit(nullptr));
    uint32_t devices = 0;
    CALL(aclrtGetDeviceCount(&devices));
    CALL(aclrtSetDevice(0));
    HcclRootInfo root;
    CALL(HcclGetRootInfo(&root));
    std::vector<std::thread> threads;
    std::vector<int> results(devices, -1);
    for (uint32_t rank = 0; rank < devices; rank++) {
        threads.emplace_back([rank, devices, &root, &results]() { results[rank] = Sample(rank, devices, root); });
    }
    int result = 0;
    for (uint32_t rank = 0; rank < devices; rank++) {
        threads[rank].join();
        result = result != 0 ? result : results[rank];
    }
    CALL(aclFinalize());
    return result;
}
