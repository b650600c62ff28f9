//! Return addresses of the calling thread.
//!
//! The C library's unwinder takes a microsecond for a few frames. How far a return address on the stack is from the next one
//! depends on the first alone, unless its function has a frame of variable size: so each distance is looked up once, and kept.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

/// Frames that are looked at, at most.
const MAX_FRAMES: usize = 40;

#[link(name = "gcc_s")]
unsafe extern "C" {
    fn _Unwind_Backtrace(trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// Answers of the function that the unwinder calls.
const GO_ON: c_int = 0;
const STOP: c_int = 5;

/// A frame: its return address, and the address of the stack behind the word that holds it.
#[derive(Clone, Copy, Default)]
struct Frame {
    pc: u64,
    sp: u64,
}

/// What the unwinder tells.
struct Unwound {
    frames: [Frame; MAX_FRAMES],
    count: usize,
    /// Frames that are left out: those before the one with this `sp`, or as many.
    from: From,
}

#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "for processors that keep the address in a register"))]
enum From {
    Sp(u64),
    Skipped(usize),
}

extern "C" fn note(context: *mut c_void, argument: *mut c_void) -> c_int {
    // SAFETY: `unwind` gives its own variable as the argument, and uses it only after the unwinder has returned.
    let unwound = unsafe { &mut *argument.cast::<Unwound>() };
    // SAFETY: the context is valid during this call.
    let frame = unsafe { Frame { pc: _Unwind_GetIP(context) as u64, sp: _Unwind_GetCFA(context) as u64 } };
    match &mut unwound.from {
        From::Sp(sp) if unwound.count == 0 && frame.sp != *sp => return GO_ON,
        From::Skipped(left) if *left != 0 => {
            *left -= 1;
            return GO_ON;
        }
        _ => {}
    }
    let Some(place) = unwound.frames.get_mut(unwound.count) else { return STOP };
    *place = frame;
    unwound.count += 1;
    GO_ON
}

#[inline(never)]
fn unwind(from: From) -> Unwound {
    let mut unwound = Unwound { frames: [Frame::default(); MAX_FRAMES], count: 0, from };
    // SAFETY: `note` may be called with the argument, and unwinds nothing.
    unsafe { _Unwind_Backtrace(note, (&raw mut unwound).cast()) };
    unwound
}

#[cfg(target_arch = "x86_64")]
mod walk {
    use super::*;

    /// Distances that are kept.
    const KEPT: usize = 256;

    /// What is known of a return address.
    #[derive(Clone, Copy)]
    struct Known {
        pc: u64,
        /// Bytes from its word on the stack to the next one.
        step: u64,
    }

    /// It is the outermost.
    const END: u64 = 0;
    /// The size of its frame varies.
    const VARIES: u64 = u64::MAX;

    thread_local! {
        static KNOWN: [Cell<Known>; KEPT] = const { [const { Cell::new(Known { pc: 0, step: 0 }) }; KEPT] };
        /// Stack of the thread: first byte, and one past the last. Empty: not asked yet.
        static STACK: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }

    /// Fills `addrs` with the return addresses from that of its caller on.
    #[unsafe(naked)]
    pub(super) extern "C" fn from_caller(addrs: *mut u64, count: usize) {
        // The word at the stack pointer is our own return address: a place in the caller.
        core::arch::naked_asm!("mov rdx, rsp", "jmp {from_slot}", from_slot = sym from_slot)
    }

    /// `slot`: address of the word with the first return address.
    extern "C" fn from_slot(addrs: *mut u64, count: usize, slot: u64) {
        // SAFETY: `return_addresses` hands its list over, through `from_caller`.
        let addrs = unsafe { std::slice::from_raw_parts_mut(addrs, count) };
        if !fast(addrs, slot) {
            addrs.fill(0);
            slow(addrs, slot);
        }
    }

    fn place(known: &[Cell<Known>; KEPT], pc: u64) -> &Cell<Known> {
        &known[(pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % KEPT]
    }

    /// `false`: not everything is known.
    fn fast(addrs: &mut [u64], mut slot: u64) -> bool {
        let (low, high) = stack();
        KNOWN.with(|known| {
            for addr in addrs {
                if slot < low || slot >= high || !slot.is_multiple_of(8) {
                    return false;
                }
                // SAFETY: an aligned word of the thread's own stack, above the frame of this function.
                let pc = unsafe { std::ptr::with_exposed_provenance::<u64>(slot as usize).read_volatile() };
                let known = place(known, pc).get();
                if known.pc != pc || known.step == VARIES {
                    return false;
                }
                *addr = pc;
                if known.step == END {
                    break;
                }
                slot += known.step;
            }
            true
        })
    }

    #[cold]
    fn slow(addrs: &mut [u64], slot: u64) {
        let unwound = unwind(From::Sp(slot + 8));
        let frames = &unwound.frames[..unwound.count];
        for (addr, frame) in addrs.iter_mut().zip(frames) {
            *addr = frame.pc;
        }
        KNOWN.with(|known| {
            for (index, frame) in frames.iter().enumerate() {
                let step = match frames.get(index + 1) {
                    Some(next) if next.sp > frame.sp => next.sp - frame.sp,
                    Some(_) => VARIES,
                    None if unwound.count == MAX_FRAMES => break,
                    None => END,
                };
                let place = place(known, frame.pc);
                let differs = place.get().pc == frame.pc && place.get().step != step;
                place.set(Known { pc: frame.pc, step: if differs { VARIES } else { step } });
            }
        });
    }

    fn stack() -> (u64, u64) {
        let known = STACK.get();
        if known.1 != 0 {
            return known;
        }
        let found = find_stack().unwrap_or((0, 1));
        STACK.set(found);
        found
    }

    fn find_stack() -> Option<(u64, u64)> {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: the call fills the attributes of the calling thread in, or fails.
        if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
            return None;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: the attributes were filled in; the two variables are ours.
        let result = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) };
        // SAFETY: filled in above, and used no more.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        (result == 0).then(|| (low.addr() as u64, low.addr() as u64 + size as u64))
    }
}

/// Fills `addrs` with return addresses, innermost first; the first one lies in this function. What it does not fill is 0.
#[inline(never)]
pub fn return_addresses(addrs: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    walk::from_caller(addrs.as_mut_ptr(), addrs.len());
    #[cfg(not(target_arch = "x86_64"))]
    {
        addrs.fill(0);
        // That of `unwind`.
        let unwound = unwind(From::Skipped(1));
        for (addr, frame) in addrs.iter_mut().zip(&unwound.frames[..unwound.count]) {
            *addr = frame.pc;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills in what is left of the stack after `depth` calls, and says whether it is what the unwinder tells.
    #[inline(never)]
    fn agrees(depth: usize, room: usize) -> bool {
        let filler = vec![depth; room];
        let mut addrs = [0; 12];
        let agrees = if depth == 0 {
            return_addresses(&mut addrs);
            let expected = unwind(From::Skipped(1));
            let expected: Vec<_> = expected.frames[..expected.count].iter().map(|frame| frame.pc).collect();
            let found: Vec<_> = addrs.iter().copied().take_while(|addr| *addr != 0).collect();
            // The first ones lie in this file, at another call for each of the two; how many there are depends on inlining.
            let same = |skipped: usize| {
                let found = found.get(skipped..).unwrap_or_default();
                found.len() >= 5 && (0..4).any(|own| expected.get(own..).is_some_and(|of| of.starts_with(found)))
            };
            (0..4).any(same)
        } else {
            agrees(depth - 1, room)
        };
        std::hint::black_box(filler).len() == room && agrees
    }

    #[test]
    fn addresses_are_those_of_the_unwinder_the_first_time_and_later() {
        for _ in 0..3 {
            for depth in 0..20 {
                assert!(agrees(depth, depth), "depth {depth}");
            }
        }
        std::thread::spawn(|| (0..3).for_each(|_| assert!(agrees(2, 1)))).join().unwrap();
    }
}
