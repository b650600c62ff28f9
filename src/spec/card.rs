//! What the host and a library on a card's AI CPU hand to each other: the head of a launch, the parameters of the library's own
//! kernels, and the status of a launch in device memory. Ours; the vendor has no such format.
//!
//! Host and device library are installed separately, so every struct starts with its version, and the address of the status
//! lies at the same place in all versions ([`STATUS_OFFSET`]): a library of another version can still say so.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::DeviceAddr;
use super::params::{KernelParams, ParamsHeader};

/// Version of every struct on this page.
pub const CARD_VERSION: u32 = 1;
/// Threads that a library can have.
pub const CARD_THREADS: usize = 64;
/// Notifies that a thread can have.
pub const CARD_NOTIFIES: usize = 64;
/// Bytes of the text in a status.
pub const REASON_MAX: usize = 184;
/// Offset of the status' address in the parameters of every launch, in every version.
pub const STATUS_OFFSET: usize = size_of::<ParamsHeader>();

/// Head of the parameters of a launch. The kernel's own parameters follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CardLaunch {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// A [`CardStatus`] in device memory, aligned to 8 bytes, which the host has set to zero.
    pub status: DeviceAddr,
    /// Bytes of the kernel's own parameters.
    pub params_size: u64,
    /// Threads that the kernel may use: a bit for each slot of the library's table ([`CardStatus::slot`]).
    pub threads: u64,
    /// Handle of the thread on which the end notify is recorded if the kernel fails, 0: on none.
    pub end_thread: u64,
    /// Handle of the thread that has the end notify.
    pub end_peer: u64,
    /// Index of the end notify.
    pub end_notify: u32,
    /// How long a call waits for room in a full queue, in milliseconds, rounded up to whole seconds; 0: for one second. A kernel
    /// must return: other programs use the process.
    pub timeout_ms: u32,
}
const _: () = assert!(size_of::<CardLaunch>() == 64);
const _: () = assert!(core::mem::offset_of!(CardLaunch, status) == STATUS_OFFSET);

impl KernelParams for CardLaunch {
    const MAGIC: u32 = u32::from_le_bytes(*b"HCLN");
    const VERSION: u32 = CARD_VERSION;
}

/// Parameters of `hcomm_card_init`: makes a thread known to the library. Its handle and slot are in the status then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CardInit {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// As in [`CardLaunch`].
    pub status: DeviceAddr,
    /// Device type of the chip ([`Soc`](super::soc::Soc)); the same for all threads of a library.
    pub soc: u32,
    /// Device, as the host counts it.
    pub host_device: u32,
    /// [`Engine`](super::thread::Engine): AICPU_TS, or CPU_TS for a thread of the host, which has notifies and no queue.
    pub engine: i32,
    /// Stream (`aclrtStreamGetId`).
    pub stream: u32,
    /// Submission queue (`rtStreamGetSqid`); 0 without a queue.
    pub sq: u32,
    /// Completion queue (`rtStreamGetCqid`, the first number); 0 without a queue.
    pub cq: u32,
    /// Logic completion queue (`rtStreamGetCqid`, the second number); 0 without a queue.
    pub logic_cq: u32,
    /// Notifies of the thread.
    pub notify_count: u32,
    /// Their ids (`aclrtGetNotifyId`).
    pub notify_ids: [u32; CARD_NOTIFIES],
}
const _: () = assert!(size_of::<CardInit>() == 56 + 4 * CARD_NOTIFIES);

impl KernelParams for CardInit {
    const MAGIC: u32 = u32::from_le_bytes(*b"HCIN");
    const VERSION: u32 = CARD_VERSION;
}

/// Parameters of the library's other kernels: `hcomm_card_report` looks for failed tasks of a thread, `hcomm_card_release` forgets
/// the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CardThread {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// As in [`CardLaunch`].
    pub status: DeviceAddr,
    /// Its handle.
    pub thread: u64,
}
const _: () = assert!(size_of::<CardThread>() == 32);

impl KernelParams for CardThread {
    const MAGIC: u32 = u32::from_le_bytes(*b"HCTH");
    const VERSION: u32 = CARD_VERSION;
}

/// Parameters of the probes A, B and C, which use no thread of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CardProbe {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// As in [`CardLaunch`].
    pub status: DeviceAddr,
    /// [`PROBE_WORDS`] words of 64 bits in device memory, which the host has set to zero and the probe fills.
    pub words: DeviceAddr,
    /// Device, as the host counts it.
    pub host_device: u32,
    /// Stream of the queue that probe C asks for.
    pub stream: u32,
    /// The queue.
    pub sq: u32,
    /// Its logic completion queue.
    pub logic_cq: u32,
}
const _: () = assert!(size_of::<CardProbe>() == 48);

