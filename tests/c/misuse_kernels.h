/* Misuse of binaries and launches: part of misuse.c. */

#ifndef MISUSE_KERNELS_H
#define MISUSE_KERNELS_H

#include "misuse.h"

static int load(const char *folder, const char *name) {
    char path[4096];
    aclrtBinHandle binary = UNTOUCHED;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int code = aclrtBinaryLoadFromFile(path, NULL, &binary);
    CHECK_TRUE((binary == UNTOUCHED) == (code != ACL_SUCCESS));
    if (code == ACL_SUCCESS) {
        CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    }
    return code;
}

static void binaries(const char *folder) {
    aclrtBinHandle binary;
    aclrtFuncHandle function = UNTOUCHED, again;
    CHECK(load(folder, "good.json"), ACL_SUCCESS);
    CHECK(load(folder, "not_there.json"), ACL_ERROR_INVALID_FILE);
    CHECK(load(folder, "."), ACL_ERROR_INVALID_FILE);
    CHECK(load(folder, "empty.json"), ACL_ERROR_PARSE_FILE);
    CHECK(load(folder, "not_json.json"), ACL_ERROR_PARSE_FILE);
    CHECK(load(folder, "no_operator.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "no_op_info.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "no_library.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "no_function.json"), ACL_ERROR_FILE_MISSING_ATTR);
    CHECK(load(folder, "number.json"), ACL_ERROR_FILE_ATTR_INVALID);
    CHECK(load(folder, "wrong_kind.json"), ACL_ERROR_FILE_ATTR_INVALID);
    CHECK(load(folder, "path_as_library.json"), ACL_ERROR_FILE_ATTR_INVALID);
    CHECK(load(folder, "library_not_there.json"), ACL_ERROR_RT_AICPU_INFO_LOAD_ERROR);
    CHECK(load(folder, "library_no_elf.json"), ACL_ERROR_OP_LOAD_FAILED);
    CHECK(load(folder, "image.json"), ACL_ERROR_OP_LOAD_FAILED);

    CHECK(aclrtBinaryLoadFromFile(NULL, NULL, &binary), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryLoadFromFile("\xff", NULL, &binary), ACL_ERROR_INVALID_FILE);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, NULL), ACL_ERROR_INVALID_PARAM);
    aclrtBinaryLoadOption option;
    memset(&option, 0, sizeof option);
    aclrtBinaryLoadOptions options = {NULL, 1};
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_INVALID_PARAM);
    options.options = &option;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_INVALID_PARAM);
    option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 2;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_INVALID_PARAM);
    option.type = ACL_RT_BINARY_LOAD_OPT_MAGIC;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_ERROR_API_NOT_SUPPORT);
    option.type = ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE;
    option.value.cpuKernelMode = 1;
    CHECK(aclrtBinaryLoadFromFile(description, &options, &binary), ACL_SUCCESS);

    CHECK(aclrtBinaryGetFunction(NULL, "CopyLen", &function), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryGetFunction(WRONG, "CopyLen", &function), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryGetFunction(binary, NULL, &function), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryGetFunction(binary, "copy_len", &function), ACL_ERROR_OP_NOT_FOUND);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen\xff", &function), ACL_ERROR_OP_NOT_FOUND);
    CHECK(aclrtBinaryGetFunction(binary, "NoSuchFunction", &function), ACL_ERROR_KERNEL_NOT_FOUND);
    CHECK_TRUE(function == UNTOUCHED);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &function), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &again), ACL_SUCCESS);
    CHECK_TRUE(function == again);

    CHECK(aclrtBinaryUnLoad(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtBinaryUnLoad(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryUnLoad(function), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    CHECK(aclrtBinaryUnLoad(binary), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &again), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    aclrtArgsHandle args;
    CHECK(aclrtKernelArgsInit(function, &args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, NULL, NULL, NULL, 0, NULL, 0), ACL_ERROR_INVALID_RESOURCE_HANDLE);
}

static void launches(void) {
    aclrtBinHandle binary;
    aclrtFuncHandle function, fails;
    aclrtArgsHandle args;
    aclrtParamHandle place = UNTOUCHED;
    aclrtStream stream;
    uint64_t bytes[8] = {0};
    CHECK(aclrtCreateStream(&stream), ACL_SUCCESS);
    CHECK(aclrtBinaryLoadFromFile(description, NULL, &binary), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "CopyLen", &function), ACL_SUCCESS);
    CHECK(aclrtBinaryGetFunction(binary, "Fail", &fails), ACL_SUCCESS);

    CHECK(aclrtKernelArgsInit(NULL, &args), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsInit(WRONG, &args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsInit(binary, &args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsInit(function, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsInit(function, &args), ACL_SUCCESS);
    CHECK(aclrtKernelArgsAppend(NULL, bytes, 8, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(WRONG, bytes, 8, &place), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsAppend(args, NULL, 8, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(args, bytes, 0, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(args, bytes, SIZE_MAX, &place), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsAppend(args, bytes, 8, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_TRUE(place == UNTOUCHED);
    CHECK(aclrtKernelArgsAppend(args, bytes, 8, &place), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsFinalize(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtKernelArgsFinalize(WRONG), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtKernelArgsFinalize(args), ACL_SUCCESS);
    CHECK(aclrtKernelArgsAppend(args, bytes, 8, &place), ACL_ERROR_INVALID_PARAM);

    aclrtLaunchKernelAttr attribute;
    memset(&attribute, 0, sizeof attribute);
    aclrtLaunchKernelCfg cfg = {NULL, 1};
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, &cfg, args, NULL), ACL_ERROR_INVALID_PARAM);
    cfg.attrs = &attribute;
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, &cfg, args, NULL), ACL_ERROR_API_NOT_SUPPORT);
    CHECK(aclrtLaunchKernelWithConfig(NULL, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(WRONG, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithConfig(fails, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(function, 0, stream, NULL, args, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(function, 2, stream, NULL, args, NULL), ACL_ERROR_API_NOT_SUPPORT);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, WRONG, NULL, args, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, NULL, NULL), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, WRONG, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, bytes), ACL_ERROR_INVALID_PARAM);
    aclrtPlaceHolderInfo holder = {0, 0};
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, bytes, 64, &holder, 1), ACL_ERROR_API_NOT_SUPPORT);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, NULL, 64, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 0, stream, NULL, bytes, 64, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);

    /* A kernel of another device's stream. */
    aclrtStream other;
    CHECK(aclrtSetDevice(1), ACL_SUCCESS);
    CHECK(aclrtCreateStream(&other), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, other, NULL, bytes, 64, NULL, 0), ACL_ERROR_INVALID_PARAM);
    CHECK(aclrtResetDevice(1), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(other), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);

    /* Zeroes are null pointers: the kernel returns 2, and the stream reports it once. */
    (void)aclrtGetRecentErrMsg();
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, bytes, 64, NULL, 0), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICPU_EXCEPTION);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "copy_len returned 2") != NULL);
    CHECK(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    uint32_t code = 77;
    CHECK(aclrtLaunchKernelWithHostArgs(fails, 1, NULL, NULL, &code, sizeof code, NULL, 0), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_AICPU_EXCEPTION);
    CHECK_TRUE(strstr(aclrtGetRecentErrMsg(), "fail returned 77") != NULL);
    /* Without arguments a kernel gets null. */
    CHECK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, NULL, 0, NULL, 0), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICPU_EXCEPTION);

    CHECK(aclrtDestroyStream(stream), ACL_SUCCESS);
    CHECK(aclrtLaunchKernelWithConfig(function, 1, stream, NULL, args, NULL), ACL_ERROR_INVALID_RESOURCE_HANDLE);
    CHECK(aclrtBinaryUnLoad(binary), ACL_SUCCESS);
    CHECK(aclrtKernelArgsFinalize(args), ACL_ERROR_INVALID_RESOURCE_HANDLE);
}

#endif /* MISUSE_KERNELS_H */
