//! A kernel that panics: the reason goes to log and status, and the launch ends with an error.

use core::arch::asm;
use core::panic::PanicInfo;

use crate::{guard, platform};

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Some(context) = guard::take_context() {
        log::error!("{info}");
        platform::note_panic(info);
        // SAFETY: of this thread, and taken just now.
        unsafe { guard::leave(context) }
    }
    // Not in a kernel: nothing above could go on.
    // SAFETY: an instruction that traps, whatever the state: nothing is executed after it.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("brk #1", options(noreturn));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("ud2", options(noreturn));
    }
}
