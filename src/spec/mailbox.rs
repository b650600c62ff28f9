//! What host process and device image share besides HBM and queue registers.
//!
//! Every word has one writer. A block's last word to be written (named in its doc) is stored with release order and read
//! with acquire order before the others. All blocks are zero until their writer fills them.

use super::DeviceAddr;

/// Cores that can have a mailbox.
pub const MAX_CORES: usize = 2;
/// Version of everything in this module.
pub const MAILBOX_VERSION: u32 = 5;
/// First word of the boot block, "HCBT".
pub const BOOT_MAGIC: u32 = 0x5442_4348;

/// Written by the host before the image starts.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub struct BootBlock {
    /// [`BOOT_MAGIC`].
    pub magic: u32,
    /// [`MAILBOX_VERSION`].
    pub version: u32,
    /// Device virtual address of HBM: whole GiB, and HBM lies within one 512 GiB range, not the lowest.
    pub hbm_base: DeviceAddr,
    /// Bytes of HBM: a multiple of 2 MiB.
    pub hbm_size: u64,
    /// First thread descriptor: the table lies in HBM, outside its first page, 64-byte aligned.
    pub thread_table: DeviceAddr,
    /// Descriptors in the table, at most [`MAX_THREADS`](super::thread::MAX_THREADS).
    pub thread_slots: u32,
    /// Device type of the SoC whose descriptors are queued, see [`Soc`](super::soc::Soc).
    pub soc: u32,
    /// First entry of the table of [`MAX_COMMS`](super::comm::MAX_COMMS) communicators: in HBM, outside its first page, 8-byte
    /// aligned.
    pub comm_table: DeviceAddr,
    /// Whether the host reads [records of calls](super::record): 1, or 0 for none.
    pub records: u32,
    /// Descriptors in the channel table, at most [`MAX_CHANNELS`](super::channel::MAX_CHANNELS).
    pub channel_slots: u32,
    /// First channel descriptor: the table lies in HBM, outside its first page, aligned to
    /// [`CHANNEL_ALIGN`](super::channel::CHANNEL_ALIGN).
    pub channel_table: DeviceAddr,
}
const _: () = assert!(size_of::<BootBlock>() == 64);

/// Distance between the mailboxes of two cores, in bytes, in both directions.
pub const MAILBOX_STRIDE: u64 = 64;

/// Host to image: one launch. Written last: `seq`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct HostMailbox {
    /// Counts launches from 1. A launch is taken when it differs from `done` of the [`DeviceMailbox`].
    pub seq: u64,
    /// Address of the kernel in the image, as the loader read it from section `.kernels`.
    pub entry: u64,
    /// Argument of the kernel: its parameters, in HBM.
    pub args: DeviceAddr,
}
const _: () = assert!(size_of::<HostMailbox>() as u64 == MAILBOX_STRIDE);

/// Bit of [`DeviceMailbox::left_behind`]: a batch was not ended, and its tasks were dropped.
pub const LEFT_BATCH_OPEN: u32 = 1;

/// Image to host. Written last: `done` for a launch; `sleeping` stands alone.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct DeviceMailbox {
    /// Number of the last launch that ended.
    pub done: u64,
    /// What its kernel returned.
    pub ret: u32,
    /// 1 while the core sleeps and wants a byte on the UART after the mailbox has changed.
    pub sleeping: u32,
    /// [`MAILBOX_VERSION`] once the core takes launches.
    pub ready: u32,
    /// What its kernel left behind: [`LEFT_BATCH_OPEN`] or 0.
    pub left_behind: u32,
    /// Instructions that its kernel executed (PMCCNTR_EL0; exact under `-icount shift=0`).
    pub instructions: u64,
}
const _: () = assert!(size_of::<DeviceMailbox>() as u64 == MAILBOX_STRIDE);

/// Distance between the fault records of two cores, in bytes.
pub const FAULT_STRIDE: u64 = 1024;
/// Return addresses that a fault record has room for.
pub const BACKTRACE_LEN: usize = 16;

/// Kind of a fault. Open: any number read from the record is a valid value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct FaultKind(pub u32);

