//! A platform without a core, as outside a launch: nothing but the core may be asked for.

use core::ffi::c_void;

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_core() -> *const c_void {
    core::ptr::null()
}

macro_rules! unreachable_hooks {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)?;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $type),*) $(-> $ret)? {
            panic!("{} called without a core: {:?}", stringify!($name), ($($arg,)*))
        }
    )*};
}

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_refused(_who: *const u8, _who_len: usize, _code: i32, _error: *const c_void) {}

unreachable_hooks! {
    hcomm_port_head(sq_id: u32, regs: u64) -> u32;
    hcomm_port_status(sq_id: u32, regs: u64) -> u32;
    hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32;
    hcomm_port_store_barrier();
    hcomm_port_now_us() -> u64;
    hcomm_port_delay_ns(ns: u32);
}