impl KernelParams for CardProbe {
    const MAGIC: u32 = u32::from_le_bytes(*b"HCPR");
    const VERSION: u32 = CARD_VERSION;
}

/// Parameters of the probes D and E, behind a [`CardLaunch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CardProbeTask {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// Handle of the thread whose queue takes the tasks.
    pub thread: u64,
    /// Handle of the thread whose notify is recorded.
    pub peer: u64,
    /// First of the 64 bytes that probe E writes.
    pub dst: DeviceAddr,
    /// First of the 64 bytes that probe E reads.
    pub src: DeviceAddr,
    /// Index of the notify.
    pub notify: u32,
    /// Zero.
    pub reserved: u32,
}
const _: () = assert!(size_of::<CardProbeTask>() == 56);

impl KernelParams for CardProbeTask {
    const MAGIC: u32 = u32::from_le_bytes(*b"HCPT");
    const VERSION: u32 = CARD_VERSION;
}

/// Words that a probe has room for.
pub const PROBE_WORDS: usize = 32;
/// First word of every probe.
pub const PROBE_MAGIC: u64 = u64::from_le_bytes(*b"HCPROBE1");

/// How a launch stands. Open: any number is a valid value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct CardState(pub u32);

impl CardState {
    /// The kernel has not returned.
    pub const PENDING: Self = Self(0);
    /// It has returned, and its result is 0.
    pub const DONE: Self = Self(1);
    /// It has returned with an error, or could not be run.
    pub const FAILED: Self = Self(2);
    /// The library has another version, see [`CardStatus::version`].
    pub const VERSION: Self = Self(3);
}

/// What became of the end notify of a launch. Open: any number is a valid value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct CardEnd(pub u32);

impl CardEnd {
    /// It is the kernel's own to record.
    pub const KERNEL: Self = Self(0);
    /// The kernel has failed, and the library has queued the record.
    pub const RECORDED: Self = Self(1);
    /// No end notify will come: the kernel has failed, and the queue takes no tasks or does not run them.
    pub const NONE: Self = Self(2);
}

/// A task that failed, as the completion queue reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CardTask {
    /// Handle of its thread; 0: no task is known to have failed.
    pub thread: u64,
    /// Low 16 bits of its id.
    pub task: u32,
    /// What failed, 1 to 63.
    pub kind: u32,
    /// Code of the engine.
    pub code: u32,
    /// Kind of its descriptor.
    pub sqe_type: u32,
}
const _: () = assert!(size_of::<CardTask>() == 24);

/// Status of a launch in device memory, aligned to 8 bytes. The library writes `state` last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CardStatus {
    /// How the launch stands.
    pub state: CardState,
    /// [`CARD_VERSION`] of the library.
    pub version: u32,
    /// Result of the kernel, an `HcclResult`.
    pub code: i32,
    /// What became of the end notify.
    pub end: CardEnd,
    /// First failed task of the launch's threads; looked for after an error only.
    pub task: CardTask,
    /// Handle of the new thread, of `hcomm_card_init`.
    pub thread: u64,
    /// Slot of the new thread in the library's table, of `hcomm_card_init`.
    pub slot: u32,
    /// Code of a failed `halResourceIdRestore` that is no error, of `hcomm_card_init`.
    pub restore_code: i32,
    /// Bytes of `reason` that are set.
    pub reason_len: u32,
    /// Zero.
    pub reserved: u32,
    /// First refused call, or why the kernel could not be run: UTF-8, cut off at the end.
    pub reason: [u8; REASON_MAX],
}
const _: () = assert!(size_of::<CardStatus>() == 248);

impl CardStatus {
    /// What the host sets it to.
    pub const NEW: Self = Self {
        state: CardState::PENDING,
        version: 0,
        code: 0,
        end: CardEnd::KERNEL,
        task: CardTask { thread: 0, task: 0, kind: 0, code: 0, sqe_type: 0 },
        thread: 0,
        slot: 0,
        restore_code: 0,
        reason_len: 0,
        reserved: 0,
        reason: [0; REASON_MAX],
    };

    /// The text, without a character that was cut off.
    pub fn reason(&self) -> &str {
        let len = (self.reason_len as usize).min(REASON_MAX);
        let bytes = &self.reason[..len];
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_ends_before_a_cut_character() {
        let mut status = CardStatus { reason_len: 4, ..CardStatus::NEW };
        status.reason[..4].copy_from_slice(b"ab\xc3\xa4");
        assert_eq!(status.reason(), "ab\u{e4}");
        status.reason_len = 3;
        assert_eq!(status.reason(), "ab");
        status.reason_len = u32::MAX;
        assert_eq!(status.reason().len(), REASON_MAX);
    }
}
