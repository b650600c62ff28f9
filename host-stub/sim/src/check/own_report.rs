//! What a report of an access by a kernel's own code says, if the bytes are not the kernel's.

use std::fmt;
use std::sync::Arc;

use super::report::{CallPlace, RacyAllocation, at};
use crate::alloc::AccessError;
use crate::event::Range;

/// An access of a kernel's own code outside every allocation of the user, or to a freed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayAccess {
    /// Launch of the kernel.
    pub launch: u64,
    /// The kernel, if it is known.
    pub kernel: Option<Arc<str>>,
    /// It writes.
    pub writes: bool,
    /// The instruction.
    pub place: CallPlace,
    /// The bytes: neighbouring accesses are one.
    pub range: Range,
    /// Why they are not the kernel's.
    pub error: AccessError,
    /// The last allocation of the user that starts before the bytes.
    pub before: Option<RacyAllocation>,
    /// How often the same instruction has done so.
    pub count: u64,
}

impl StrayAccess {
    /// Whether a report of this one stands for `other`, too: the same place in the program.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_place = match (&self.place.text, &other.place.text) {
            (Some(text), Some(of_other)) => text == of_other,
            _ => self.place == other.place,
        };
        self.writes == other.writes && self.kernel == other.kernel && is_same_place
    }

    /// The places that a report of it names.
    pub fn places_mut(&mut self) -> Vec<&mut CallPlace> {
        let before = self.before.iter_mut().map(|allocation| &mut allocation.place);
        std::iter::once(&mut self.place).chain(before).collect()
    }
}

impl fmt::Display for StrayAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { launch, kernel, writes, place, range: Range { addr, len }, error, before, count } = self;
        f.write_str("the code of ")?;
        match kernel {
            Some(kernel) => write!(f, "kernel {kernel} itself")?,
            None => f.write_str("the kernel itself")?,
        }
        at(f, "", place)?;
        let verb = if *writes { "writes" } else { "reads" };
        write!(f, " in launch {launch} {verb} {len} bytes at {addr:#x}: {error}")?;
        if let Some(RacyAllocation { range: all, place }) = before {
            let (end, size) = (all.addr + all.len, all.len);
            match addr.checked_sub(end) {
                Some(behind) => write!(f, "; {behind} bytes after the allocation of {size} bytes at {:#x}", all.addr)?,
                None => write!(f, "; the allocation has {size} bytes at {:#x}", all.addr)?,
            }
            at(f, ", made", place)?;
        }
        if *count > 1 {
            write!(f, " (found {count} times)")?;
        }
        Ok(())
    }
}
