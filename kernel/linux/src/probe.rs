//! Probes for the first hour on a card: what each tells, and what to do then, is in docs/card.md.
//!
//! A to C use no thread of the library, change nothing but their words, and write what they find as it is: they are for
//! the cases in which the rest does not work. D and E queue one task each.

use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicU64, Ordering};

use hcomm_aicpu::spec::card::{CARD_VERSION, CardProbe, CardProbeTask, CardStatus, PROBE_MAGIC, PROBE_WORDS};
use hcomm_aicpu::spec::code::HCCL_SUCCESS;
use hcomm_aicpu::spec::params::check;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{Error, Peer, Thread};
use hcomm_hal::abi::{LocalDeviceFn, NORMAL, ResourceId, RestoreFn, STREAM, SqCqFn, SqCqInfo, property};
use hcomm_hal::weak_address;

use crate::launch::{finish, launch, read_params};

/// The words of a probe, filled from the first one on.
struct Words {
    to: *mut u64,
    used: usize,
}

impl Words {
    fn new(probe: &CardProbe) -> Self {
        let mut words = Self { to: with_exposed_provenance_mut(probe.words.0 as usize), used: 0 };
        words.add(PROBE_MAGIC);
        words
    }

    fn add(&mut self, word: u64) {
        if self.used < PROBE_WORDS && !self.to.is_null() {
            // SAFETY: the host owes as many words there, which nothing else writes (`CardProbe::words`).
            unsafe { self.to.add(self.used).write_unaligned(word) };
        }
        self.used += 1;
    }

    /// A code of the driver, with its sign.
    fn add_code(&mut self, code: i32) {
        self.add(i64::from(code) as u64);
    }
}

/// Stands for the code of a function that is not there.
const MISSING: i32 = i32::MIN;

fn done(probe: &CardProbe) -> u32 {
    finish(probe.status, CardStatus { version: CARD_VERSION, ..CardStatus::NEW })
}

/// Loading and calling: writes its words, a line of the log, and returns 0. Words: magic; version; calls of this probe in the process,
/// this one included; counter of the core.
#[unsafe(no_mangle)]
extern "C-unwind" fn probe_a_start(args: *const c_void) -> u32 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // SAFETY: who launches a kernel owes null or parameters; `read_params` checks whose.
    let Some(probe) = (unsafe { read_params::<CardProbe>("probe_a_start", args) }) else { return 1 };
    let mut words = Words::new(&probe);
    words.add(CARD_VERSION.into());
    let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    words.add(calls);
    words.add(counter().0);
    log::info!("probe_a_start: call {calls}");
    done(&probe)
}

/// The process. Words: magic; counter and its frequency; a bit for each function of [`names`] that is there; page size, HWCAP, HWCAP2
/// (0: no C library); MIDR of the core (0: not readable); first 8 characters of the version of the C library; process id;
/// code and kind of process of `drvQueryProcessHostPid`; code and local id of the device; code and value of its cores, of
/// all of them, and of those in use.
#[unsafe(no_mangle)]
extern "C-unwind" fn probe_b_process(args: *const c_void) -> u32 {
    // SAFETY: as above.
    let Some(probe) = (unsafe { read_params::<CardProbe>("probe_b_process", args) }) else { return 1 };
    let mut words = Words::new(&probe);
    let (count, frequency) = counter();
    words.add(count);
    words.add(frequency);
    words.add(names().iter().enumerate().fold(0, |bits, (bit, address)| bits | u64::from(*address != 0) << bit));
    let [page_size, hwcap, hwcap2] = [6, 16, 26].map(auxiliary);
    words.add(page_size);
    words.add(hwcap);
    words.add(hwcap2);
    words.add(midr(hwcap));
    words.add(libc_version());
    let pid = process_id();
    words.add(pid.into());
    let (code, kind) = process_kind(pid);
    words.add_code(code);
    words.add(kind.into());
    let (code, device) = local_device(probe.host_device);
    words.add_code(code);
    words.add(device.into());
    for info in [3, 20, 21] {
        let (code, value) = device_info(device, info);
        words.add_code(code);
        words.add(value as u64);
    }
    done(&probe)
}

