// Kernels as users write them for AArch64 Linux: containers, strings, streams, exceptions, constructors, thread-local values.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "copy_params.h"
#include "hcomm/hcomm_kernel.h"
#include "in_step.h"

namespace {

// A global constructor: it allocates, and must have run before the first kernel.
struct Registry {
    std::map<std::string, int> names;
    Registry() { names["copy_all"] = 1000; }
};

Registry registry;
thread_local std::vector<int> launches;
int total = 0;

uint64_t piece_of(const CopyParams &param) {
    if (param.len == 0) {
        throw std::invalid_argument("nothing to copy");
    }
    return static_cast<uint64_t>(registry.names.at("copy_all"));
}

int32_t copy(const CopyParams &param) {
    std::vector<uint64_t> starts;
    const uint64_t piece = piece_of(param);
    for (uint64_t start = 0; start < param.len; start += piece) {
        starts.insert(starts.begin(), start);
    }
    launches.push_back(static_cast<int>(starts.size()));
    total++;
    std::cout << "copies " << param.len << " bytes in " << starts.size() << " pieces, launch " << total << std::endl;
    int32_t code = begin_in_step(param.thread);
    for (const uint64_t start : starts) {
        auto *dst = static_cast<char *>(param.cclBuf) + start;
        const auto *src = static_cast<const char *>(param.userIn) + start;
        if (code == 0) {
            code = HcommLocalCopyOnThread(param.thread, dst, src, std::min(piece, param.len - start));
        }
    }
    return end_in_step(param.thread, param.cpuThread, code);
}

// Not inlined: its line is what the tests look for.
__attribute__((noinline)) void write_to(volatile int *place) {
    *place = 1; // the line of a fault
}

__attribute__((noinline)) void fail() {
    throw std::runtime_error("not caught");
}

// Without end as far as any stack goes.
__attribute__((noinline)) int deeper(volatile char *above, uint64_t levels) {
    volatile char here[4096];
    here[0] = above == nullptr ? 0 : above[0];
    return levels == 0 ? 0 : deeper(here, levels - 1) + here[0];
}

} // namespace

// Copies in pieces, the last one first.
HCOMM_KERNEL(copy_all) {
    try {
        return static_cast<uint32_t>(copy(*static_cast<const CopyParams *>(args)));
    } catch (const std::invalid_argument &error) {
        std::cerr << "refused: " << error.what() << std::endl;
        return 1;
    }
}

HCOMM_KERNEL(writes_null) {
    (void)args;
    write_to(nullptr);
    return 0;
}

// Behind all that is allocated.
HCOMM_KERNEL(writes_unmapped) {
    const auto &param = *static_cast<const CopyParams *>(args);
    write_to(reinterpret_cast<volatile int *>(static_cast<char *>(param.cclBuf) + (2ULL << 30)));
    return 0;
}

HCOMM_KERNEL(aborts) {
    (void)args;
    std::abort();
}

HCOMM_KERNEL(throws) {
    (void)args;
    fail();
    return 0;
}

HCOMM_KERNEL(exits) {
    (void)args;
    std::exit(3);
}

HCOMM_KERNEL(exits_at_once) {
    (void)args;
    _exit(4);
}

HCOMM_KERNEL(overflows) {
    (void)args;
    return static_cast<uint32_t>(deeper(nullptr, UINT64_MAX));
}

HCOMM_KERNEL(loops) {
    (void)args;
    for (volatile int i = 0;; i = i + 1) {
    }
}

// A thread of its own has no core.
HCOMM_KERNEL(copies_in_a_thread) {
    const auto &param = *static_cast<const CopyParams *>(args);
    int32_t code = -1;
    std::thread([&] { code = HcommLocalCopyOnThread(param.thread, param.cclBuf, param.userIn, param.len); }).join();
    std::printf("a thread gets %d\n", code);
    const int32_t result = begin_in_step(param.thread);
    return static_cast<uint32_t>(end_in_step(param.thread, param.cpuThread, result));
}

// Waits for another kernel of the same library that runs at the same time.
static volatile int arrived = 0;
HCOMM_KERNEL(meets) {
    const auto &param = *static_cast<const CopyParams *>(args);
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) % 2 != 0) {
        std::this_thread::yield();
    }
    return static_cast<uint32_t>(copy(param));
}

// Every launch writes where the first one does.
HCOMM_KERNEL(races) {
    const auto &param = *static_cast<const CopyParams *>(args);
    static void *const place = param.cclBuf;
    int32_t code = begin_in_step(param.thread);
    if (code == 0) {
        code = HcommLocalCopyOnThread(param.thread, place, param.userIn, param.len); // the planted race
    }
    return static_cast<uint32_t>(end_in_step(param.thread, param.cpuThread, code));
}
