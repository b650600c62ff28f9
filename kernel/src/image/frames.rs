//! Return addresses from the frame records on the stack.

use super::layout;

/// Fills `addrs` with return addresses, innermost first: `lr` if it says more than the frames do, then one for each frame
/// record from `fp` on. What is left of `addrs` stays as it is.
///
/// `lr` is the caller of a function without a frame (a leaf, or one jumped to by mistake). In a function with a frame that has
/// called others, it is stale and points into the function itself, which the host can tell by the symbol.
pub fn walk(lr: Option<u64>, mut fp: u64, addrs: &mut [u64]) {
    let stack = layout::stack();
    let text = layout::text();
    let mut places = addrs.iter_mut();
    // Whether there was room.
    let mut push = |addr| places.next().map(|place| *place = addr).is_some();

    let mut lr = lr.filter(|addr| text.contains(addr));
    // A record is {frame pointer of the caller, return address}. Anything may be in a register when a fault is taken, so a
    // record counts only on the stack, aligned, and above the last one.
    let mut floor = stack.start;
    while (floor..stack.end).contains(&fp) && fp.is_multiple_of(16) {
        // SAFETY: just found to be an aligned pair of words of the stack, which is mapped.
        let [next, addr] = unsafe { (fp as *const [u64; 2]).read_volatile() };
        if let Some(lr) = lr.take()
            && lr != addr
        {
            push(lr);
        }
        if addr == 0 || !push(addr) {
            break;
        }
        floor = fp + 16;
        fp = next;
    }
    if let Some(lr) = lr {
        push(lr);
    }
}
