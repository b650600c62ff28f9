#include <cmath>
#include <iostream>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_types.h"
#include "standin_all_gather.h"

#define CALL(call)                                                                       \
    do {                                                                                 \
        const int ret = static_cast<int>(call);                                          \
        if (ret != 0) {                                                                  \
            std::cerr << #call << " at line " << __LINE__ << " returned " << ret << std::endl; \
            return ret;                                                                  \
        }                                                                                \
    } while (0)

static const uint64_t COUNT = 1000;

static int Sample(uint32_t rank, uint32_t rankSize, const HcclRootInfo &root)
{
    CALL(aclrtSetDevice(static_cast<int32_t>(rank)));
    HcclComm comm = nullptr;
    CALL(HcclCommInitRootInfo(rankSize, &root, rank, &comm));
    aclrtStream stream = nullptr;
    CALL(aclrtCreateStream(&stream));
    void *input = nullptr, *output = nullptr, *host = nullptr;
    const size_t bytes = COUNT * sizeof(float);
    CALL(aclrtMalloc(&input, bytes, ACL_MEM_MALLOC_HUGE_ONLY));
    CALL(aclrtMalloc(&output, bytes * rankSize, ACL_MEM_MALLOC_HUGE_ONLY));
    CALL(aclrtMallocHost(&host, bytes * rankSize));
    float *values = static_cast<float *>(host);
    // The second round uses what the first has acquired.
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < COUNT; i++) {
            values[i] = static_cast<float>(rank * COUNT + i + round);
        }
        CALL(aclrtMemcpy(input, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
        CALL(StandinAllGather(input, output, COUNT, HCCL_DATA_TYPE_FP32, comm, stream));
        CALL(aclrtSynchronizeStream(stream));
        CALL(aclrtMemcpy(host, bytes * rankSize, output, bytes * rankSize, ACL_MEMCPY_DEVICE_TO_HOST));
        for (uint64_t i = 0; i < COUNT * rankSize; i++) {
            if (std::fabs(values[i] - static_cast<float>(i + round)) > 0) {
                std::cerr << "rank " << rank << ": element " << i << " is " << values[i] << std::endl;
                return 1;
            }
        }
    }
    std::cout << "rank " << rank << " of " << rankSize << " has all elements" << std::endl;
    CALL(HcclCommDestroy(comm));
    CALL(aclrtFree(input));
    CALL(aclrtFree(output));
    CALL(aclrtFreeHost(host));
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
