//! What ends a kernel out of turn: signals, `exit`, a library that can't be loaded. A record says what and where, and the process
//! ends; the host reads the record.
//!
//! Everything here may run in a signal handler: it takes no lock and allocates nothing.

use std::arch::asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::zeroed;
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hcomm_aicpu::spec::mailbox::{BACKTRACE_LEN, FAULT_STRIDE, FaultKind, FaultRecord, MAX_CORES};
use hcomm_aicpu::spec::map::FAULT_PHYS;
use hcomm_aicpu::spec::runner::NO_CORE;

use crate::{core, memory};

/// Exit status of the process after a record has been written.
const STATUS: c_int = 125;
/// Signals that end a kernel.
const SIGNALS: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];
/// The host asks where the cores are.
const ASK: c_int = libc::SIGUSR1;
/// The main thread asks one core.
const ASK_CORE: c_int = libc::SIGUSR2;
/// Bytes of the stack of handlers.
const ALT_STACK: usize = 64 << 10;

/// A core's thread, and where its stack is.
struct CoreThread {
    thread: AtomicU64,
    low: AtomicUsize,
    high: AtomicUsize,
}

static CORES: [CoreThread; MAX_CORES] =
    [const { CoreThread { thread: AtomicU64::new(0), low: AtomicUsize::new(0), high: AtomicUsize::new(0) } };
        MAX_CORES];

/// A thread without a core has a fault: they share one record.
static HAS_FAULT: AtomicBool = AtomicBool::new(false);

/// Where a thread is.
struct Registers {
    pc: u64,
    sp: u64,
    fp: u64,
    lr: u64,
}

/// Installs the handlers for all threads of the process. Called by the main thread before there is another one: only it takes the
/// question of the host.
pub fn install() {
    for signal in SIGNALS.into_iter().chain([ASK, ASK_CORE]) {
        // SAFETY: the structure is filled in as the call wants it; the handlers keep to what a handler may do.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = match signal {
                ASK => ask,
                ASK_CORE => answer,
                _ => fault,
            };
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, null_mut());
        }
    }
    // SAFETY: the function is there as long as the process.
    unsafe { on_exit(exited, null_mut()) };
}

unsafe extern "C" {
    /// Of the GNU C library: calls `function` with the status and `arg` when the process calls `exit`.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), arg: *mut c_void) -> c_int;
}

/// Prepares the calling thread as that of `core`: its handlers run on a stack of their own, and the host's question goes to the
/// main thread.
pub fn prepare(core: u64) {
    // SAFETY: all structures are this function's; the stack of the handlers is never unmapped.
    unsafe {
        let stack = libc::mmap(
            null_mut(),
            ALT_STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if stack != libc::MAP_FAILED {
            let stack = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: ALT_STACK };
            libc::sigaltstack(&raw const stack, null_mut());
        }
        let mut set: libc::sigset_t = zeroed();
        libc::sigaddset(&raw mut set, ASK);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, null_mut());
        let mut attributes: libc::pthread_attr_t = zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) == 0 {
            let (mut low, mut size) = (null_mut(), 0);
            if libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size) == 0 {
                CORES[core as usize].low.store(low as usize, Ordering::Relaxed);
                CORES[core as usize].high.store(low as usize + size, Ordering::Relaxed);
            }
            libc::pthread_attr_destroy(&raw mut attributes);
        }
        CORES[core as usize].thread.store(libc::pthread_self(), Ordering::Release);
    }
}

/// Return addresses of the caller's frames, innermost first.
pub fn return_addresses(addrs: &mut [u64]) {
    let fp: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, x29", out(reg) fp, options(nomem, nostack, preserves_flags)) };
    walk(core::of_this_thread(), fp, addrs);
}

/// Follows the frame records on the stack of `core`. A thread without a core has none that is known.
fn walk(core: u64, mut fp: u64, addrs: &mut [u64]) {
    addrs.fill(0);
    let Some(thread) = CORES.get(core as usize) else { return };
    let (mut floor, high) = (thread.low.load(Ordering::Relaxed) as u64, thread.high.load(Ordering::Relaxed) as u64);
    for addr in addrs {
        if !fp.is_multiple_of(16) || fp < floor || fp.checked_add(16).is_none_or(|end| end > high) {
            return;
        }
        let frame = with_exposed_provenance::<u64>(fp as usize);
        // SAFETY: both words lie on the stack of the core, which is mapped as long as its thread runs, and that is the caller.
        let (next, lr) = unsafe { (frame.read_volatile(), frame.add(1).read_volatile()) };
        if lr == 0 {
            return;
        }
        *addr = lr;
        (floor, fp) = (fp + 16, next);
    }
}

