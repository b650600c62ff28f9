//! Thread handles of any number: exactly the live one is accepted, nothing outside the thread table is read, and a refused
//! call leaves ring and doorbell alone.

use std::ptr::{without_provenance, without_provenance_mut};

use hcomm_aicpu::abi::HcommLocalCopyOnThread;
use hcomm_aicpu::spec::code::{HCCL_E_NOT_FOUND, HCCL_E_PTR, HCCL_SUCCESS};
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{Error, Peer, Thread};
use hcomm_testkit_platform::{GENERATION, LIVE, Rig, STALE};

/// Entries of the ring.
const DEPTH: u32 = 5;

/// The number itself, or one close to the table: the first byte says which, since a random number is never near.
fn handle(rig: &Rig, how: u8, number: u64) -> ThreadHandle {
    let generation = (number >> 48) as u16;
    match how % 4 {
        0 => ThreadHandle(number),
        1 => ThreadHandle(rig.handle(number as i64 & 0xf, generation)),
        2 => ThreadHandle(rig.handle(number as i64 & 0xf, GENERATION)),
        _ => ThreadHandle(rig.live().wrapping_add((number as i32 >> (number >> 59)) as u64)),
    }
}

/// What a copy on the handle answers, and whether a notify can be sent to it.
pub fn check(bytes: &[u8]) -> Option<(i32, bool)> {
    let (how, number) = (*bytes.first()?, u64::from_le_bytes(*bytes.get(1..)?.first_chunk()?));
    let rig = Rig::new(DEPTH);
    rig.run_at_looks(DEPTH, 0);
    let handle = handle(&rig, how, number);
    let live = handle.0 == rig.live();

    assert_eq!(Thread::from_handle(handle).unwrap_err().code(), if handle.0 == 0 { 2 } else { Error::NoCore.code() });
    // Each way that a call can take: the queue is not known yet, and it is.
    let (first, thread, peer, code) = rig.launch(|| {
        let copy = |handle: ThreadHandle| {
            let dst = without_provenance_mut(0x12c0_0000_2000);
            HcommLocalCopyOnThread(handle.0, dst, without_provenance(0x12c0_0000_1000), 64)
        };
        let first = copy(handle);
        assert_eq!(rig.slots().iter().all(|slot| *slot == STALE), !live);
        let (thread, peer) = (Thread::from_handle(handle), Peer::from_handle(handle));
        assert_eq!(copy(ThreadHandle(rig.live())), HCCL_SUCCESS);
        (first, thread, peer, copy(handle))
    });

    let expected = match handle.0 {
        0 => HCCL_E_PTR,
        _ if live => HCCL_SUCCESS,
        _ => HCCL_E_NOT_FOUND,
    };
    assert_eq!(first, expected, "handle {:#x}, {:#x} is live in slot {LIVE}", handle.0, rig.live());
    assert_eq!(code, expected, "handle {:#x} on a queue that is known", handle.0);
    assert_eq!(thread.map_err(|error| error.code()).err().unwrap_or(0), expected);
    assert_eq!(peer.is_ok(), live || handle.0 == rig.of_other_engine());
    assert_eq!(rig.doorbells().len(), if live { 3 } else { 1 });
    Some((code, peer.is_ok()))
}
