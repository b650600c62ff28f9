//! Ranks that exchange data over channels, on simulated devices of one process: Ascend950 over UB_CTP, Ascend910 over HCCS.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{AllGatherParams, CHANNEL_NOTIFIES, MeshPeer, SendRecvParams};
use hcomm_testkit::{DEADLOCK_LIMIT, pattern};
use host_stub::product::Product;
use host_stub::{
    ChannelConfig, Cluster, Comm, CommOptions, ControlPair, Cpu, DeviceBuffer, DeviceOptions, Error, Stream,
};
use zerocopy::IntoBytes;

const HBM: u64 = 64 << 20;

fn options() -> DeviceOptions {
    DeviceOptions { hbm_size: HBM, ..DeviceOptions::native() }
}

fn cluster(ranks: usize, ccl_buffer: u64, options: &DeviceOptions, config: &ChannelConfig) -> Cluster {
    let comm = CommOptions { ccl_buffer: Some(ccl_buffer) };
    let mut cluster = Cluster::with_options(ranks, options, comm).unwrap();
    cluster.connect(config).unwrap();
    cluster
}

/// What a rank needs for launches of [`AllGatherParams`].
struct Rank {
    stream: Stream,
    pair: ControlPair,
    /// Kept for the kernel.
    _peers: DeviceBuffer,
    params: AllGatherParams,
    out: DeviceBuffer,
    _user_in: DeviceBuffer,
}

fn mesh_threads(comm: &Comm, ranks: usize) -> Vec<ThreadHandle> {
    let main = comm.acquire_threads(Engine::AICPU_TS, 1, ranks as u32 - 1).unwrap();
    let others = match ranks {
        2 => Vec::new(),
        _ => comm.acquire_threads(Engine::AICPU_TS, ranks as u32 - 2, 1).unwrap(),
    };
    [main, others].concat()
}

fn rank(cluster: &Cluster, rank: usize, len: u64) -> Rank {
    let (device, comm, ranks) = (cluster.device(rank), cluster.comm(rank), cluster.ranks());
    let (ccl_buf, ccl_buf_size) = comm.hccl_buffer().unwrap();
    let threads = mesh_threads(comm, ranks);
    let peer_ranks = (0..ranks).filter(|peer| *peer != rank);
    let peers: Vec<_> = peer_ranks
        .zip(&threads)
        .map(|(peer, thread)| MeshPeer {
            channel: cluster.channel(rank, peer).unwrap().0,
            thread: thread.0,
            ccl_buf: cluster.comm(peer).hccl_buffer().unwrap().0,
            rank: peer as u64,
        })
        .collect();
    let list = device.malloc(size_of_val(&peers[..]) as u64).unwrap();
    device.copy_in(list.addr(), peers.as_bytes()).unwrap();
    let user_in = device.malloc(len.max(1)).unwrap();
    device.copy_in(user_in.addr(), &given(rank, len)).unwrap();
    let out = device.malloc((len * ranks as u64).max(1)).unwrap();
    let stream = Stream::new(device);
    let pair = ControlPair::new(comm, &stream, threads[0], ranks as u32 - 2).unwrap();
    let params = AllGatherParams {
        header: AllGatherParams::HEADER,
        peers: list.addr(),
        rank: rank as u64,
        rank_size: ranks as u64,
        user_in: user_in.addr(),
        user_out: out.addr(),
        ccl_buf,
        ccl_buf_size,
        len,
        control: pair.control(),
    };
    Rank { stream, pair, _peers: list, params, out, _user_in: user_in }
}

/// What rank `rank` gives.
fn given(rank: usize, len: u64) -> Vec<u8> {
    pattern(len as usize, 1000 + rank as u64)
}

fn launch(cluster: &Cluster, index: usize, rank: &Rank) {
    let kernel = cluster.device(index).load_kernel("all_gather").unwrap();
    rank.stream.launch_with_control(&rank.pair, &kernel, &rank.params).unwrap();
}

fn check(cluster: &Cluster, index: usize, rank: &Rank) {
    let (ranks, len) = (cluster.ranks(), rank.params.len);
    let mut out = vec![0; ranks * len as usize];
    cluster.device(index).copy_out(rank.out.addr(), &mut out).unwrap();
    let expected: Vec<u8> = (0..ranks).flat_map(|from| given(from, len)).collect();
    assert!(out == expected, "rank {index} of {ranks}, {len} bytes");
}