/// Writes the record of `core`.
fn record(core: u64, kind: FaultKind, signal: u32, code: u64, far: u64, at: &Registers, message: &[u8]) {
    let record = memory::low::<FaultRecord>(FAULT_PHYS + core * FAULT_STRIDE);
    let mut backtrace = [0; BACKTRACE_LEN];
    // The innermost one is not on the stack yet if the function has just begun, or never puts it there.
    walk(core, at.fp, &mut backtrace);
    if at.lr != 0 && backtrace[0] != at.lr {
        backtrace.rotate_right(1);
        backtrace[0] = at.lr;
    }
    // SAFETY: the record stays mapped, and only this thread writes it: each core has one, and of the threads without a core the
    // first one alone comes here (`HAS_FAULT`).
    unsafe {
        (&raw mut (*record).vector).write_volatile(signal);
        (&raw mut (*record).seq).write_volatile(core::running(core));
        (&raw mut (*record).esr).write_volatile(code);
        (&raw mut (*record).far).write_volatile(far);
        (&raw mut (*record).elr).write_volatile(at.pc);
        (&raw mut (*record).sp).write_volatile(at.sp);
        (&raw mut (*record).backtrace).write_volatile(backtrace);
        let room = (&raw mut (*record).message).cast::<u8>();
        let len = message.len().min(384);
        message.as_ptr().copy_to_nonoverlapping(room, len);
        (&raw mut (*record).message_len).write_volatile(len as u32);
        // Pairs with the acquire load of the host.
        AtomicU32::from_ptr(&raw mut (*record).kind.0).store(kind.0, Ordering::Release);
    }
}

/// Ends the process. Other threads may go on for a moment.
fn end() -> ! {
    // SAFETY: neither runs handlers of `exit` nor returns.
    unsafe { libc::_exit(STATUS) }
}

fn registers(context: *mut c_void) -> Registers {
    // SAFETY: the system hands the handler the context that it has interrupted.
    let context = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    Registers { pc: context.pc, sp: context.sp, fp: context.regs[29], lr: context.regs[30] }
}

/// Handler of the signals that end a kernel.
extern "C" fn fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let core = core::of_this_thread();
    if core == NO_CORE && HAS_FAULT.swap(true, Ordering::Relaxed) {
        end();
    }
    let at = registers(context);
    // SAFETY: the system hands the handler what it knows of the signal.
    let (code, far) = unsafe { ((*info).si_code, (*info).si_addr() as u64) };
    let is_guard = |thread: &CoreThread| {
        let low = thread.low.load(Ordering::Relaxed) as u64;
        // The page below, and the pages that glibc counts as part of the stack.
        signal == libc::SIGSEGV && far >= low.saturating_sub(64 << 10) && far < low.saturating_add(64 << 10)
    };
    let message = match CORES.get(core as usize) {
        Some(thread) if is_guard(thread) => b"stack overflow",
        _ if signal == libc::SIGABRT => exception_type(),
        _ => &b""[..],
    };
    record(core, FaultKind::SIGNAL, signal as u32, i64::from(code) as u64, far, &at, message);
    end();
}

/// Mangled name of the type of the C++ exception that was not caught, or nothing.
fn exception_type() -> &'static [u8] {
    // SAFETY: looks a name up; in the handler of `abort`, which the thread itself has called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_current_exception_type".as_ptr()) };
    if found.is_null() {
        return b"";
    }
    /// `std::type_info` of the Itanium ABI.
    #[repr(C)]
    struct TypeInfo {
        vtable: *const c_void,
        name: *const c_char,
    }
    // SAFETY: the C++ runtime's function of this name takes nothing and gives a type or null.
    let info = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *const TypeInfo>(found) }();
    // SAFETY: a type lives as long as its library, and no library is unloaded.
    let Some(info) = (unsafe { info.as_ref() }) else { return b"" };
    // SAFETY: the name of a type is a text that ends with a zero byte.
    unsafe { CStr::from_ptr(info.name) }.to_bytes()
}

/// What `exit` calls.
extern "C" fn exited(status: c_int, _arg: *mut c_void) {
    let core = core::of_this_thread();
    if core == NO_CORE && HAS_FAULT.swap(true, Ordering::Relaxed) {
        end();
    }
    let fp: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, x29", out(reg) fp, options(nomem, nostack, preserves_flags)) };
    let at = Registers { pc: exited as *const () as u64, sp: fp, fp, lr: 0 };
    record(core, FaultKind::EXIT, 0, i64::from(status) as u64, 0, &at, b"");
    end();
}

/// Reports why the calling core can't run its launch, and ends the process.
pub fn load(text: &str) -> ! {
    let at = Registers { pc: 0, sp: 0, fp: 0, lr: 0 };
    record(core::of_this_thread(), FaultKind::LOAD, 0, 0, 0, &at, text.as_bytes());
    end();
}

/// Reports why the process can't begin.
pub fn boot(text: &str) -> ! {
    let at = Registers { pc: 0, sp: 0, fp: 0, lr: 0 };
    record(0, FaultKind::BOOT, 0, 0, 0, &at, text.as_bytes());
    end();
}

/// Handler of the host's question, in the main thread.
extern "C" fn ask(_signal: c_int, _info: *mut libc::siginfo_t, _context: *mut c_void) {
    for (core, thread) in CORES.iter().enumerate() {
        let id = thread.thread.load(Ordering::Acquire);
        if id != 0 && core::running(core as u64) != 0 {
            // SAFETY: the thread of a core never ends.
            unsafe { libc::pthread_kill(id, ASK_CORE) };
        }
    }
}

/// Handler of the question to one core.
extern "C" fn answer(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    let core = core::of_this_thread();
    if core != NO_CORE {
        record(core, FaultKind::PLACE, 0, 0, 0, &registers(context), b"");
    }
}

/// The main thread waits here for questions, for as long as the process lives.
pub fn wait() -> ! {
    loop {
        // SAFETY: returns after a handler has run.
        unsafe { libc::pause() };
    }
}
