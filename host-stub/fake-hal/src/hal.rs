//! The driver's functions. Every one checks its whole argument.
#![allow(non_snake_case, reason = "names of the driver's functions")]

use crate::world::{Queue, Report, World, world};

const OK: i32 = 0;
const INVALID_DEVICE: i32 = 2;
const INVALID_VALUE: i32 = 3;
const TIMEOUT: i32 = 16;
const STATUS_FAIL: i32 = 30;
const NOT_SUPPORTED: i32 = 65534;

/// Words of an argument.
struct Words(*mut u8);

impl Words {
    fn get(&self, at: usize) -> u32 {
        // SAFETY: the caller passes an argument of the size that the header gives it, and `at` is inside.
        unsafe { self.0.add(at).cast::<u32>().read_unaligned() }
    }

    fn set(&self, at: usize, value: u32) {
        // SAFETY: as above.
        unsafe { self.0.add(at).cast::<u32>().write_unaligned(value) }
    }

    fn set64(&self, at: usize, value: u64) {
        self.set(at, value as u32);
        self.set(at + 4, (value >> 32) as u32);
    }

    fn are_zero(&self, mut at: impl Iterator<Item = usize>) -> bool {
        at.all(|at| self.get(at) == 0)
    }
}

/// # Errors
/// The code for another device than the local one, or before there is a world.
fn on_device(device: u32, ask: impl FnOnce(&mut World) -> i32) -> i32 {
    let ask = |world: &mut World| if device == world.local_device { ask(world) } else { INVALID_DEVICE };
    world(ask).unwrap_or(INVALID_DEVICE)
}

/// Properties of a submission queue that can be asked for.
mod property {
    pub const STATUS: u32 = 0;
    pub const HEAD: u32 = 1;
    pub const TAIL: u32 = 2;
    pub const CQE_STATUS: u32 = 4;
    pub const REG_BASE: u32 = 5;
    pub const BASE: u32 = 6;
    pub const DEPTH: u32 = 7;
    pub const PAUSE: u32 = 8;
    pub const RESUME: u32 = 10;
    pub const RESET: u32 = 11;
    pub const SQE_SIZE: u32 = 13;
}

/// type@0 tsId@4 sqId@8 cqId@12 prop@16 value[8]@20, of which the last says on which side the queue is: 0, this one.
#[unsafe(no_mangle)]
extern "C" fn halSqCqQuery(device: u32, info: *mut u8) -> i32 {
    let words = Words(info);
    on_device(device, |world| {
        world.calls[0] += 1;
        let registers = world.registers;
        if !words.are_zero([0, 4, 48].into_iter()) {
            return INVALID_VALUE;
        }
        let (sq, is_950) = (words.get(8), world.is_950);
        let Some(queue) = world.queues.get_mut(&sq) else { return INVALID_VALUE };
        match words.get(16) {
            property::STATUS => words.set(20, u32::from(!queue.is_paused)),
            property::HEAD => match registers.head(sq, queue.regs) {
                Some(head) => words.set(20, head),
                None => return NOT_SUPPORTED,
            },
            property::TAIL => words.set(20, queue.tail),
            property::CQE_STATUS => words.set(20, std::mem::take(&mut queue.cqe_status)),
            property::BASE => words.set64(20, queue.base),
            property::DEPTH => words.set(20, queue.depth),
            property::SQE_SIZE => words.set(20, 64),
            property::REG_BASE if is_950 => return NOT_SUPPORTED,
            _ => return INVALID_VALUE,
        }
        OK
    })
}

/// The same argument.
#[unsafe(no_mangle)]
extern "C" fn halSqCqConfig(device: u32, info: *mut u8) -> i32 {
    let words = Words(info);
    on_device(device, |world| {
        world.calls[1] += 1;
        let registers = world.registers;
        if !words.are_zero([0, 4, 12].into_iter().chain((24..52).step_by(4))) {
            return INVALID_VALUE;
        }
        let sq = words.get(8);
        let Some(queue) = world.queues.get_mut(&sq) else { return INVALID_VALUE };
        match words.get(16) {
            property::TAIL => set_tail(queue, registers, sq, words.get(20)),
            property::PAUSE => {
                queue.is_paused = true;
                OK
            }
            property::RESUME => {
                queue.is_paused = false;
                OK
            }
            property::RESET => {
                (queue.tail, queue.is_paused) = (0, false);
                OK
            }
            _ => NOT_SUPPORTED,
        }
    })
}

