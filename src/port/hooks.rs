//! The platform of this program: C functions that [`export_platform!`](crate::export_platform) defines, or a program in C.

use core::ffi::{c_char, c_void};

use embedded_hal::delay::DelayNs;

use super::{DoorbellRefused, Platform, QueueId, ReadFailed};
use crate::error::Error;
use crate::spec::queue::QueueStatus;

// C linkage and plain numbers, so that a platform can also be written in C: `include/hcomm/hcomm_port.h` is generated from these.
unsafe extern "C" {
    /// What `hcomm_port_set_core` was last given in the calling thread of execution (on bare metal: core), null before.
    pub fn hcomm_port_core() -> *const c_void;
    /// Keeps `core` for the calling thread of execution.
    pub fn hcomm_port_set_core(core: *const c_void);
    /// Whether `regs` of a thread descriptor names the registers of queue `sqId`: 0 if not. Asked before anything else of a queue.
    pub fn hcomm_port_has_queue(sq_id: u32, regs: u64) -> i32;
    /// Entry that the device fetches next, below the depth. 0, or a code if it can't be read: the call then answers HCCL_E_DRV.
    pub fn hcomm_port_head(sq_id: u32, regs: u64, head: *mut u32) -> i32;
    /// Whether the queue takes tasks: HCOMM_QUEUE_ENABLED and so on. 0, or a code as for the head.
    pub fn hcomm_port_status(sq_id: u32, regs: u64, status: *mut u64) -> i32;
    /// The doorbell: the device may run everything before entry `tail`. 0, or anything else for a refusal.
    pub fn hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32;
    /// Makes every store before it visible to the device before any store after it.
    pub fn hcomm_port_store_barrier();
    /// Monotonic time in microseconds.
    pub fn hcomm_port_now_us() -> u64;
    /// Waits for at least `ns` nanoseconds; 0: the caller waits for another core of the device.
    pub fn hcomm_port_delay_ns(ns: u32);
    /// Function `who` (`whoLen` bytes of UTF-8 without a zero byte at the end, readable as long as the program runs) refuses a call
    /// with `code`, for a log; `error` is for hcomm_refusal_text, during the call.
    pub fn hcomm_port_refused(who: *const c_char, who_len: usize, code: i32, error: *const c_void);
    /// Fills the `count` elements of `addrs` with return addresses of the caller, innermost first, then 0. Only asked for while calls
    /// are recorded, which a platform in C can't ask for.
    pub fn hcomm_port_return_addresses(addrs: *mut u64, count: usize);
}

/// The platform of this program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hooks;

impl Platform for Hooks {
    #[inline]
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        // SAFETY: a function of plain numbers, which may be called at any time.
        unsafe { hcomm_port_has_queue(sq_id, regs) != 0 }
    }

    #[inline]
    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        let mut head = 0;
        // SAFETY: `head` is a variable of ours, which the hook may fill during the call.
        match unsafe { hcomm_port_head(queue.sq_id(), queue.regs(), &raw mut head) } {
            0 => Ok(head),
            code => Err(ReadFailed(code)),
        }
    }

    #[inline]
    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        let mut status = 0;
        // SAFETY: `status` is a variable of ours, which the hook may fill during the call.
        match unsafe { hcomm_port_status(queue.sq_id(), queue.regs(), &raw mut status) } {
            0 => Ok(QueueStatus(status)),
            code => Err(ReadFailed(code)),
        }
    }

    #[inline]
    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        // SAFETY: a function of plain numbers; `queue` is one that the platform has.
        match unsafe { hcomm_port_ring(queue.sq_id(), queue.regs(), tail) } {
            0 => Ok(()),
            _ => Err(DoorbellRefused),
        }
    }

    #[inline]
    fn store_barrier(&self) {
        // SAFETY: a function without arguments, which may be called at any time.
        unsafe { hcomm_port_store_barrier() };
    }

    #[inline]
    fn now_us(&self) -> u64 {
        // SAFETY: a function without arguments, which may be called at any time.
        unsafe { hcomm_port_now_us() }
    }

    #[inline]
    fn delay(&self) -> impl DelayNs {
        HookDelay
    }

    #[cold]
    #[inline(never)]
    fn refused(&self, who: &'static str, error: &Error) {
        // SAFETY: `who` is a constant of the program and `error` is borrowed for the call, which is what the hook may expect.
        unsafe { hcomm_port_refused(who.as_ptr().cast(), who.len(), error.code(), (&raw const *error).cast()) };
    }

    #[inline]
    fn return_addresses(&self, addrs: &mut [u64]) {
        // SAFETY: `addrs` is borrowed for the call and has room for as many addresses as its length says.
        unsafe { hcomm_port_return_addresses(addrs.as_mut_ptr(), addrs.len()) };
    }
}

struct HookDelay;

impl DelayNs for HookDelay {
    #[inline]
    fn delay_ns(&mut self, ns: u32) {
        // SAFETY: a function of plain numbers, which may be called at any time.
        unsafe { hcomm_port_delay_ns(ns) };
    }
}

/// What [`Device::run`](crate::Device::run) has set in this thread of execution, null outside of it.
#[inline(always)]
pub(crate) fn current() -> *const c_void {
    // SAFETY: a function without arguments, which may be called at any time.
    unsafe { hcomm_port_core() }
}

/// Keeps `core` as the [`current`] one.
pub(crate) fn set_current(core: *const c_void) {
    // SAFETY: the hook keeps the word and does not look behind it.
    unsafe { hcomm_port_set_core(core) };
}

