//! Thread handles of any number: exactly the live one is accepted, nothing outside the thread table is read, and a refused
//! call leaves ring and doorbell alone.
#![no_main]

use std::ptr::without_provenance;

use hcomm_aicpu::abi::HcommLocalCopyOnThread;
use hcomm_aicpu::spec::code::{HCCL_E_NOT_FOUND, HCCL_E_PTR, HCCL_SUCCESS};
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{Error, Peer, Thread};
use hcomm_fuzz::{GENERATION, LIVE, OTHER_ENGINE, Rig};
use libfuzzer_sys::fuzz_target;

/// The number itself, or one close to the table: the first byte says which, since a random number is never near.
fn handle(rig: &Rig, how: u8, number: u64) -> ThreadHandle {
    let generation = (number >> 48) as u16;
    match how % 4 {
        0 => ThreadHandle(number),
        1 => rig.handle(number & 0xf, generation),
        2 => rig.handle(number & 0xf, GENERATION),
        _ => ThreadHandle(rig.live().0.wrapping_add((number as i32 >> (number >> 59)) as u64)),
    }
}

fuzz_target!(|input: (u8, u64)| {
    let rig = Rig::new();
    let handle = handle(&rig, input.0, input.1);
    let live = handle == rig.live();
    let other_engine = handle == rig.handle(OTHER_ENGINE as u64, GENERATION);

    assert_eq!(Thread::from_handle(handle).unwrap_err().code(), if handle.0 == 0 { 2 } else { Error::NoCore.code() });
    let ((thread, peer, code), doorbells) = rig.launch(|| {
        let dst = std::ptr::without_provenance_mut(0x12c0_0000_2000);
        let code = HcommLocalCopyOnThread(handle.0, dst, without_provenance(0x12c0_0000_1000), 64);
        (Thread::from_handle(handle), Peer::from_handle(handle), code)
    });

    let expected = match handle.0 {
        0 => HCCL_E_PTR,
        _ if live => HCCL_SUCCESS,
        _ => HCCL_E_NOT_FOUND,
    };
    assert_eq!(code, expected, "handle {:#x}, table at {:#x}, live in slot {LIVE}", handle.0, rig.table_base());
    assert_eq!(thread.map_err(|error| error.code()).err().unwrap_or(0), expected);
    assert_eq!(peer.is_ok(), live || other_engine);
    assert_eq!(doorbells, u32::from(live));
    assert_eq!(rig.ring_is_untouched(), !live);
});
