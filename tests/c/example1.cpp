// First call example of the interface document, its statements unchanged; what the document leaves out is added around
// them. Prints the answer of the copy, and checks the bytes if it is 0.

#include <cstring>
#include <vector>

#include "acl/acl.h"
#include "check.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_res.h"
#include "hccl/hcomm_primitives.h"

static int32_t copy() {
    HcclComm comm;
    int32_t device = 0;
    CHECK(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS);
    CommEngine engine = COMM_ENGINE_CPU_TS;
    aclrtStream stream;
    aclrtCreateStream(&stream);
    ThreadHandle thread;
    HcclResult result = HcclThreadAcquireWithStream(comm, engine, stream, 2, &thread);
    if (result != HCCL_SUCCESS) {
        // There is no thread to copy on; the copy says the same of any.
        CHECK(HcommLocalCopyOnThread(1, &device, &device, sizeof device), result);
        return result;
    }

    // 申请device内存
    uint64_t memSize = 256;
    s32 policy = static_cast<int>(ACL_MEM_TYPE_HIGH_BAND_WIDTH) | static_cast<int>(ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMallocAttrValue moduleIdValue;
    moduleIdValue.moduleId = HCCL;
    aclrtMallocAttribute attrs{.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value = moduleIdValue};
    aclrtMallocConfig cfg{.attrs = &attrs, .numAttrs = 1};

    void* inputMem;
    void* outputMem;
    aclrtMallocWithCfg(&inputMem, memSize, static_cast<aclrtMemMallocPolicy>(policy), &cfg);
    aclrtMallocWithCfg(&outputMem, memSize, static_cast<aclrtMemMallocPolicy>(policy), &cfg);

    std::vector<unsigned char> input(memSize), output(memSize, 0xee);
    for (uint64_t i = 0; i < memSize; i++) {
        input[i] = static_cast<unsigned char>(i * 7 + 1);
    }
    CHECK(aclrtMemcpy(inputMem, memSize, input.data(), memSize, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    CHECK(aclrtMemcpy(outputMem, memSize, output.data(), memSize, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);

    // 执行 D2D 拷贝
    const int32_t code =
    HcommLocalCopyOnThread(thread, outputMem, inputMem, memSize);

    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    std::vector<unsigned char> found(memSize);
    CHECK(aclrtMemcpy(found.data(), memSize, outputMem, memSize, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    CHECK_TRUE(found == (code == 0 ? input : output));

    CHECK(aclrtFree(inputMem), ACL_SUCCESS);
    CHECK(aclrtFree(outputMem), ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    return code;
}

int main() {
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    const int32_t code = copy();
    const char *message = aclrtGetRecentErrMsg();
    printf("%s: %d\n%s\n", aclrtGetSocName(), code, message != nullptr ? message : "");
    CHECK(aclrtResetDevice(0), ACL_SUCCESS);
    return 0;
}