/// The queue. Words: magic; code and local id of the device; codes of the first and the second `halResourceIdRestore`; then
/// code and value of BASE, DEPTH, HEAD, TAIL, SQE_SIZE and STATUS.
#[unsafe(no_mangle)]
extern "C-unwind" fn probe_c_queue(args: *const c_void) -> u32 {
    // SAFETY: as above.
    let Some(probe) = (unsafe { read_params::<CardProbe>("probe_c_queue", args) }) else { return 1 };
    let mut words = Words::new(&probe);
    let (code, device) = local_device(probe.host_device);
    words.add_code(code);
    words.add(device.into());
    words.add_code(restore(device, probe.stream));
    words.add_code(restore(device, probe.stream));
    for property in [property::BASE, property::DEPTH, property::HEAD, property::TAIL, SQE_SIZE, STATUS] {
        let (code, value) = query(device, probe.sq, property);
        words.add_code(code);
        words.add(value);
    }
    done(&probe)
}

/// Bytes of an entry, and state of the queue: only this probe asks for them.
const SQE_SIZE: u32 = 13;
const STATUS: u32 = 0;

/// One task: records a notify. Parameters: those of [`launch()`], and [`CardProbeTask`].
#[unsafe(no_mangle)]
extern "C-unwind" fn probe_d_notify(args: *const c_void) -> u32 {
    let record = |task: &CardProbeTask| {
        let thread = Thread::from_handle(ThreadHandle(task.thread))?;
        thread.notify_record(Peer::from_handle(ThreadHandle(task.peer))?, task.notify)
    };
    // SAFETY: who launches a kernel owes null or parameters.
    unsafe { launch("probe_d_notify", args, |own, size| with_task(own, size, record)) }
}

/// Two tasks: copies 64 bytes, and records a notify. Parameters as for [`probe_d_notify`].
#[unsafe(no_mangle)]
extern "C-unwind" fn probe_e_copy(args: *const c_void) -> u32 {
    let copy = |task: &CardProbeTask| {
        let thread = Thread::from_handle(ThreadHandle(task.thread))?;
        thread.local_copy(task.dst, task.src, 64)?;
        thread.notify_record(Peer::from_handle(ThreadHandle(task.peer))?, task.notify)
    };
    // SAFETY: as above.
    unsafe { launch("probe_e_copy", args, |own, size| with_task(own, size, copy)) }
}

/// # Errors
/// The parameters are no [`CardProbeTask`]; those of `run`.
fn with_task(
    own: *const c_void,
    size: u64,
    run: impl FnOnce(&CardProbeTask) -> Result<(), Error>,
) -> Result<i32, Error> {
    let expected = size_of::<CardProbeTask>() as u64;
    if size != expected {
        return Err(hcomm_aicpu::spec::params::ParamsError::BadSize { found: size, expected }.into());
    }
    // SAFETY: the launch has so many bytes of parameters (`launch`), and any bytes are a `CardProbeTask`.
    let task = unsafe { own.cast::<CardProbeTask>().read_unaligned() };
    check::<CardProbeTask>(&task.header)?;
    run(&task).map(|()| HCCL_SUCCESS)
}

/// Addresses of the functions that a library may use, in the order of the bits that [`probe_b_process`] writes.
fn names() -> [usize; 13] {
    [
        weak_address!("halSqCqQuery"),
        weak_address!("halSqCqConfig"),
        weak_address!("halCqReportRecv"),
        weak_address!("halResourceIdRestore"),
        weak_address!("halResourceIdCheck"),
        weak_address!("halResourceIdInfoGet"),
        weak_address!("drvGetLocalDevIDByHostDevID"),
        weak_address!("drvQueryProcessHostPid"),
        weak_address!("halGetDeviceInfo"),
        weak_address!("halSqTaskSend"),
        weak_address!("_ZN5aicpu8GetSqeIdEjRjS0_"),
        weak_address!("DlogRecord"),
        weak_address!("CheckLogLevel"),
    ]
}

/// The function at an address that is not 0.
macro_rules! function {
    ($name:literal, $kind:ty) => {{
        let address = weak_address!($name);
        // SAFETY: Option of a function pointer has the layout of an address in which 0 is None. What defines the name gives it this
        // type in its header.
        unsafe { transmute::<usize, Option<$kind>>(address) }
    }};
}

fn local_device(host_device: u32) -> (i32, u32) {
    let mut device = 0;
    let Some(local) = function!("drvGetLocalDevIDByHostDevID", LocalDeviceFn) else { return (MISSING, 0) };
    // SAFETY: writes the one number.
    (unsafe { local(host_device, &raw mut device) }, device)
}

fn restore(device: u32, stream: u32) -> i32 {
    let mut id = ResourceId { device, kind: STREAM, id: stream, ..ResourceId::default() };
    let Some(restore) = function!("halResourceIdRestore", RestoreFn) else { return MISSING };
    // SAFETY: `id` is its whole argument.
    unsafe { restore(&raw mut id) }
}