/// All ranks from one thread of the host.
fn all_gather(cluster: &Cluster, len: u64) {
    let ranks: Vec<_> = (0..cluster.ranks()).map(|index| rank(cluster, index, len)).collect();
    for _ in 0..2 {
        for (index, rank) in ranks.iter().enumerate() {
            launch(cluster, index, rank);
        }
        for (index, rank) in ranks.iter().enumerate() {
            rank.stream.synchronize().unwrap_or_else(|error| panic!("rank {index}: {error}"));
            check(cluster, index, rank);
        }
    }
}

#[test]
fn all_gather_over_2_4_and_8_ranks() {
    for ranks in [2, 4, 8] {
        let config = ChannelConfig::new(CHANNEL_NOTIFIES);
        let cluster = cluster(ranks, 1 << 20, &options(), &config);
        for len in [1, 4096, 100_003] {
            all_gather(&cluster, len);
        }
    }
}

/// The buffer holds a part alone, work entries are small, and rings and index wrap.
///
/// Case 374.
#[test]
fn all_gather_through_small_buffers_rings_and_entries() {
    let config = ChannelConfig::new(CHANNEL_NOTIFIES).depth(4).max_slice(64).starting_at(65_530);
    let cluster = cluster(3, 3000, &options(), &config);
    for len in [1, 999, 12_345] {
        all_gather(&cluster, len);
    }
}

/// The image in an emulated machine for each rank: real instructions and barriers, and doorbells that are stores.
#[test]
fn ranks_on_the_image_gather_and_send() {
    let options = DeviceOptions { cpu: Cpu::Qemu, ..options() };
    let cluster = cluster(2, 8192, &options, &ChannelConfig::new(CHANNEL_NOTIFIES).depth(16).max_slice(1024));
    all_gather(&cluster, 10_000);
    drop(cluster);
    send_recv(&options, 10_000);
}

/// One thread of the host for each rank, each of which waits for its own stream.
#[test]
fn all_gather_with_a_host_thread_for_each_rank() {
    let cluster = cluster(4, 1 << 16, &options(), &ChannelConfig::new(CHANNEL_NOTIFIES));
    std::thread::scope(|scope| {
        for index in 0..cluster.ranks() {
            let cluster = &cluster;
            scope.spawn(move || {
                let rank = rank(cluster, index, 5000);
                for _ in 0..50 {
                    launch(cluster, index, &rank);
                    rank.stream.synchronize().unwrap_or_else(|error| panic!("rank {index}: {error}"));
                }
                check(cluster, index, &rank);
            });
        }
    });
}

fn send_recv(options: &DeviceOptions, len: u64) {
    let cluster = cluster(2, 4096, options, &ChannelConfig::new(CHANNEL_NOTIFIES));
    let (ccl_buf, ccl_buf_size) = cluster.comm(0).hccl_buffer().unwrap();
    let mut streams = Vec::new();
    let mut buffers = Vec::new();
    for (index, name) in ["send_to_peer", "recv_from_peer"].into_iter().enumerate() {
        let (device, comm) = (cluster.device(index), cluster.comm(index));
        let thread = comm.acquire_threads(Engine::AICPU_TS, 1, 1).unwrap()[0];
        let stream = Stream::new(device);
        let pair = ControlPair::new(comm, &stream, thread, 0).unwrap();
        let user = device.malloc(len).unwrap();
        device.copy_in(user.addr(), &given(7 + index, len)).unwrap();
        let params = SendRecvParams {
            header: SendRecvParams::HEADER,
            thread: thread.0,
            channel: cluster.channel(index, 1 - index).unwrap().0,
            user: user.addr(),
            ccl_buf,
            ccl_buf_size,
            len,
            control: pair.control(),
        };
        stream.launch_with_control(&pair, &device.load_kernel(name).unwrap(), &params).unwrap();
        streams.push(stream);
        buffers.push(user);
    }
    for stream in &streams {
        stream.synchronize().unwrap();
    }
    let mut out = vec![0; len as usize];
    cluster.device(1).copy_out(buffers[1].addr(), &mut out).unwrap();
    assert!(out == given(7, len), "{len} bytes");
}

#[test]
fn receiver_reads_what_the_sender_gives() {
    for len in [1, 4096, 4097, 50_000] {
        send_recv(&options(), len);
    }
}

/// Over HCCS: SDMA to the peer, and a write value for its notify.
#[test]
fn products_of_ascend910_exchange_data_over_hccs() {
    for name in ["atlas-800t-a2", "atlas-a3-training"] {
        let product = Product::from_key(name).unwrap();
        let options = DeviceOptions { product, ..options() };
        send_recv(&options, 50_000);
    }
}

