//! The platform of this program: C functions that [`export_platform!`](crate::export_platform) defines, or a program in C.

use core::ffi::c_void;

use embedded_hal::delay::DelayNs;

use super::{DoorbellRefused, Platform, QueueId, ReadFailed};
use crate::error::Error;
use crate::spec::queue::QueueStatus;

// C linkage and plain numbers, so that a platform can also be written in C. `include/hcomm/hcomm_platform.h` declares them.
unsafe extern "C" {
    /// What `hcomm_port_set_core` was last given in this thread of execution, null before.
    safe fn hcomm_port_core() -> *const c_void;
    /// Keeps `core` for the calling thread of execution.
    safe fn hcomm_port_set_core(core: *const c_void);
    /// [`Platform::has_queue`]: 0 if it has not.
    safe fn hcomm_port_has_queue(sq_id: u32, regs: u64) -> i32;
    /// [`Platform::head`]: 0, or a code.
    fn hcomm_port_head(sq_id: u32, regs: u64, head: *mut u32) -> i32;
    /// [`Platform::status`]: 0, or a code.
    fn hcomm_port_status(sq_id: u32, regs: u64, status: *mut u64) -> i32;
    /// [`Platform::ring`]: 0, or anything else for a refusal.
    safe fn hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32;
    /// [`Platform::store_barrier`].
    safe fn hcomm_port_store_barrier();
    /// [`Platform::now_us`].
    safe fn hcomm_port_now_us() -> u64;
    /// Waits for at least `ns` nanoseconds. 0: the caller waits for another core of the device.
    safe fn hcomm_port_delay_ns(ns: u32);
    /// A call is refused with `code`: for the log. `who` (UTF-8, not ended by a zero, readable as long as the program runs) names the caller,
    /// `error` (an [`Error`], readable during the call) says why.
    fn hcomm_port_refused(who: *const u8, who_len: usize, code: i32, error: *const c_void);
    /// [`Platform::return_addresses`]: fills up to `count` addresses.
    fn hcomm_port_return_addresses(addrs: *mut u64, count: usize);
}

/// The platform of this program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hooks;

impl Platform for Hooks {
    #[inline]
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        hcomm_port_has_queue(sq_id, regs) != 0
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
        if hcomm_port_ring(queue.sq_id(), queue.regs(), tail) == 0 { Ok(()) } else { Err(DoorbellRefused) }
    }

    #[inline]
    fn store_barrier(&self) {
        hcomm_port_store_barrier();
    }

    #[inline]
    fn now_us(&self) -> u64 {
        hcomm_port_now_us()
    }

    #[inline]
    fn delay(&self) -> impl DelayNs {
        HookDelay
    }

    #[cold]
    #[inline(never)]
    fn refused(&self, who: &'static str, error: &Error) {
        // SAFETY: `who` is a constant of the program and `error` is borrowed for the call, which is what the hook may expect.
        unsafe { hcomm_port_refused(who.as_ptr(), who.len(), error.code(), (&raw const *error).cast()) };
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
        hcomm_port_delay_ns(ns);
    }
}

/// What [`Device::run`](crate::Device::run) has set in this thread of execution, null outside of it.
#[inline(always)]
pub(crate) fn current() -> *const c_void {
    hcomm_port_core()
}

/// Keeps `core` as the [`current`] one.
pub(crate) fn set_current(core: *const c_void) {
    hcomm_port_set_core(core);
}

/// A core waits for another one: a delay of nothing.
#[cfg(not(loom))]
#[cold]
pub(crate) fn relax() {
    hcomm_port_delay_ns(0);
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
            unsafe extern "C" fn hcomm_port_refused(who: *const u8, who_len: usize, _code: i32, error: *const c_void) {
                // SAFETY: the library hands over a `&'static str` in two parts.
                let who = unsafe { ::core::str::from_utf8_unchecked(::core::slice::from_raw_parts(who, who_len)) };
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