/// A core waits for another one: a delay of nothing.
#[cfg(not(loom))]
#[cold]
pub(crate) fn relax() {
    // SAFETY: a function of plain numbers, which may be called at any time.
    unsafe { hcomm_port_delay_ns(0) };
}

/// A word for each thread of execution (on bare metal: for each core), for a platform without `std`.
///
/// # Safety
/// `get` gives what `set` was last given in the same thread of execution, and null before that.
pub unsafe trait CurrentCore {
    /// The word.
    fn get() -> *const c_void;
    /// Keeps another word.
    fn set(core: *const c_void);
}

/// Makes a static of a type that implements [`Platform`](crate::port::Platform) this program's platform: defines the C
/// functions that the library calls. Once in a program.
///
/// The current core is kept in a thread-local of `std`. A program without `std` names a type of its own that implements
/// [`CurrentCore`](crate::port::hooks::CurrentCore): `export_platform!(MINE, MyCurrentCore)`.
#[macro_export]
macro_rules! export_platform {
    ($platform:path) => {
        const _: () = {
            std::thread_local! {
                static CURRENT: ::core::cell::Cell<*const ::core::ffi::c_void> =
                    const { ::core::cell::Cell::new(::core::ptr::null()) };
            }
            struct ThreadLocal;
            // SAFETY: a thread-local cell that is null at first, and that `set` alone writes.
            unsafe impl $crate::port::hooks::CurrentCore for ThreadLocal {
                fn get() -> *const ::core::ffi::c_void {
                    CURRENT.get()
                }
                fn set(core: *const ::core::ffi::c_void) {
                    CURRENT.set(core);
                }
            }
            $crate::export_platform!($platform, ThreadLocal);
        };
    };
    ($platform:path, $current:ty) => {
        const _: () = {
            use ::core::ffi::c_void;
            use $crate::port::hooks::{__macro::DelayNs, CurrentCore};
            use $crate::port::{Platform, QueueId};

            // SAFETY of the exported names: the library declares them with these types, and a program has one platform.
            #[unsafe(no_mangle)]
            extern "C" fn hcomm_port_core() -> *const c_void {
                <$current as CurrentCore>::get()
            }

            #[unsafe(no_mangle)]
            extern "C" fn hcomm_port_set_core(core: *const c_void) {
                <$current as CurrentCore>::set(core);
            }

            #[unsafe(no_mangle)]
            extern "C" fn hcomm_port_has_queue(sq_id: u32, regs: u64) -> i32 {
                i32::from(Platform::has_queue(&$platform, sq_id, regs))
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn hcomm_port_head(sq_id: u32, regs: u64, head: *mut u32) -> i32 {
                // SAFETY: the library asks only for queues that `hcomm_port_has_queue` has said yes to.
                let queue = unsafe { QueueId::new_unchecked(sq_id, regs) };
                match Platform::head(&$platform, queue) {
                    Ok(value) => {
                        // SAFETY: the library hands over a variable of its own.
                        unsafe { head.write(value) };
                        0
                    }
                    Err(error) => error.0,
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn hcomm_port_status(sq_id: u32, regs: u64, status: *mut u64) -> i32 {
                // SAFETY: the library asks only for queues that `hcomm_port_has_queue` has said yes to.
                let queue = unsafe { QueueId::new_unchecked(sq_id, regs) };
                match Platform::status(&$platform, queue) {
                    Ok(value) => {
                        // SAFETY: the library hands over a variable of its own.
                        unsafe { status.write(value.0) };
                        0
                    }
                    Err(error) => error.0,
                }
            }

            #[unsafe(no_mangle)]
            extern "C" fn hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32 {
                // SAFETY: the library rings only queues that `hcomm_port_has_queue` has said yes to.
                let queue = unsafe { QueueId::new_unchecked(sq_id, regs) };
                i32::from(Platform::ring(&$platform, queue, tail).is_err())
            }

            #[unsafe(no_mangle)]
            extern "C" fn hcomm_port_store_barrier() {
                Platform::store_barrier(&$platform);
            }

            #[unsafe(no_mangle)]
            extern "C" fn hcomm_port_now_us() -> u64 {
                Platform::now_us(&$platform)
            }

            #[unsafe(no_mangle)]
            extern "C" fn hcomm_port_delay_ns(ns: u32) {
                DelayNs::delay_ns(&mut Platform::delay(&$platform), ns);
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn hcomm_port_refused(
                who: *const ::core::ffi::c_char,
                who_len: usize,
                _code: i32,
                error: *const c_void,
            ) {
                // SAFETY: the library hands over a `&'static str` in two parts.
                let who = unsafe { ::core::slice::from_raw_parts(who.cast(), who_len) };
                // SAFETY: the bytes of a `str`.
                let who = unsafe { ::core::str::from_utf8_unchecked(who) };
                // SAFETY: the library hands over an error that it holds during the call.
                Platform::refused(&$platform, who, unsafe { &*error.cast::<$crate::Error>() });
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn hcomm_port_return_addresses(addrs: *mut u64, count: usize) {
                // SAFETY: the library hands over `count` initialised words that it holds during the call.
                Platform::return_addresses(&$platform, unsafe { ::core::slice::from_raw_parts_mut(addrs, count) });
            }
        };
    };
}

#[doc(hidden)]
pub mod __macro {
    pub use embedded_hal::delay::DelayNs;
}
