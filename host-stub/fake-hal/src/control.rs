//! What a test tells the stand-in: functions of the type of a kernel, so that the AI CPU calls them where the kernels run. All take
//! words of 64 bits.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::with_exposed_provenance;

use crate::world::{Queue, Registers, Report, World, begin, world};

/// The first `N` words of the parameters.
fn words<const N: usize>(args: *const c_void) -> [u64; N] {
    // SAFETY: a test owes as many words as the function that it calls takes.
    unsafe { args.cast::<[u64; N]>().read_unaligned() }
}

/// A new world: host device, local device, whether it is an Ascend950, address in HBM, addresses of the functions for head and doorbell
/// (0: registers lie in the memory that has the HBM).
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_begin(args: *const c_void) -> u32 {
    let [host_device, local_device, is_950, hbm, head, ring] = words(args);
    let registers = if head == 0 {
        Registers::of_mapping(hbm)
    } else {
        let (head, ring) = (with_exposed_provenance(head as usize), with_exposed_provenance(ring as usize));
        // SAFETY: a test owes the addresses of its functions `hcomm_port_head` and `hcomm_port_ring`.
        let functions = unsafe {
            Registers::Functions {
                head: transmute::<*const c_void, extern "C" fn(u32, u64, *mut u32) -> i32>(head),
                ring: transmute::<*const c_void, extern "C" fn(u32, u64, u32) -> i32>(ring),
            }
        };
        Some(functions)
    };
    let Some(registers) = registers else { return 1 };
    let (host_device, local_device) = (host_device as u32, local_device as u32);
    begin(World { host_device, local_device, is_950: is_950 != 0, registers, ..World::default() });
    0
}

/// A queue: sq, stream, logic completion queue, base, depth, registers, tail.
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_queue(args: *const c_void) -> u32 {
    let [sq, stream, logic_cq, base, depth, regs, tail] = words(args);
    let (stream, logic_cq, depth, tail) = (stream as u32, logic_cq as u32, depth as u32, tail as u32);
    let queue = Queue { stream, logic_cq, base, depth, regs, is_paused: false, tail, cqe_status: 0 };
    u32::from(world(|world| world.queues.insert(sq as u32, queue)).is_none())
}

/// What the driver answers to a restore.
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_restore(args: *const c_void) -> u32 {
    let [code] = words(args);
    u32::from(world(|world| world.restore_code = code as i32).is_none())
}

/// Pauses a queue, or lets it go on: sq, whether it is paused.
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_pause(args: *const c_void) -> u32 {
    let [sq, is_paused] = words(args);
    let pause = |world: &mut World| world.queues.get_mut(&(sq as u32)).map(|queue| queue.is_paused = is_paused != 0);
    u32::from(world(pause).flatten().is_none())
}

/// The host has reset a queue: it is empty, and stands at its first entry. Argument: sq.
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_reset(args: *const c_void) -> u32 {
    let [sq] = words(args);
    let reset =
        |world: &mut World| world.queues.get_mut(&(sq as u32)).map(|queue| (queue.tail, queue.is_paused) = (0, false));
    u32::from(world(reset).flatten().is_none())
}

/// A task has failed: sq, task, kind of error, code of the engine, kind of descriptor.
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_fail(args: *const c_void) -> u32 {
    let [sq, task, kind, code, sqe_type] = words(args);
    let fail = |world: &mut World| {
        let queue = world.queues.get_mut(&(sq as u32))?;
        queue.cqe_status = 1;
        let mut report: Report = [0; 32];
        report[..2].copy_from_slice(&(queue.stream as u16).to_le_bytes());
        report[2..4].copy_from_slice(&(task as u16).to_le_bytes());
        report[4..8].copy_from_slice(&(code as u32).to_le_bytes());
        (report[8], report[9]) = (kind as u8, sqe_type as u8);
        report[10..12].copy_from_slice(&(sq as u16).to_le_bytes());
        let cq = queue.logic_cq;
        world.reports.entry(cq).or_default().push_back(report);
        Some(())
    };
    u32::from(world(fail).flatten().is_none())
}

/// Writes how often the driver was called: queries, tails, reports, restores. Argument: address of four words.
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_calls(args: *const c_void) -> u32 {
    let [to] = words(args);
    let to = std::ptr::with_exposed_provenance_mut::<[u64; 4]>(to as usize);
    // SAFETY: a test owes four words there.
    u32::from(world(|world| unsafe { to.write_unaligned(world.calls) }).is_none())
}

/// The host has destroyed a queue: the driver no longer has it. Argument: sq.
#[unsafe(no_mangle)]
extern "C-unwind" fn fake_hal_remove(args: *const c_void) -> u32 {
    let [sq] = words(args);
    let remove = |world: &mut World| {
        let queue = world.queues.remove(&(sq as u32))?;
        world.reports.remove(&queue.logic_cq);
        Some(())
    };
    u32::from(world(remove).flatten().is_none())
}