fn set_tail(queue: &mut Queue, registers: crate::world::Registers, sq: u32, tail: u32) -> i32 {
    if queue.is_paused {
        STATUS_FAIL
    } else if tail >= queue.depth {
        INVALID_VALUE
    } else if registers.ring(sq, queue.regs, tail) {
        queue.tail = tail;
        OK
    } else {
        NOT_SUPPORTED
    }
}

/// type@0 tsId@4 cqId@8 timeout@12 cqe_addr@16 cqe_num@24 report_cqe_num@28 stream_id@32 task_id@36 res[8]@40.
#[unsafe(no_mangle)]
extern "C" fn halCqReportRecv(device: u32, info: *mut u8) -> i32 {
    let words = Words(info);
    on_device(device, |world| {
        world.calls[2] += 1;
        // Type LOGIC, scheduler 0, no waiting, every task, the version that never writes too much.
        let is_right = words.get(0) == 2
            && words.get(36) == 0xffff
            && words.get(40) == 1
            && words.are_zero([4, 12].into_iter().chain((44..72).step_by(4)));
        let (cq, stream) = (words.get(8), words.get(32));
        let is_its = world.queues.values().any(|queue| queue.logic_cq == cq && queue.stream == stream);
        if !is_right || !is_its {
            return INVALID_VALUE;
        }
        let Some(reports) = world.reports.get_mut(&cq) else { return TIMEOUT };
        let count = reports.len().min(words.get(24) as usize);
        if count == 0 {
            return TIMEOUT;
        }
        let to = u64::from(words.get(16)) | u64::from(words.get(20)) << 32;
        for (index, report) in reports.drain(..count).enumerate() {
            let to = std::ptr::with_exposed_provenance_mut::<Report>(to as usize + index * size_of::<Report>());
            // SAFETY: the caller has room for as many reports of 32 bytes as it says.
            unsafe { to.write_unaligned(report) };
        }
        words.set(28, count as u32);
        OK
    })
}

/// ruDevId@0 tsId@4 resType@8 resId@12 flag@16 rsv[3]@20: a stream that has a queue.
#[unsafe(no_mangle)]
extern "C" fn halResourceIdRestore(key: *mut u8) -> i32 {
    let words = Words(key);
    on_device(words.get(0), |world| {
        world.calls[3] += 1;
        let is_known = world.queues.values().any(|queue| queue.stream == words.get(12));
        let is_right = words.are_zero([4, 8, 16, 20, 24, 28].into_iter());
        if is_right && is_known { world.restore_code } else { INVALID_VALUE }
    })
}

#[unsafe(no_mangle)]
extern "C" fn drvGetLocalDevIDByHostDevID(host_device: u32, local_device: *mut u32) -> i32 {
    let local = world(|world| (world.host_device == host_device).then_some(world.local_device)).flatten();
    let Some(local) = local.filter(|_| !local_device.is_null()) else { return INVALID_DEVICE };
    // SAFETY: not null, so the caller passes a number to write to.
    unsafe { local_device.write(local) };
    OK
}

/// Fills every output, as the driver does: the process is that of the scheduler of kernels.
#[unsafe(no_mangle)]
extern "C" fn drvQueryProcessHostPid(
    pid: i32,
    chip: *mut u32,
    vf: *mut u32,
    host_pid: *mut u32,
    kind: *mut u32,
) -> i32 {
    if pid as u32 != std::process::id() {
        return INVALID_VALUE;
    }
    for (to, value) in [(chip, 0), (vf, 0), (host_pid, 1), (kind, 0)] {
        if to.is_null() {
            return INVALID_VALUE;
        }
        // SAFETY: not null, so the caller passes a number to write to.
        unsafe { to.write(value) };
    }
    OK
}

/// Module 1 alone; an Ascend950 does not know its number of cores from this side.
#[unsafe(no_mangle)]
extern "C" fn halGetDeviceInfo(device: u32, module: i32, info: i32, value: *mut i64) -> i32 {
    on_device(device, |world| {
        let found = match (module, info) {
            (1, 3) if !world.is_950 => 6,
            (1, 20) => 6,
            (1, 21) => 0x1f8,
            _ => return INVALID_VALUE,
        };
        if value.is_null() {
            return INVALID_VALUE;
        }
        // SAFETY: not null, so the caller passes a number to write to.
        unsafe { value.write(found) };
        OK
    })
}
