//! From the file of the device's memory to cores that take launches.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::ptr::{null_mut, with_exposed_provenance_mut};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::MAX_CHANNELS;
use hcomm_aicpu::spec::mailbox::{BOOT_MAGIC, BootBlock, MAILBOX_VERSION, MAX_CORES};
use hcomm_aicpu::spec::map::{BOOT_BLOCK_PHYS, HBM_MAX, RECORD_PHYS};
use hcomm_aicpu::spec::record::RecordRing;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::MAX_THREADS;

use crate::memory::{HBM, Hbm};
use crate::platform::DEVICE;
use crate::{core, fault, memory, modules};

/// Bytes of a kernel's stack.
const STACK: usize = 8 << 20;
/// Exit status for a command line that is wrong.
const USAGE: c_int = 2;

/// The runner: serves the device whose memory is the open file with the number `argv[1]`, and does not return unless that is wrong.
///
/// # Safety
/// `argv` has `argc` texts, as the C library hands them to `main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_runner_main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the caller owes `argc` texts.
    let file = (argc == 2).then(|| unsafe { CStr::from_ptr(*argv.add(1)) });
    let Some(file) = file.and_then(|file| file.to_str().ok()?.parse::<RawFd>().ok()) else {
        eprintln!("hcomm-runner: started by the simulated device, with the number of the file of its memory");
        return USAGE;
    };
    if let Err(text) = memory::map_low(file) {
        eprintln!("hcomm-runner: {text}");
        return USAGE;
    }
    let soc = boot(file).unwrap_or_else(|text| fault::boot(&text));
    DEVICE.set_soc(soc);
    fault::install();
    // SAFETY: the stream is the C library's; each line of a kernel is written at once, as on a terminal.
    unsafe { libc::setvbuf(stdout, null_mut(), libc::_IOLBF, 0) };
    modules::update();
    for number in 0..MAX_CORES {
        if let Err(text) = start_core(number) {
            fault::boot(&text);
        }
    }
    core::set_ready();
    fault::wait()
}

unsafe extern "C" {
    /// Standard output of the C library.
    static stdout: *mut libc::FILE;
}

/// Checks the boot block, and gives the device its tables.
fn boot(file: RawFd) -> Result<Soc, String> {
    // SAFETY: mapped; the host wrote it before it started this process and does not change it.
    let boot = unsafe { memory::low::<BootBlock>(BOOT_BLOCK_PHYS).read_volatile() };
    if (boot.magic, boot.version) != (BOOT_MAGIC, MAILBOX_VERSION) {
        return Err(format!(
            "boot block has magic {:#010x} and version {}, not {BOOT_MAGIC:#010x} and {MAILBOX_VERSION}: build runner and program from the same sources",
            boot.magic, boot.version
        ));
    }
    if boot.hbm_size == 0 || boot.hbm_size > HBM_MAX {
        return Err(format!("hbm of {} bytes: must be from 1 to {HBM_MAX}", boot.hbm_size));
    }
    if boot.thread_slots as usize > MAX_THREADS {
        return Err(format!("{} thread slots, at most {MAX_THREADS}", boot.thread_slots));
    }
    let hbm = HBM.get_or_init(|| Hbm::new(file, boot.hbm_base.0, boot.hbm_size));
    hbm.map_steps()?;
    // SAFETY: the host has allocated the table, aligned and inside HBM, whose steps are mapped now and stay so; it owes the rings.
    unsafe { DEVICE.set_thread_table(boot.thread_table, boot.thread_slots as usize) };
    // SAFETY: as above.
    unsafe { DEVICE.set_comm_table(boot.comm_table) };
    if boot.channel_slots as usize > MAX_CHANNELS {
        return Err(format!("{} channel slots, at most {MAX_CHANNELS}", boot.channel_slots));
    }
    // SAFETY: as above; the host owes the work rings that the descriptors name.
    unsafe { DEVICE.set_channel_table(boot.channel_table, boot.channel_slots as usize) };
    if boot.records != 0 {
        let rings = memory::low::<RecordRing>(RECORD_PHYS).expose_provenance() as u64;
        // SAFETY: both rings stay mapped, like the boot block; the host reads them, and stores `tail` atomically.
        unsafe { DEVICE.set_record_rings(DeviceAddr(rings)) };
    }
    Soc::from_device_type(boot.soc).ok_or(format!("unknown SoC device type {}", boot.soc))
}

/// Starts the thread of a core. Not by `std`, which would catch what leaves a kernel and lose where it was thrown.
fn start_core(number: usize) -> Result<(), String> {
    // SAFETY: the structures are this function's; the argument is a number.
    let error = unsafe {
        let mut attributes: libc::pthread_attr_t = zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK);
        let (mut thread, arg) = (zeroed(), with_exposed_provenance_mut(number));
        let error = libc::pthread_create(&raw mut thread, &raw const attributes, run_core, arg);
        libc::pthread_attr_destroy(&raw mut attributes);
        error
    };
    match error {
        0 => Ok(()),
        error => Err(format!("no thread for core {number}: {}", std::io::Error::from_raw_os_error(error))),
    }
}

extern "C" fn run_core(number: *mut c_void) -> *mut c_void {
    let core = number.addr() as u64;
    fault::prepare(core);
    core::serve(core)
}