/// A rank's kernel that does not run leaves its peer waiting: the report names what it waits for.
///
/// Case 382.
#[test]
fn rank_that_does_not_come_is_a_deadlock_that_names_the_channel() {
    let options = DeviceOptions { deadlock_limit: Some(DEADLOCK_LIMIT), ..options() };
    let cluster = cluster(2, 4096, &options, &ChannelConfig::new(CHANNEL_NOTIFIES));
    let rank = rank(&cluster, 0, 100);
    launch(&cluster, 0, &rank);
    let error = rank.stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("507048") && error.contains("(index 0 of the channel to rank 1)"), "{error}");
}

/// What is wrong with one rank reaches the rank that waits for it.
///
/// Case 379.
#[test]
fn failed_rank_ends_the_waits_of_its_peers() {
    let cluster = cluster(2, 4096, &options(), &ChannelConfig::new(CHANNEL_NOTIFIES));
    let good = rank(&cluster, 0, 100);
    let mut bad = rank(&cluster, 1, 100);
    bad.params.ccl_buf = DeviceAddr(bad.params.ccl_buf.0 + (1 << 30));
    for (index, rank) in [&good, &bad].into_iter().enumerate() {
        launch(&cluster, index, rank);
    }
    let own = bad.stream.synchronize().unwrap_err().to_string();
    assert!(own.contains("507001") && own.contains("translation fault"), "{own}");
    let peer = good.stream.synchronize().unwrap_err().to_string();
    assert!(peer.contains("507048") && peer.contains("rank 1 has failed: "), "{peer}");
}

/// The device crate checks the exchanged range; what has been freed since shows at the engine.
#[test]
fn transfer_to_memory_that_is_gone_is_a_remote_error() {
    let cluster = cluster(2, 4096, &options(), &ChannelConfig::new(CHANNEL_NOTIFIES));
    let ranks = [rank(&cluster, 0, 100), rank(&cluster, 1, 100)];
    // Rank 0 writes from memory that is not its own: no check of the call looks at it.
    let mut wrong = ranks[0].params;
    wrong.ccl_buf = DeviceAddr(cluster.device(0).hbm().end - 4096);
    let kernel = cluster.device(0).load_kernel("all_gather").unwrap();
    ranks[0].stream.launch_with_control(&ranks[0].pair, &kernel, &wrong).unwrap();
    let error = ranks[0].stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("translation fault"), "{error}");
}

/// Case 376.
#[test]
fn ends_with_different_numbers_of_notifies_are_refused_on_both() {
    let comm = CommOptions { ccl_buffer: Some(4096) };
    let mut cluster = Cluster::with_options(2, &options(), comm).unwrap();
    let configs = [ChannelConfig::new(1), ChannelConfig::new(2)];
    let error = cluster.connect_pair(0, 1, [&configs[0], &configs[1]]).unwrap_err();
    assert_eq!(error.to_string(), "1 notifies at rank 0, 2 at rank 1: both ends of a channel have as many");
    assert!(cluster.channel(0, 1).is_none() && cluster.channel(1, 0).is_none());
    for count in [65, u32::MAX] {
        let error = cluster.connect(&ChannelConfig::new(count)).unwrap_err();
        assert_eq!(error.to_string(), format!("{count} notifies of a channel: at most 64"));
    }
    cluster.connect(&ChannelConfig::new(64)).unwrap();
}

#[test]
fn number_of_ranks_and_mode_of_a_cluster_are_checked() {
    assert!(matches!(Cluster::open(0), Err(Error::BadRankCount(0))));
    assert!(matches!(Cluster::open(17), Err(Error::BadRankCount(17))));
    let options = DeviceOptions { hbm_size: HBM, ..DeviceOptions::deterministic(1) };
    assert!(matches!(Cluster::with_options(2, &options, CommOptions::default()), Err(Error::DeterministicCluster)));
}

/// Channels go with their communicator: slots, rings and notifies come back.
#[test]
fn channels_are_released_with_their_communicators() {
    let comm = CommOptions { ccl_buffer: Some(4096) };
    let mut free = Vec::new();
    let fabric = Cluster::with_options(2, &options(), comm).unwrap();
    for _ in 0..3 {
        let mut cluster = Cluster::with_options(2, &options(), comm).unwrap();
        cluster.connect(&ChannelConfig::new(64)).unwrap();
        let device = cluster.device(0).clone();
        let before = device.free_memory();
        drop(cluster);
        free.push((device.free_memory() > before, device.free_memory()));
    }
    assert!(free.iter().all(|(is_more, memory)| *is_more && *memory == free[0].1), "{free:?}");
    drop(fabric);
}
