//! Layouts and numbers of the HAL, as its headers have them. Enumerations are 4-byte numbers.

use core::mem::{align_of, offset_of, size_of};

/// `halSqCqQueryInfo` and `halSqCqConfigInfo`, which have the same layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SqCqInfo {
    /// Kind of queue: [`NORMAL`].
    pub kind: u32,
    /// Task scheduler, 0.
    pub ts_id: u32,
    /// Submission queue.
    pub sq_id: u32,
    /// Completion queue; 0, properties of a submission queue are found by its id alone.
    pub cq_id: u32,
    /// Property to ask for or to set.
    pub property: u32,
    /// Its value; the last word says on which side of the machine the queue is, 0 for this one.
    pub value: [u32; 8],
}

const _: () = assert!(size_of::<SqCqInfo>() == 52 && align_of::<SqCqInfo>() == 4);
const _: () = assert!(offset_of!(SqCqInfo, property) == 16 && offset_of!(SqCqInfo, value) == 20);

/// `drvResIdKey`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ResourceId {
    /// Device.
    pub device: u32,
    /// Task scheduler, 0.
    pub ts_id: u32,
    /// Kind of resource: [`STREAM`].
    pub kind: u32,
    /// Number of the resource.
    pub id: u32,
    /// 0.
    pub flag: u32,
    /// 0.
    pub reserved: [u32; 3],
}

const _: () = assert!(size_of::<ResourceId>() == 32 && offset_of!(ResourceId, id) == 12);

/// `halReportRecvInfo`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ReportInfo {
    /// Kind of queue: [`LOGIC`].
    pub kind: u32,
    /// Task scheduler, 0.
    pub ts_id: u32,
    /// Logic completion queue.
    pub cq_id: u32,
    /// How long to wait; 0, not at all.
    pub timeout: i32,
    /// Where reports are written to.
    pub reports: *mut Report,
    /// How many fit there.
    pub capacity: u32,
    /// How many were written.
    pub count: u32,
    /// Stream that they are of.
    pub stream_id: u32,
    /// Task that they are of, [`ANY_TASK`] for all.
    pub task_id: u32,
    /// The first word is the version of this call, [`REPORT_VERSION`].
    pub reserved: [u32; 8],
}

const _: () = assert!(size_of::<ReportInfo>() == 72 && align_of::<ReportInfo>() == 8);
const _: () = assert!(offset_of!(ReportInfo, reports) == 16 && offset_of!(ReportInfo, count) == 28);
const _: () = assert!(offset_of!(ReportInfo, task_id) == 36 && offset_of!(ReportInfo, reserved) == 40);

/// A report of a logic completion queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// Stream of the task.
    pub stream_id: u16,
    /// Task, low 16 bits.
    pub task_id: u16,
    /// Code of the engine.
    pub error_code: u32,
    /// What failed in bits 0 to 5; bit 6 is a warning.
    pub error_type: u8,
    /// Kind of descriptor.
    pub sqe_type: u8,
    /// Submission queue.
    pub sq_id: u16,
    /// Head of the queue at that time.
    pub sq_head: u16,
    /// Not read here.
    pub flags: u16,
    /// Not read here.
    pub time: u64,
    /// Not read here.
    pub extra: u64,
}

const _: () = assert!(size_of::<Report>() == 32 && offset_of!(Report, error_code) == 4);
const _: () = assert!(offset_of!(Report, error_type) == 8 && offset_of!(Report, sq_head) == 12);
const _: () = assert!(offset_of!(Report, time) == 16);

/// Kind of queue that kernels fill.
pub const NORMAL: u32 = 0;
/// Kind of queue that reports of one stream come through.
pub const LOGIC: u32 = 2;
/// Kind of resource: a stream.
pub const STREAM: u32 = 0;
/// Reports of all tasks.
pub const ANY_TASK: u32 = 0xffff;
/// With it the HAL writes no more reports than fit.
pub const REPORT_VERSION: u32 = 1;

/// Properties of a submission queue.
pub mod property {
    /// Entry that the device fetches next.
    pub const HEAD: u32 = 1;
    /// Setting it rings the doorbell.
    pub const TAIL: u32 = 2;
    /// Address of the ring in this process: two words, low one first.
    pub const BASE: u32 = 6;
    /// Entries of the ring.
    pub const DEPTH: u32 = 7;
}

/// Codes of the HAL that are handled separately.
pub mod code {
    /// Done.
    pub const OK: i32 = 0;
    /// Nothing came in time.
    pub const TIMEOUT: i32 = 16;
    /// The queue is known, but paused or not valid.
    pub const STATUS: i32 = 30;
}

/// `halSqCqQuery` and `halSqCqConfig`.
pub type SqCqFn = unsafe extern "C" fn(device: u32, info: *mut SqCqInfo) -> i32;
/// `halCqReportRecv`.
pub type ReportFn = unsafe extern "C" fn(device: u32, info: *mut ReportInfo) -> i32;
/// `halResourceIdRestore`.
pub type RestoreFn = unsafe extern "C" fn(id: *mut ResourceId) -> i32;
/// `drvGetLocalDevIDByHostDevID`.
pub type LocalDeviceFn = unsafe extern "C" fn(host_device: u32, local_device: *mut u32) -> i32;
