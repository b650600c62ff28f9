//! A kernel that panics ends alone: what stands around it leaves its frames by a context that it has saved before.
//!
//! Without unwinding nothing of the kernel's own is cleaned up: a lock that it holds stays taken, memory that it owns stays allocated. The process, which
//! other programs use, goes on. An access to bad memory still ends it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

use hcomm_aicpu::MAX_CORES;

use crate::current;

/// Saved stack pointers of the kernels that run, by the place of their threads; 0: none.
static CONTEXTS: [AtomicUsize; MAX_CORES] = [const { AtomicUsize::new(0) }; MAX_CORES];

unsafe extern "C" {
    /// Writes its stack pointer to `context`, calls `run` with `data`, and gives 0; or 1 if [`hcomm_card_guard_leave`] ended the call.
    fn hcomm_card_guard_enter(context: *mut usize, run: extern "C" fn(*mut c_void), data: *mut c_void) -> u32;
    /// Ends the call of [`hcomm_card_guard_enter`] that has written `context`.
    fn hcomm_card_guard_leave(context: usize) -> !;
}

// All registers that a call keeps: x19 to x30, d8 to d15.
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".hidden hcomm_card_guard_enter",
    ".global hcomm_card_guard_enter",
    ".type hcomm_card_guard_enter, %function",
    "hcomm_card_guard_enter:",
    "stp x29, x30, [sp, #-160]!",
    "mov x29, sp",
    "stp x19, x20, [sp, #16]",
    "stp x21, x22, [sp, #32]",
    "stp x23, x24, [sp, #48]",
    "stp x25, x26, [sp, #64]",
    "stp x27, x28, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "mov x9, sp",
    "str x9, [x0]",
    "mov x0, x2",
    "blr x1",
    "mov w0, #0",
    "1:",
    "ldp x19, x20, [sp, #16]",
    "ldp x21, x22, [sp, #32]",
    "ldp x23, x24, [sp, #48]",
    "ldp x25, x26, [sp, #64]",
    "ldp x27, x28, [sp, #80]",
    "ldp d8, d9, [sp, #96]",
    "ldp d10, d11, [sp, #112]",
    "ldp d12, d13, [sp, #128]",
    "ldp d14, d15, [sp, #144]",
    "ldp x29, x30, [sp], #160",
    "ret",
    ".size hcomm_card_guard_enter, . - hcomm_card_guard_enter",
    ".hidden hcomm_card_guard_leave",
    ".global hcomm_card_guard_leave",
    ".type hcomm_card_guard_leave, %function",
    "hcomm_card_guard_leave:",
    "mov sp, x0",
    "mov w0, #1",
    "b 1b",
    ".size hcomm_card_guard_leave, . - hcomm_card_guard_leave",
);

// Not of a card: tests run the library on the machine that they are compiled on.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".hidden hcomm_card_guard_enter",
    ".global hcomm_card_guard_enter",
    ".type hcomm_card_guard_enter, @function",
    "hcomm_card_guard_enter:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "mov [rdi], rsp",
    "mov rdi, rdx",
    "call rsi",
    "xor eax, eax",
    "2:",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".size hcomm_card_guard_enter, . - hcomm_card_guard_enter",
    ".hidden hcomm_card_guard_leave",
    ".global hcomm_card_guard_leave",
    ".type hcomm_card_guard_leave, @function",
    "hcomm_card_guard_leave:",
    "mov rsp, rdi",
    "mov eax, 1",
    "jmp 2b",
    ".size hcomm_card_guard_leave, . - hcomm_card_guard_leave",
);

/// A function and its result.
struct Call<F, T> {
    run: Option<F>,
    result: Option<T>,
}

extern "C" fn call<F: FnOnce() -> T, T>(data: *mut c_void) {
    // SAFETY: `guarded` passes its own `Call`, which nothing else uses while this runs.
    let data = unsafe { &mut *data.cast::<Call<F, T>>() };
    if let Some(run) = data.run.take() {
        data.result = Some(run());
    }
}

/// Runs a kernel on the calling thread, which has a core. `None`: it has panicked.
pub fn guarded<F: FnOnce() -> T, T>(run: F) -> Option<T> {
    let Some(place) = current::place() else { return Some(run()) };
    let mut data = Call { run: Some(run), result: None };
    // SAFETY: the context is a word of this thread's place, which nothing else writes while the thread has a core; `data` lives until the
    // call returns. If the call is left, the frames above are the kernel's: what they own is not used again, here or elsewhere.
    let is_left =
        unsafe { hcomm_card_guard_enter(CONTEXTS[place].as_ptr(), call::<F, T>, (&raw mut data).cast::<c_void>()) };
    CONTEXTS[place].store(0, Ordering::Relaxed);
    if is_left == 0 { data.result } else { None }
}

/// The context of the calling thread's kernel, which has panicked: taken once, so that a panic of the handler itself finds none.
#[cfg_attr(not(feature = "panic-handler"), expect(dead_code, reason = "of the panic handler"))]
pub fn take_context() -> Option<usize> {
    let context = CONTEXTS[current::place()?].swap(0, Ordering::Relaxed);
    (context != 0).then_some(context)
}

/// Leaves the kernel of a context.
///
/// # Safety
/// [`take_context`] has just given it to this thread.
#[cfg_attr(not(feature = "panic-handler"), expect(dead_code, reason = "of the panic handler"))]
pub unsafe fn leave(context: usize) -> ! {
    // SAFETY: `guarded` of this thread is still in its call, so its frame is alive below this one.
    unsafe { hcomm_card_guard_leave(context) }
}
