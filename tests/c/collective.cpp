// Collectives over ranks that are threads of one process, one device each: no sleeps, and a second call of an operator uses what the
// first has acquired. C++14.
//
//   collective DESCRIPTION all-gather RANKS ROUNDS BYTES
//   collective DESCRIPTION send-receive RANKS ROUNDS BYTES
//   collective DESCRIPTION again RANKS ROUNDS BYTES     all-gather, destroy, reset in each round

#include <string>
#include <thread>
#include <vector>

#include "collective_host.h"

namespace {

struct Run {
    const char *description;
    uint32_t ranks;
    uint32_t rounds;
    uint64_t bytes;
};

void gather(Rank &rank, const Run &run, uint32_t round) {
    const uint32_t seed = round * run.ranks;
    OpParam param = {};
    param.bytes = run.bytes;
    param.input = device_memory(seed + rank.rank, run.bytes);
    param.output = device_memory(1000, run.bytes * run.ranks);
    rank.launch("AllGather", param);
    CHECK(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    for (uint32_t from = 0; from < run.ranks; from++) {
        check_memory(seed + from, static_cast<char *>(param.output) + from * run.bytes, run.bytes);
    }
    CHECK(aclrtFree(param.input), ACL_SUCCESS);
    CHECK(aclrtFree(param.output), ACL_SUCCESS);
}

// Ranks with even numbers send to the next one.
void send_receive(Rank &rank, const Run &run, uint32_t round) {
    OpParam param = {};
    param.bytes = run.bytes;
    param.peer = rank.rank ^ 1u;
    if (rank.rank % 2 == 0) {
        param.input = device_memory(round + rank.rank, run.bytes);
        rank.launch("Send", param);
        CHECK(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
        CHECK(aclrtFree(param.input), ACL_SUCCESS);
    } else {
        param.output = device_memory(1000, run.bytes);
        rank.launch("Receive", param);
        CHECK(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
        check_memory(round + param.peer, param.output, run.bytes);
        CHECK(aclrtFree(param.output), ACL_SUCCESS);
    }
}

// One communicator for all rounds.
template <typename Operation> void on_all_ranks(const Run &run, Operation operation) {
    const HcclRootInfo root = root_info();
    std::vector<std::thread> threads;
    for (uint32_t own = 0; own < run.ranks; own++) {
        threads.emplace_back([&run, &root, own, operation] {
            Rank rank;
            rank.open(run.ranks, root, own, run.description);
            for (uint32_t round = 0; round < run.rounds; round++) {
                operation(rank, run, round);
            }
            rank.close();
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

} // namespace

int main(int argc, char **argv) {
    CHECK_TRUE(argc == 6);
    const std::string what = argv[2];
    const auto number = [argv](int at) { return static_cast<uint32_t>(std::strtoul(argv[at], nullptr, 10)); };
    const Run run = {argv[1], number(3), number(4), number(5)};
    CHECK(aclInit(nullptr), ACL_SUCCESS);
    if (what == "all-gather") {
        on_all_ranks(run, gather);
    } else if (what == "send-receive") {
        on_all_ranks(run, send_receive);
    } else {
        CHECK_TRUE(what == "again");
        const Run once = {run.description, run.ranks, 1, run.bytes};
        for (uint32_t round = 0; round < run.rounds; round++) {
            on_all_ranks(once, gather);
        }
    }
    CHECK(aclFinalize(), ACL_SUCCESS);
    return 0;
}
