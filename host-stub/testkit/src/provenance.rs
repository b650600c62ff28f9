//! Collectives checked by provenance: from which rank and place each element has come, and which were reduced.
//!
//! Elements name their origin: an element that is moved holds rank and index; one that is summed holds a count for each rank in one
//! run, and its index in another.

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use host_stub::Error;
use host_stub::collective::{Call, Collective, Mesh, values};

use crate::Rng;

/// Bits of the count of a rank: a contribution that came twice is seen, one of four is not.
const COUNT_BITS: u32 = 2;

/// Runs `collective` on the ranks of a mesh, with `inputs` in the memory of each, and gives their outputs.
///
/// # Errors
/// The first rank that has failed.
///
/// # Panics
/// If an input has another length than the call says, or a device has no room.
pub fn run(
    mesh: &Mesh<'_>,
    collective: Collective,
    call: &Call,
    inputs: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, (usize, Error)> {
    let cluster = mesh.cluster();
    let buffers: Vec<_> = (0..inputs.len()).map(|rank| mesh.buffers(collective, call, rank).unwrap()).collect();
    for (rank, (buffers, input)) in buffers.iter().zip(inputs).enumerate() {
        cluster.device(rank).copy_in(buffers.user_in, input).unwrap();
    }
    mesh.run(collective, call, &buffers)?;
    let size = call.data_type.size().unwrap();
    let (_, count) = collective.counts(inputs.len() as u64, call.count);
    let output = |(rank, of): (usize, &host_stub::collective::Buffers)| {
        let mut bytes = vec![0; (count * size) as usize];
        cluster.device(rank).copy_out(of.user_out, &mut bytes).map(|()| bytes).map_err(|error| (rank, error))
    };
    buffers.iter().enumerate().map(output).collect()
}

/// Checks where each element of every output has come from.
///
/// # Errors
/// The first element that is wrong: its rank and index, what it is made of, and what it should be made of.
///
/// # Panics
/// If a device has no room.
pub fn check(mesh: &Mesh<'_>, collective: Collective, call: &Call) -> Result<(), String> {
    let call = Call { data_type: DataType::INT32, op: ReduceOp::SUM, ..*call };
    if !collective.reduces() {
        return check_with(mesh, collective, &call, origin, |value| {
            format!("element {} of rank {}", value & 0xf_ffff, value >> 20)
        });
    }
    let counts = |value: u32| {
        let count = |rank: u32| (value >> (COUNT_BITS * rank)) & ((1 << COUNT_BITS) - 1);
        let list = (0..mesh.cluster().ranks() as u32).map(|rank| format!("rank {rank} {} times", count(rank)));
        list.collect::<Vec<_>>().join(", ")
    };
    check_with(mesh, collective, &call, |rank, _| 1 << (COUNT_BITS * rank as u32), counts)?;
    check_with(
        mesh,
        collective,
        &call,
        |_, index| index as u32 + 1,
        |sum| format!("elements whose indices add up to {sum}"),
    )
}

/// Rank and index in one number.
fn origin(rank: usize, index: usize) -> u32 {
    (rank as u32) << 20 | index as u32
}

fn check_with(
    mesh: &Mesh<'_>,
    collective: Collective,
    call: &Call,
    input: impl Fn(usize, usize) -> u32,
    meaning: impl Fn(u32) -> String,
) -> Result<(), String> {
    let ranks = mesh.cluster().ranks();
    let (count, _) = collective.counts(ranks as u64, call.count);
    let of_rank = |rank| (0..count as usize).flat_map(|index| input(rank, index).to_le_bytes()).collect();
    let inputs: Vec<Vec<u8>> = (0..ranks).map(of_rank).collect();
    let outputs = run(mesh, collective, call, &inputs).map_err(|(rank, error)| format!("rank {rank}: {error}"))?;
    for (rank, output) in outputs.iter().enumerate() {
        for (index, found) in output.chunks_exact(4).enumerate() {
            let found = u32::from_le_bytes(found.try_into().unwrap());
            let expected = collective.expected(call, ranks, (rank, index), &input, u32::wrapping_add);
            if found != expected {
                let (found, expected) = (meaning(found), meaning(expected));
                return Err(format!("element {index} of the output of rank {rank} is {found}, not {expected}"));
            }
        }
    }
    Ok(())
}

/// Checks the results for random small numbers of the call's type.
///
/// # Errors
/// The first element that is wrong.
///
/// # Panics
/// If the type has no small numbers, or a device has no room.
pub fn check_random(mesh: &Mesh<'_>, collective: Collective, call: &Call, seed: u64) -> Result<(), String> {
    let (ranks, mut random) = (mesh.cluster().ranks(), Rng::with_seed(seed));
    let (count, _) = collective.counts(ranks as u64, call.count);
    let numbers: Vec<Vec<u32>> =
        (0..ranks).map(|_| (0..count).map(|_| random.u32(0..values::EXACT / 16)).collect()).collect();
    let bytes =
        |list: &Vec<u32>| list.iter().flat_map(|value| values::element(call.data_type, *value).unwrap()).collect();
    let inputs: Vec<Vec<u8>> = numbers.iter().map(bytes).collect();
    let outputs = run(mesh, collective, call, &inputs).map_err(|(rank, error)| format!("rank {rank}: {error}"))?;
    let size = call.data_type.size().unwrap() as usize;
    for (rank, output) in outputs.iter().enumerate() {
        for (index, found) in output.chunks_exact(size).enumerate() {
            let input = |from: usize, index: usize| numbers[from][index];
            let reduce = |a, b| values::reduce(call.op, a, b).unwrap();
            let expected = collective.expected(call, ranks, (rank, index), input, reduce);
            if found != values::element(call.data_type, expected).unwrap() {
                return Err(format!(
                    "element {index} of the output of rank {rank} is {found:02x?}, not {expected} (seed {seed})"
                ));
            }
        }
    }
    Ok(())
}
