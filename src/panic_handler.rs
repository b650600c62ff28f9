//! What the static library does on a panic, which only a bug of its own can cause: it stops the caller with an exception.

use core::arch::asm;
use core::panic::PanicInfo;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    // There is nobody to tell: the library has no output, and unwinding has nowhere to go.
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
