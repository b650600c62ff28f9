//! Return addresses from the frame records on the stack.

use super::layout;

/// Fills `addrs` with return addresses, innermost first: one for each frame record from `fp` on. The rest is 0.
#[inline(never)]
pub fn walk(mut fp: u64, addrs: &mut [u64]) {
    let stack = layout::stack();
    // A record is {frame pointer of the caller, return address}. Anything may be in a register when a fault is taken, so a
    // record counts only on the stack, aligned, and above the last one.
    let mut floor = stack.start;
    for place in addrs {
        let mut found = 0;
        if (floor..stack.end).contains(&fp) && fp.is_multiple_of(16) {
            // SAFETY: just found to be an aligned pair of words of the stack, which is mapped.
            let [next, addr] = unsafe { (fp as *const [u64; 2]).read_volatile() };
            found = addr;
            floor = fp + 16;
            fp = if addr == 0 { 0 } else { next };
        }
        *place = found;
    }
}

/// Puts `lr` before the return addresses of [`walk`], if it is one and they do not begin with it.
///
/// It is the caller of a function without a frame (a leaf, or one jumped to by mistake). In a function with a frame that has
/// called others, it is stale and points into the function itself, which the host can tell by the symbol.
pub fn put_before(lr: u64, addrs: &mut [u64]) {
    if layout::text().contains(&lr) && addrs.first() != Some(&lr) {
        addrs.rotate_right(1);
        addrs[0] = lr;
    }
}
