//! The SDMA engines over mapped memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hcomm_mapping::SharedMemory;
use hcomm_sim::engine::{EnginePool, Job, Transfer};
use hcomm_sim::inbox::{Command, Inbox};
use hcomm_sim::reduce::Reduce;

fn copy(dst: u64, src: u64, len: u32) -> Transfer {
    Transfer { dst, src, len, reduce: None }
}

#[test]
fn workers_make_every_piece_and_tell_of_each_task_once() {
    let memory = Arc::new(SharedMemory::new(64 << 20).unwrap());
    let inbox = Arc::new(Inbox::default());
    let pool = EnginePool::new(&memory, &inbox).unwrap();
    let at = |index: u64| memory.hbm_base() + 4096 + index * (10 << 20);
    let bytes: Vec<u8> = (0..10_u32 << 20).map(|index| (index.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    for index in [0, 2, 3] {
        memory.write(at(index), &bytes).unwrap();
    }
    let len = 3 * (2 << 20) + 12345;
    let sum = Reduce::from_opcode(0x01);
    pool.submit(Job { sq_id: 1, transfer: copy(at(1) + 7, at(0) + 3, len) });
    pool.submit(Job { sq_id: 2, transfer: Transfer { reduce: sum, ..copy(at(3) + 1, at(2) + 2, len) } });
    pool.submit(Job { sq_id: 3, transfer: copy(at(4) + 5, at(0), 1) });
    pool.submit(Job { sq_id: 4, transfer: copy(memory.hbm_base(), at(0), len) });

    let (mut commands, started) = (Vec::new(), Instant::now());
    while commands.len() < 4 && started.elapsed() < Duration::from_secs(60) {
        inbox.take(&mut commands);
    }
    drop(pool);
    inbox.take(&mut commands);

    let told = |command: &Command| match command {
        Command::Transferred { sq_id, result } => (*sq_id, result.is_ok()),
        other => panic!("{other:?}"),
    };
    let mut told: Vec<_> = commands.iter().map(told).collect();
    told.sort_unstable();
    assert_eq!(told, [(1, true), (2, true), (3, true), (4, false)]);
    let read = |addr: u64| {
        let mut out = vec![0; len as usize];
        memory.read(addr, &mut out).unwrap();
        out
    };
    assert!(read(at(1) + 7) == bytes[3..][..len as usize]);
    let sums = bytes[1..].iter().zip(&bytes[2..]).map(|(left, right)| left.wrapping_add(*right));
    assert!(read(at(3) + 1) == sums.take(len as usize).collect::<Vec<u8>>());
    assert_eq!(read(at(4) + 5)[..2], [bytes[0], 0]);
}
