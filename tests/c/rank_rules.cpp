// Ranks of one process: what they are told about each other, and the rules of channels. C++14.
//
//   rank_rules RULE

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "collective_host.h"

namespace {

constexpr uint32_t RANKS = 2;

// Lets threads go on together.
class Barrier {
  public:
    explicit Barrier(unsigned threads) : threads_(threads) {}

    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        const unsigned turn = turn_;
        if (++waiting_ == threads_) {
            waiting_ = 0;
            turn_++;
            changed_.notify_all();
        }
        changed_.wait(lock, [this, turn] { return turn_ != turn; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    unsigned threads_, waiting_ = 0, turn_ = 0;
};

struct Pair {
    std::array<HcclComm, RANKS> comms = {{nullptr, nullptr}};
    std::array<void *, RANKS> buffers = {{nullptr, nullptr}};
    Barrier both{RANKS};
};

void has_text(const char *expected) {
    const char *text = aclrtGetRecentErrMsg();
    if (text == nullptr || std::strstr(text, expected) == nullptr) {
        std::fprintf(stderr, "\"%s\" is not in: %s\n", expected, text == nullptr ? "(none)" : text);
        std::exit(1);
    }
}

// Both ranks of one communicator, each in a thread of its own.
void on_both(const std::function<void(Pair &, uint32_t)> &act) {
    const HcclRootInfo root = root_info();
    Pair pair;
    std::array<std::thread, RANKS> threads;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        threads[rank] = std::thread([&, rank] {
            CHECK(aclrtSetDevice(static_cast<int32_t>(rank)), ACL_SUCCESS);
            CHECK(HcclCommInitRootInfo(RANKS, &root, rank, &pair.comms[rank]), HCCL_SUCCESS);
            act(pair, rank);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (int32_t device = 0; device < static_cast<int32_t>(RANKS); device++) {
        (void)aclrtSetDevice(device);
        (void)aclrtResetDevice(device);
    }
}

HcclChannelDesc to_peer(const Pair &pair, uint32_t rank, uint32_t notifies) {
    return describe_channel(pair.comms[rank], rank, 1 - rank, notifies);
}

HcclResult acquire(const Pair &pair, uint32_t rank, uint32_t notifies, ChannelHandle *handle) {
    const HcclChannelDesc desc = to_peer(pair, rank, notifies);
    return HcclChannelAcquire(pair.comms[rank], COMM_ENGINE_AICPU_TS, &desc, 1, handle);
}

// A channel is made once, and is that of the same place in every later call.
void channels(Pair &pair, uint32_t rank) {
    const HcclComm comm = pair.comms[rank];
    uint64_t size = 0, remote_size = 0;
    CHECK(HcclGetHcclBuffer(comm, &pair.buffers[rank], &size), HCCL_SUCCESS);
    const HcclChannelDesc descs[2] = {to_peer(pair, rank, 3), to_peer(pair, rank, 64)};
    ChannelHandle first[2] = {0, 0}, again[2] = {0, 0}, one = 0;
    pair.both.wait();
    if (std::strstr(aclrtGetSocName(), "Ascend950") != nullptr) {
        CHECK(HcclChannelQuery(comm, COMM_ENGINE_AICPU, descs, 2, first), HCCL_SUCCESS);
        CHECK_TRUE(first[0] == 0 && first[1] == 0);
    }
    CHECK(HcclChannelAcquire(comm, COMM_ENGINE_AICPU, descs, 2, first), HCCL_SUCCESS);
    CHECK_TRUE(first[0] != 0 && first[1] != 0 && first[0] != first[1]);
    /* Engine AICPU is AICPU_TS, and the number of notifies stays what it was. */
    CHECK(acquire(pair, rank, 7, &one), HCCL_SUCCESS);
    CHECK_TRUE(one == first[0]);
    CHECK(HcclChannelAcquire(comm, COMM_ENGINE_AICPU_TS, descs, 2, again), HCCL_SUCCESS);
    CHECK_TRUE(again[0] == first[0] && again[1] == first[1]);

    void *buffer = nullptr;
    CHECK(HcclChannelGetHcclBuffer(comm, one, &buffer, &remote_size), HCCL_SUCCESS);
    CHECK_TRUE(buffer == pair.buffers[1 - rank]);
    CHECK_TRUE(remote_size == size);
    CHECK(HcclChannelGetHcclBuffer(comm, 0, &buffer, &remote_size), HCCL_E_PTR);
    CHECK(HcclChannelGetHcclBuffer(comm, one + 1, &buffer, &remote_size), HCCL_E_NOT_FOUND);
    uint32_t number = 0;
    CommMem *mems = nullptr;
    char **tags = nullptr;
    CHECK(HcclChannelGetRemoteMems(comm, first[1], &number, &mems, &tags), HCCL_SUCCESS);
    CHECK(number, 1);
    CHECK(mems[0].type, COMM_MEM_TYPE_DEVICE);
    CHECK_TRUE(mems[0].addr == buffer && mems[0].size == size);
    CHECK(std::strcmp(tags[0], "HcclBuffer"), 0);
    CHECK(HcclChannelDestroy(comm, &one, 1), HCCL_E_NOT_SUPPORT);
    pair.both.wait();
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
}

// What is wrong with a description is answered before any peer is waited for.
void descriptions(Pair &pair, uint32_t rank) {
    const HcclComm comm = pair.comms[rank];
    const bool is_950 = std::strstr(aclrtGetSocName(), "Ascend950") != nullptr;
    const HcclChannelDesc good = to_peer(pair, rank, 1);
    const auto code = [comm, &good](CommEngine engine, void (*change)(HcclChannelDesc &)) {
        HcclChannelDesc descs[2] = {good, good};
        ChannelHandle handles[2];
        change(descs[1]);
        return HcclChannelAcquire(comm, engine, descs, 2, handles);
    };
    const CommEngine ts = COMM_ENGINE_AICPU_TS;
    CHECK(code(ts, [](HcclChannelDesc &desc) { desc.header.magicWord++; }), HCCL_E_PARA);
    CHECK(code(ts, [](HcclChannelDesc &desc) { desc.header.size--; }), HCCL_E_PARA);
    CHECK(code(ts, [](HcclChannelDesc &desc) { desc.channelProtocol = (CommProtocol)10; }), HCCL_E_PARA);
    CHECK(code(ts, [](HcclChannelDesc &desc) { desc.notifyNum = 65; }), HCCL_E_PARA);
    CHECK(code(ts, [](HcclChannelDesc &desc) { desc.remoteRank = RANKS; }), HCCL_E_PARA);
    CHECK(code(ts, [](HcclChannelDesc &desc) { desc.channelProtocol = COMM_PROTOCOL_ROCE; }), HCCL_E_NOT_SUPPORT);
    CHECK(code(ts, [](HcclChannelDesc &desc) { desc.channelProtocol = COMM_PROTOCOL_UB_MEM; }), HCCL_E_NOT_SUPPORT);
    if (is_950) {
        CHECK(code(ts, [](HcclChannelDesc &desc) { (void)EndpointDescInit(&desc.localEndpoint, 1); }), HCCL_E_PARA);
        CHECK(code(ts, [](HcclChannelDesc &desc) { desc.channelProtocol = COMM_PROTOCOL_HCCS; }), HCCL_E_NOT_SUPPORT);
    }
    const auto nothing = [](HcclChannelDesc &) {};
    for (const CommEngine engine : {COMM_ENGINE_CPU, COMM_ENGINE_CPU_TS, COMM_ENGINE_AIV, COMM_ENGINE_CCU}) {
        CHECK(code(engine, nothing), HCCL_E_NOT_SUPPORT);
    }
    CHECK(code(COMM_ENGINE_RESERVED, nothing), HCCL_E_PARA);
    HcclChannelDesc own = good;
    ChannelHandle handle = 0;
    own.remoteRank = rank;
    CHECK(HcclChannelAcquire(comm, ts, &own, 1, &handle), HCCL_E_PARA);
    CHECK(HcclChannelAcquire(comm, ts, &own, 1048577, &handle), HCCL_E_PARA);
    CHECK_TRUE(handle == 0);
    pair.both.wait();
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
}

void graph(Pair &pair, uint32_t rank) {
    const HcclComm comm = pair.comms[rank];
    const bool is_950 = std::strstr(aclrtGetSocName(), "Ascend950") != nullptr;
    CommLink *links = nullptr;
    uint32_t *list = nullptr, number = 0;
    CommTopo topo = COMM_TOPO_RESERVED;
    CHECK(HcclRankGraphGetLinks(comm, 0, 0, 1, &links, &number), HCCL_SUCCESS);
    CHECK(number, 1);
    CHECK(links[0].header.magicWord, COMM_LINK_MAGIC_WORD);
    CHECK(links[0].header.size, sizeof(CommLink));
    CHECK(links[0].linkAttr.linkProtocol, is_950 ? COMM_PROTOCOL_UB_CTP : COMM_PROTOCOL_HCCS);
    CHECK(links[0].linkAttr.hop, 1);
    CHECK(links[0].srcEndpointDesc.protocol, links[0].linkAttr.linkProtocol);
    CHECK(links[0].srcEndpointDesc.loc.locType, ENDPOINT_LOC_TYPE_DEVICE);
    CHECK(links[0].srcEndpointDesc.loc.device.devPhyId, 0);
    CHECK(links[0].dstEndpointDesc.loc.device.devPhyId, 1);
    CHECK(links[0].dstEndpointDesc.commAddr.type, is_950 ? COMM_ADDR_TYPE_EID : COMM_ADDR_TYPE_ID);
    CHECK(HcclRankGraphGetLinks(comm, 0, 1, 1, &links, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetLinks(comm, 1, 0, 1, &links, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetLinks(comm, 0, 0, RANKS, &links, &number), HCCL_E_PARA);
    CHECK(HcclRankGraphGetLayers(comm, &list, &number), HCCL_SUCCESS);
    CHECK_TRUE(number == 1 && list[0] == 0);
    CHECK(HcclRankGraphGetRanksByLayer(comm, 0, &list, &number), HCCL_SUCCESS);
    CHECK_TRUE(number == RANKS && list[0] == 0 && list[1] == 1);
    CHECK(HcclRankGraphGetRanksByLayer(comm, 1, &list, &number), HCCL_E_PARA);
    number = 0;
    CHECK(HcclRankGraphGetRankSizeByLayer(comm, 0, &number), HCCL_SUCCESS);
    CHECK(number, RANKS);
    CHECK(HcclRankGraphGetTopoTypeByLayer(comm, 0, &topo), HCCL_SUCCESS);
    CHECK(topo, COMM_TOPO_1DMESH);
    CHECK(HcclRankGraphGetTopoTypeByLayer(comm, 1, &topo), HCCL_E_PARA);
    pair.both.wait();
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
}

// Both ends are told, and a second attempt with equal numbers works.
void notifies(Pair &pair, uint32_t rank) {
    ChannelHandle handle = 0;
    CHECK(acquire(pair, rank, 2 + rank, &handle), HCCL_E_PARA);
    has_text("notifies at rank");
    CHECK(acquire(pair, rank, 2, &handle), HCCL_SUCCESS);
    pair.both.wait();
    CHECK(HcclCommDestroy(pair.comms[rank]), HCCL_SUCCESS);
}

void destroyed(Pair &pair, uint32_t rank) {
    ChannelHandle handle = 0;
    if (rank == 1) {
        CHECK(HcclCommDestroy(pair.comms[1]), HCCL_SUCCESS);
        pair.both.wait();
        return;
    }
    CHECK(acquire(pair, 0, 1, &handle), HCCL_E_TIMEOUT);
    has_text("rank 0 of 2 waits in HcclChannelAcquire for rank 1, which has destroyed its communicator");
    pair.both.wait();
    CHECK(HcclCommDestroy(pair.comms[0]), HCCL_SUCCESS);
}

void ended(Pair &pair, uint32_t rank) {
    ChannelHandle handle = 0;
    if (rank == 0) {
        CHECK(acquire(pair, 0, 1, &handle), HCCL_E_TIMEOUT);
        has_text("waits in HcclChannelAcquire for rank 1, which is driven by no thread any more");
    }
}

void reset(Pair &pair, uint32_t rank) {
    ChannelHandle handle = 0;
    if (rank == 1) {
        CHECK(aclrtResetDevice(1), ACL_SUCCESS);
        pair.both.wait();
        return;
    }
    CHECK(acquire(pair, 0, 1, &handle), HCCL_E_TIMEOUT);
    has_text("for rank 1, which has reset its device");
    pair.both.wait();
}

// One thread makes both ranks, and waits for itself.
void alone() {
    int32_t devices[RANKS] = {1, 0};
    Pair pair;
    ChannelHandle handle = 0;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(HcclCommInitAll(RANKS, devices, pair.comms.data()), HCCL_SUCCESS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        uint32_t found = 9, size = 0;
        CHECK(HcclGetRankId(pair.comms[rank], &found), HCCL_SUCCESS);
        CHECK(HcclGetRankSize(pair.comms[rank], &size), HCCL_SUCCESS);
        CHECK_TRUE(found == rank && size == RANKS);
    }
    CHECK(acquire(pair, 0, 1, &handle), HCCL_E_TIMEOUT);
    has_text("rank 0 of 2 waits in HcclChannelAcquire for rank 1; no other thread of the program uses this library");
    /* Two threads work, as soon as the library knows both. */
    Barrier known(2);
    std::thread other([&pair, &known] {
        ChannelHandle end = 0;
        CHECK(aclrtSetDevice(0), ACL_SUCCESS);
        known.wait();
        CHECK(acquire(pair, 1, 1, &end), HCCL_SUCCESS);
    });
    known.wait();
    CHECK(acquire(pair, 0, 1, &handle), HCCL_SUCCESS);
    other.join();
    devices[1] = devices[0];
    HcclComm comms[RANKS] = {nullptr, nullptr};
    CHECK(HcclCommInitAll(RANKS, devices, comms), HCCL_E_PARA);
    CHECK(HcclCommInitAll(0, devices, comms), HCCL_E_PARA);
    CHECK_TRUE(comms[0] == nullptr);
}

// With HCCL_CONNECT_TIMEOUT=1: a rank that does not come is given up, and may come later.
void late() {
    const HcclRootInfo root = root_info();
    HcclComm comm = nullptr;
    std::thread first([&root, &comm] {
        CHECK(aclrtSetDevice(0), ACL_SUCCESS);
        CHECK(HcclCommInitRootInfo(RANKS, &root, 0, &comm), HCCL_E_TIMEOUT);
        has_text("rank 0 of 2 waits in HcclCommInitRootInfo for rank 1: none has come within 1 s (HCCL_CONNECT_TIMEOUT)");
        CHECK_TRUE(comm == nullptr);
    });
    first.join();
    HcclRootInfo other = root;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(HcclCommInitRootInfo(1, &root, 1, &comm), HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(0, &root, 0, &comm), HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(17, &root, 0, &comm), HCCL_E_NOT_SUPPORT);
    other.internal[0]++;
    CHECK(HcclCommInitRootInfo(1, &other, 0, &comm), HCCL_E_PARA);
    /* The root info can be used again. */
    CHECK(HcclCommInitRootInfo(1, &root, 0, &comm), HCCL_SUCCESS);
    HcclComm again = nullptr;
    CHECK(HcclCommInitRootInfo(1, &root, 0, &again), HCCL_E_PARA);
    has_text("rank 0 has joined with this root info before");
    CHECK(HcclCommDestroy(comm), HCCL_SUCCESS);
    CHECK(HcclCommInitRootInfo(1, &root, 0, &again), HCCL_E_PARA);
}

// What the peers of a rank see: `what` happens to rank 1, while rank 0 waits for it in a kernel, or writes to it.
void failures(const char *description, const std::string &what) {
    const HcclRootInfo root = root_info();
    Barrier both(RANKS);
    std::array<std::thread, RANKS> threads;
    for (uint32_t own = 0; own < RANKS; own++) {
        threads[own] = std::thread([&, own] {
            Rank rank;
            rank.open(RANKS, root, own, description);
            OpParam param = {};
            uint64_t bytes = 0;
            param.bytes = 4096;
            param.peer = 1 - own;
            param.input = device_memory(own, param.bytes);
            param.output = device_memory(own, param.bytes * RANKS);
            (void)rank.context("collective", &bytes);
            both.wait();
            if (own == 1) {
                if (what == "kernel") {
                    param.fails = 1;
                    rank.launch("AllGather", param);
                    CHECK(aclrtSynchronizeStream(rank.stream), 507018);
                } else if (what == "memory") {
                    param.input = reinterpret_cast<void *>(0x1000);
                    rank.launch("AllGather", param);
                    CHECK(aclrtSynchronizeStream(rank.stream), ACL_ERROR_RT_TS_ERROR);
                } else {
                    (void)aclrtResetDevice(1);
                }
                both.wait();
                both.wait();
                return;
            }
            if (what == "write") {
                both.wait();
                rank.launch("Write", param);
                CHECK(aclrtSynchronizeStream(rank.stream), 507056);
                has_text("channel to rank 1");
            } else {
                /* A transfer to a closed device is another error than a wait for it. */
                rank.launch(what == "reset" ? "Receive" : "AllGather", param);
                CHECK(aclrtSynchronizeStream(rank.stream), 507048);
                has_text("rank 1 has failed: ");
                both.wait();
            }
            both.wait();
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

} // namespace

int main(int argc, char **argv) {
    CHECK_TRUE(argc >= 2);
    const std::string rule = argv[1];
    if (rule == "channels") {
        on_both(channels);
    } else if (rule == "descriptions") {
        on_both(descriptions);
    } else if (rule == "graph") {
        on_both(graph);
    } else if (rule == "notifies") {
        on_both(notifies);
    } else if (rule == "destroyed") {
        on_both(destroyed);
    } else if (rule == "ended") {
        on_both(ended);
    } else if (rule == "reset") {
        on_both(reset);
    } else if (rule == "alone") {
        alone();
    } else if (rule == "late") {
        late();
    } else {
        CHECK_TRUE(rule == "failure" && argc == 4);
        failures(argv[2], argv[3]);
    }
    return 0;
}
