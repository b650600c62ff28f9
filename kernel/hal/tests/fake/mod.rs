//! A strict stand-in for the HAL, under the names of its functions. It decodes by byte offset from the vendor's headers, not by
//! the types of the crate, and refuses what the driver refuses.
#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

/// The device as the host counts it, and as this process does: they must not be mixed up.
pub const HOST_DEVICE: u32 = 5;
pub const LOCAL_DEVICE: u32 = 2;

/// A queue of the stand-in.
#[derive(Clone, Debug)]
pub struct FakeQueue {
    pub base: u64,
    pub depth: u32,
    pub head: u32,
    pub tail: u32,
    pub paused: bool,
    /// Every tail that the doorbell took.
    pub rung: Vec<u32>,
}

/// A report: 32 bytes.
pub type FakeReport = [u8; 32];

#[derive(Debug, Default)]
pub struct State {
    pub queues: BTreeMap<u32, FakeQueue>,
    /// Reports by logic completion queue and stream.
    pub reports: BTreeMap<(u32, u32), VecDeque<FakeReport>>,
    /// What `halResourceIdRestore` answers.
    pub restore_code: i32,
    /// Streams that were restored.
    pub restored: Vec<u32>,
    /// Answers one report more than it was asked for.
    pub overfull: bool,
    /// Never runs out of reports.
    pub endless: bool,
    /// Calls of `halCqReportRecv`.
    pub report_calls: u32,
    /// Calls of `halSqCqConfig`.
    pub config_calls: u32,
    /// Code that every query answers.
    pub query_code: i32,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static TURN: Mutex<()> = Mutex::new(());

/// One test at a time has the process's HAL.
pub struct Turn(MutexGuard<'static, ()>);

/// Takes the HAL, with one queue: sq 9 of stream 17, logic completion queue 4.
pub fn take() -> Turn {
    let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let queue = FakeQueue { base: 0x7f12_3456_7000, depth: 2048, head: 3, tail: 2047, paused: false, rung: Vec::new() };
    let state = State { queues: BTreeMap::from([(9, queue)]), ..State::default() };
    *STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(state);
    Turn(turn)
}

impl Turn {
    /// Reads or changes the stand-in.
    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        state(change)
    }

    /// Reads or changes the queue.
    pub fn queue<T>(&self, change: impl FnOnce(&mut FakeQueue) -> T) -> T {
        state(|state| change(state.queues.get_mut(&9).unwrap()))
    }
}

pub fn state<T>(change: impl FnOnce(&mut State) -> T) -> T {
    change(STATE.lock().unwrap().as_mut().expect("a test has taken the HAL"))
}

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
}

const INVALID_DEVICE: i32 = 2;
const INVALID_VALUE: i32 = 3;
const TIMEOUT: i32 = 16;
const STATUS: i32 = 30;

/// A property of a submission queue: type@0 tsId@4 sqId@8 cqId@12 prop@16 value[8]@20.
#[unsafe(no_mangle)]
extern "C" fn halSqCqQuery(device: u32, info: *mut u8) -> i32 {
    let words = Words(info);
    if device != LOCAL_DEVICE {
        return INVALID_DEVICE;
    }
    // Type NORMAL, scheduler 0, this side of the machine.
    if words.get(0) != 0 || words.get(4) != 0 || words.get(48) != 0 {
        return INVALID_VALUE;
    }
    state(|state| {
        if state.query_code != 0 {
            return state.query_code;
        }
        let Some(queue) = state.queues.get(&words.get(8)) else { return INVALID_VALUE };
        match words.get(16) {
            1 => words.set(20, queue.head),
            2 => words.set(20, queue.tail),
            6 => {
                words.set(20, queue.base as u32);
                words.set(24, (queue.base >> 32) as u32);
            }
            7 => words.set(20, queue.depth),
            _ => return INVALID_VALUE,
        }
        0
    })
}

/// Same argument; a paused queue takes no tail, and a tail lies inside the ring.
#[unsafe(no_mangle)]
extern "C" fn halSqCqConfig(device: u32, info: *mut u8) -> i32 {
    let words = Words(info);
    if device != LOCAL_DEVICE {
        return INVALID_DEVICE;
    }
    let others = [0, 4, 12, 24, 28, 32, 36, 40, 44, 48];
    if words.get(16) != 2 || others.iter().any(|&at| words.get(at) != 0) {
        return INVALID_VALUE;
    }
    state(|state| {
        state.config_calls += 1;
        let Some(queue) = state.queues.get_mut(&words.get(8)) else { return INVALID_VALUE };
        let tail = words.get(20);
        if queue.paused {
            return STATUS;
        } else if tail >= queue.depth {
            return INVALID_VALUE;
        }
        queue.tail = tail;
        queue.rung.push(tail);
        0
    })
}

/// type@0 tsId@4 cqId@8 timeout@12 cqe_addr@16 cqe_num@24 report_cqe_num@28 stream_id@32 task_id@36 res[8]@40.
#[unsafe(no_mangle)]
extern "C" fn halCqReportRecv(device: u32, info: *mut u8) -> i32 {
    let words = Words(info);
    if device != LOCAL_DEVICE {
        return INVALID_DEVICE;
    }
    // Type LOGIC, scheduler 0, no waiting, every task, the version that never writes too much.
    let is_right = words.get(0) == 2
        && words.get(4) == 0
        && words.get(12) == 0
        && words.get(36) == 0xffff
        && words.get(40) == 1
        && (44..72).step_by(4).all(|at| words.get(at) == 0);
    if !is_right {
        return INVALID_VALUE;
    }
    state(|state| {
        state.report_calls += 1;
        let key = (words.get(8), words.get(32));
        let (endless, overfull) = (state.endless, state.overfull);
        let Some(reports) = state.reports.get_mut(&key) else { return TIMEOUT };
        let capacity = words.get(24) as usize;
        let address = u64::from(words.get(16)) | u64::from(words.get(20)) << 32;
        let count = if endless { capacity } else { reports.len().min(capacity) };
        if count == 0 {
            return TIMEOUT;
        }
        for index in 0..count {
            let report = if endless { reports[0] } else { reports.pop_front().unwrap() };
            let to = (address as usize + index * 32) as *mut FakeReport;
            // SAFETY: the caller has room for `capacity` reports of 32 bytes there.
            unsafe { to.write_unaligned(report) };
        }
        words.set(28, count as u32 + u32::from(overfull));
        0
    })
}

#[unsafe(no_mangle)]
extern "C" fn drvGetLocalDevIDByHostDevID(host_device: u32, local_device: *mut u32) -> i32 {
    if host_device != HOST_DEVICE {
        return INVALID_DEVICE;
    }
    // SAFETY: the caller passes a number to write to.
    unsafe { local_device.write(LOCAL_DEVICE) };
    0
}

/// ruDevId@0 tsId@4 resType@8 resId@12 flag@16 rsv[3]@20.
pub fn restore(key: *mut u8) -> i32 {
    let words = Words(key);
    let others = [4, 8, 16, 20, 24, 28];
    if words.get(0) != LOCAL_DEVICE || others.iter().any(|&at| words.get(at) != 0) {
        return INVALID_VALUE;
    }
    state(|state| {
        state.restored.push(words.get(12));
        state.restore_code
    })
}