impl FaultKind {
    /// No fault.
    pub const NONE: Self = Self(0);
    /// CPU exception: `esr`, `far`, `elr`, `spsr` and `vector` tell which.
    pub const EXCEPTION: Self = Self(1);
    /// Rust panic: `message`, `file` and `line` tell which.
    pub const PANIC: Self = Self(2);
    /// The boot block is not one that this image understands: `message` tells why.
    pub const BOOT: Self = Self(3);
    /// Linux runner: signal `vector` with code `esr`, at `elr`, for address `far`. `message` has what more is known.
    pub const SIGNAL: Self = Self(4);
    /// Linux runner: the kernel has called `exit` with status `esr`.
    pub const EXIT: Self = Self(5);
    /// Linux runner: no fault. The host has asked where the core is: at `elr`.
    pub const PLACE: Self = Self(6);
    /// Linux runner: a kernel can't be loaded; `message` tells why.
    pub const LOAD: Self = Self(7);
}

/// Written by a core that cannot continue; the core then stops. Written last: `kind`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct FaultRecord {
    /// What happened.
    pub kind: FaultKind,
    /// Exception vector, 0..16; number of the signal.
    pub vector: u32,
    /// Launch that was running, 0 = none.
    pub seq: u64,
    /// Syndrome.
    pub esr: u64,
    /// Fault address.
    pub far: u64,
    /// Address of the instruction.
    pub elr: u64,
    /// Processor state.
    pub spsr: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Return addresses, innermost first, 0 after the last one. Of an exception, the first may be a stale link register: it
    /// then lies in the function that `elr` is in.
    pub backtrace: [u64; BACKTRACE_LEN],
    /// Line of a panic.
    pub line: u32,
    /// Bytes of `message`.
    pub message_len: u32,
    /// Bytes of `file`.
    pub file_len: u32,
    /// Zero.
    pub reserved: u32,
    /// Text of a panic or of a bad boot block, UTF-8, cut where it does not fit.
    pub message: [u8; 384],
    /// Source file of a panic, UTF-8, cut where it does not fit.
    pub file: [u8; 128],
}
const _: () = assert!(size_of::<FaultRecord>() as u64 <= FAULT_STRIDE);

/// Distance between the rings of refusals of two cores, in bytes.
pub const REFUSAL_STRIDE: u64 = 8192;
/// Slots of a ring of refusals. It holds one refusal less: the core may be writing the slot of the next one.
pub const REFUSALS: usize = 32;
/// 64-bit words that an [`Error`](crate::Error) fits into.
pub const ERROR_WORDS: usize = 5;
/// Return addresses of a refused call that are kept.
pub const REFUSAL_FRAMES: usize = 9;

/// A refused call.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Refusal {
    /// Address of the name of who refused: UTF-8 in the image.
    pub who: u64,
    /// Bytes of the name.
    pub who_len: u64,
    /// The bytes of the [`Error`](crate::Error).
    pub error: [u64; ERROR_WORDS],
    /// Return addresses of the call, innermost first, then 0. The first one is in the code that writes this.
    pub frames: [u64; REFUSAL_FRAMES],
}
const _: () = assert!(size_of::<Refusal>() == 128);

/// Refusals of one core, the newest ones. Written by the core alone. Written last: `head`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct RefusalRing {
    /// Refusals ever. The next one goes to slot `head % REFUSALS`.
    pub head: u64,
    _pad: [u64; 7],
    /// The refusals.
    pub slots: [Refusal; REFUSALS],
}
const _: () = assert!(size_of::<RefusalRing>() as u64 <= REFUSAL_STRIDE);

/// Distance between the log rings of two cores, in bytes.
pub const LOG_STRIDE: u64 = 0x1_0000;
/// Bytes of a log ring's buffer.
pub const LOG_BYTES: usize = 0x1_0000 - 128;

/// Log of one core: a byte ring that holds whole encoded frames. Written last: `head`.
#[repr(C, align(64))]
pub struct LogRing {
    /// Written by the core: bytes ever put in. The next one goes to `head % LOG_BYTES`.
    pub head: u64,
    /// Written by the core: frames that did not fit and were dropped.
    pub dropped: u64,
    _pad: [u64; 6],
    /// Written by the host: bytes ever taken out.
    pub tail: u64,
    _pad2: [u64; 7],
    /// The bytes.
    pub bytes: [u8; LOG_BYTES],
}
const _: () = assert!(size_of::<LogRing>() as u64 == LOG_STRIDE);