fn query(device: u32, sq: u32, property: u32) -> (i32, u64) {
    let mut info = SqCqInfo { kind: NORMAL, sq_id: sq, property, ..SqCqInfo::default() };
    let Some(query) = function!("halSqCqQuery", SqCqFn) else { return (MISSING, 0) };
    // SAFETY: `info` is its whole argument.
    let code = unsafe { query(device, &raw mut info) };
    (code, u64::from(info.value[0]) | u64::from(info.value[1]) << 32)
}

type HostPidFn = unsafe extern "C" fn(i32, *mut u32, *mut u32, *mut u32, *mut u32) -> i32;
type DeviceInfoFn = unsafe extern "C" fn(u32, i32, i32, *mut i64) -> i32;
type AuxiliaryFn = unsafe extern "C" fn(u64) -> u64;
type VersionFn = unsafe extern "C" fn() -> *const u8;

/// Code of the driver, and 0 for the scheduler of kernels, 1 for that of users' own operators.
fn process_kind(pid: u32) -> (i32, u32) {
    let (mut chip, mut vf, mut host_pid, mut kind) = (0, 0, 0, 0);
    let Some(ask) = function!("drvQueryProcessHostPid", HostPidFn) else { return (MISSING, 0) };
    // SAFETY: writes the four numbers.
    let code = unsafe { ask(pid as i32, &raw mut chip, &raw mut vf, &raw mut host_pid, &raw mut kind) };
    (code, kind)
}

/// What the driver says of the AI CPUs (module 1).
fn device_info(device: u32, info: i32) -> (i32, i64) {
    let mut value = 0;
    let Some(ask) = function!("halGetDeviceInfo", DeviceInfoFn) else { return (MISSING, 0) };
    // SAFETY: writes the one number.
    (unsafe { ask(device, 1, info, &raw mut value) }, value)
}

/// A word that the kernel of Linux has given the process; 0 without a C library.
fn auxiliary(key: u64) -> u64 {
    // SAFETY: takes and gives a number.
    function!("getauxval", AuxiliaryFn).map_or(0, |ask| unsafe { ask(key) })
}

/// First characters of the version of the C library, 0 without one.
fn libc_version() -> u64 {
    let Some(ask) = function!("gnu_get_libc_version", VersionFn) else { return 0 };
    // SAFETY: gives a text that ends with a zero byte and stays.
    let text = unsafe { ask() };
    let mut word = [0; 8];
    for (index, to) in word.iter_mut().enumerate() {
        // SAFETY: no byte behind the zero is read.
        *to = unsafe { text.add(index).read() };
        if *to == 0 {
            break;
        }
    }
    u64::from_le_bytes(word)
}

/// Counter of the core, and its frequency in Hz.
#[cfg(target_arch = "aarch64")]
fn counter() -> (u64, u64) {
    let (count, frequency): (u64, u64);
    // SAFETY: two reads of registers that user space may read on Linux.
    unsafe {
        core::arch::asm!(
            "mrs {count}, cntvct_el0",
            "mrs {frequency}, cntfrq_el0",
            count = out(reg) count,
            frequency = out(reg) frequency,
            options(nomem, nostack, preserves_flags),
        );
    }
    (count, frequency)
}

#[cfg(not(target_arch = "aarch64"))]
fn counter() -> (u64, u64) {
    (0, 0)
}

/// Type of the core. Readable only if HWCAP says so: the kernel of Linux then carries the read out.
#[cfg(target_arch = "aarch64")]
fn midr(hwcap: u64) -> u64 {
    const CPUID: u64 = 1 << 11;
    if hwcap & CPUID == 0 {
        return 0;
    }
    let midr: u64;
    // SAFETY: a read that HWCAP has said to be possible.
    unsafe { core::arch::asm!("mrs {}, midr_el1", out(reg) midr, options(nomem, nostack, preserves_flags)) };
    midr
}

#[cfg(not(target_arch = "aarch64"))]
fn midr(_hwcap: u64) -> u64 {
    0
}

fn process_id() -> u32 {
    let pid: u64;
    // SAFETY: the system call takes nothing, and changes no register but those that are named.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("svc #0", in("x8") 172_u64, lateout("x0") pid, options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") 39_u64 => pid, out("rcx") _, out("r11") _, options(nostack));
    }
    pid as u32
}
