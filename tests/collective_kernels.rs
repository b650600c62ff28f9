//! Collectives over a mesh, by provenance and with random data: any count, in place and not, larger than the buffer.

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_testkit::provenance;
use host_stub::collective::{Call, Collective, Mesh, channel_config};
use host_stub::{Check, Checks, Cluster, CommOptions, Cpu, DeviceOptions};

/// Holds 64 elements of 4 bytes for each of 4 ranks.
const CCL_BUFFER: u64 = 1024;

fn options() -> DeviceOptions {
    DeviceOptions { hbm_size: 64 << 20, ..DeviceOptions::native() }
}

fn cluster(ranks: usize, ccl_buffer: u64, options: &DeviceOptions) -> Cluster {
    let comm = CommOptions { ccl_buffer: Some(ccl_buffer) };
    let mut cluster = Cluster::with_options(ranks, options, comm).unwrap();
    cluster.connect(&channel_config()).unwrap();
    cluster
}

fn call(count: u64, in_place: bool) -> Call {
    Call { count, data_type: DataType::INT32, op: ReduceOp::SUM, root: 0, in_place }
}

/// Every collective with these counts, in place and not.
fn all_by_provenance(cluster: &Cluster, counts: &[u64]) {
    let (mesh, ranks) = (Mesh::new(cluster).unwrap(), cluster.ranks());
    for collective in Collective::ALL {
        for (index, count) in counts.iter().enumerate() {
            for in_place in [false, true] {
                let call = Call { root: (index % ranks) as u64, ..call(*count, in_place) };
                let checked = provenance::check(&mesh, collective, &call);
                assert_eq!(checked, Ok(()), "{} over {ranks} ranks, {call:?}", collective.name());
            }
        }
    }
}

/// Case 351. Counts of no part for a rank, of uneven parts, and of several pieces.
#[test]
fn elements_come_from_the_right_ranks_and_places() {
    for ranks in [2, 3, 4, 8] {
        all_by_provenance(&cluster(ranks, CCL_BUFFER, &options()), &[1, 7, 700]);
    }
}

/// Case 352. The kernels themselves are free of races, uninitialised reads and ignored refusals.
#[test]
fn collectives_are_clean_under_all_checks() {
    let checks = Checks::DEFAULT.with(Check::Race).with(Check::Init);
    all_by_provenance(&cluster(3, 96, &DeviceOptions { checks: Some(checks), ..options() }), &[5, 50]);
}

/// Case 353.
#[test]
fn random_numbers_of_every_type_are_reduced_right() {
    let cluster = cluster(3, CCL_BUFFER, &options());
    let mesh = Mesh::new(&cluster).unwrap();
    let types = [DataType::INT8, DataType::INT16, DataType::INT32, DataType::FP16, DataType::FP32, DataType::BF16];
    for (seed, data_type) in (0..).zip(types) {
        for op in [ReduceOp::SUM, ReduceOp::MAX, ReduceOp::MIN] {
            for collective in Collective::ALL {
                let call = Call { data_type, op, ..call(1001, seed % 2 == 0) };
                let checked = provenance::check_random(&mesh, collective, &call, seed);
                assert_eq!(checked, Ok(()), "{}, {call:?}", collective.name());
            }
        }
    }
}

/// A check that can't fail is none: an input that is not the expected one is told with its origin.
#[test]
fn provenance_names_what_is_wrong() {
    let cluster = cluster(2, CCL_BUFFER, &options());
    let mesh = Mesh::new(&cluster).unwrap();
    // A root that differs from that which the result is compared with.
    let call = call(4, false);
    let inputs = [vec![1; 16], vec![2; 16]];
    let outputs = provenance::run(&mesh, Collective::Broadcast, &Call { root: 1, ..call }, &inputs).unwrap();
    assert_eq!(outputs, [vec![2; 16], vec![2; 16]]);
}

/// Case 354. A buffer of less than an element for each rank is refused by the kernel.
#[test]
fn buffer_that_is_too_small_is_refused() {
    let cluster = cluster(4, 15, &options());
    let mesh = Mesh::new(&cluster).unwrap();
    let error = provenance::check(&mesh, Collective::AllReduce, &call(1, false)).unwrap_err();
    assert!(error.contains("rank 0") && error.contains("507018"), "{error}");
}

/// The stock library of the CPU `linux`: 2 and 4 ranks.
#[test]
fn ranks_on_aarch64_linux_run_every_collective() {
    for ranks in [2, 4] {
        let options = DeviceOptions { cpu: Cpu::Linux, ..options() };
        all_by_provenance(&cluster(ranks, CCL_BUFFER, &options), &[300]);
    }
}

#[test]
#[ignore = "make soak"]
fn elements_come_from_the_right_ranks_of_16() {
    all_by_provenance(&cluster(16, CCL_BUFFER, &options()), &[3, 1000]);
}
