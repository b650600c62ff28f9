//! What the static library does on a panic, which only a bug of its own can cause: it stops the caller with an exception.

use core::arch::asm;
use core::panic::PanicInfo;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    // The library has no output, and nothing above it could unwind.
    // SAFETY: an instruction that traps, whatever the state: nothing is executed after it.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("brk #1", options(noreturn));
    }
    // SAFETY: an instruction that traps, whatever the state: nothing is executed after it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("ud2", options(noreturn));
    }
}
