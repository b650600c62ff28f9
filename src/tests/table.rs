//! Look-up of handles in the thread table.

use crate::context::Device;
use crate::error::Error;
use crate::handle::NotifyLook;
use crate::spec::DeviceAddr;
use crate::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadHandle};
use crate::tests::port::{GENERATION, NOTIFY_IDS, TestPort};

fn look_up(device: &Device, handle: ThreadHandle) -> Result<ThreadHandle, Error> {
    Ok(device.queues().shared.table.get().queue_place(handle)?.slot.handle())
}

#[test]
fn every_handle_but_the_live_one_is_refused() {
    let mut port = TestPort::new(4);
    let device = port.device();
    let good = port.handle();
    assert_eq!(look_up(&device, good), Ok(good));
    let unused = port.handle_of(3, GENERATION);
    let bad = [
        u64::MAX,
        1,
        good.0 + 1,
        good.0 + 8,
        good.0 - 63,
        good.0 & 0xffff_ffff_ffff,
        good.0 + (1 << 48),
        good.0 - (1 << 48),
        unused.0,
        port.handle_of(0, GENERATION).0 - 64,
        port.handle_of(4, GENERATION).0,
        port.handle_of(1 << 20, GENERATION).0,
        0x0007_0000_0000_0040,
    ];
    for handle in bad.map(ThreadHandle) {
        assert_eq!(look_up(&device, handle), Err(Error::BadHandle(handle)), "{:#x}", handle.0);
    }
}

#[test]
fn unused_slot_of_zeros_is_refused_in_generation_zero_too() {
    let mut port = TestPort::new(4);
    let device = port.device();
    let zero = port.handle_of(3, 0);
    assert_eq!(look_up(&device, zero), Err(Error::BadHandle(zero)));
}

#[test]
fn tag_of_another_version_or_kind_is_refused() {
    for edit in [|tag: &mut DescriptorTag| tag.version += 1, |tag: &mut DescriptorTag| tag.magic ^= 1] {
        let mut port = TestPort::new(4);
        let device = port.device();
        port.edit_descriptor(|descriptor| edit(&mut descriptor.tag));
        let handle = port.handle();
        assert_eq!(look_up(&device, handle), Err(Error::BadHandle(handle)));
    }
}

#[test]
fn other_engines_are_refused() {
    for engine in [Engine::CPU_TS, Engine(-1), Engine(4), Engine(i32::MAX)] {
        let mut port = TestPort::new(4);
        let device = port.device();
        port.edit_descriptor(|descriptor| descriptor.engine = engine);
        let handle = port.handle();
        let error = look_up(&device, handle).unwrap_err();
        assert_eq!((error, error.code()), (Error::WrongEngine { handle, engine }, 6));
    }
}

#[test]
fn device_without_a_table_refuses_every_handle() {
    let device = Box::new(Device::new());
    for handle in [1, 64, 0x0001_0000_0000_0000, u64::MAX].map(ThreadHandle) {
        assert_eq!(look_up(&device, handle), Err(Error::BadHandle(handle)));
    }
}

/// Case 204.
#[test]
fn descriptor_that_changes_between_two_looks_is_never_mixed() {
    let mut port = TestPort::new(4);
    let device = port.device();
    let handle = port.handle();
    let slot = device.queues().shared.table.get().live(handle).unwrap();
    assert_eq!(slot.notify(2), NotifyLook::Id(NOTIFY_IDS[2]));
    // The slot gets a thread without notifies: neither the old number nor the old address is used.
    port.edit_descriptor(|descriptor| descriptor.notifies = NotifyTable::default());
    assert_eq!(slot.notify(0), NotifyLook::Only(0));
    let (_, generation) = port.next_thread();
    assert_ne!(generation, GENERATION);
    assert!(!slot.is_live(), "what was read after the change does not count");
    assert_eq!(slot.descriptor(), None);
}

#[test]
fn number_of_notifies_has_16_bits() {
    let table = NotifyTable::new(DeviceAddr(0x7fff_ffff_fffc), u16::MAX);
    assert_eq!((table.addr(), table.count()), (DeviceAddr(0x7fff_ffff_fffc), 65_535));
}
