//! Refused calls of a kernel: the launch of a kernel that ignores their codes has failed.

use std::fmt;

use hcomm_aicpu::spec::code;

use crate::event::Place;

/// A call of a kernel that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCall {
    /// Code that the call gave.
    pub code: i32,
    /// Function and reason.
    pub text: String,
    /// Where the kernel called.
    pub place: Place,
}

/// Different refusals that are kept of each kind; later ones are only counted.
const KEPT: usize = 8;

/// Whether a kernel that returns 0 after a call with this code has done less than it says: null, a wrong value, a wrong
/// handle, a doorbell that was refused, a call outside a kernel.
///
/// Not so for 20 (a communicator that is locked, which a kernel may poll) and 5 (a function that this product does not have,
/// after which a kernel may do something else).
fn means_lost_work(code: i32) -> bool {
    matches!(
        code,
        code::HCCL_E_PARA | code::HCCL_E_PTR | code::HCCL_E_NOT_FOUND | code::HCCL_E_UNAVAIL | code::HCCL_E_DRV
    )
}

/// A refusal, and how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    call: RefusedCall,
    count: u64,
}

/// Refused calls of one launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Those after which a kernel must not return 0.
    lost: Vec<Kept>,
    others: Vec<Kept>,
    /// Refusals for which there was no room.
    missed: u64,
}

impl Refusals {
    /// Adds a refused call.
    pub fn add(&mut self, call: RefusedCall) {
        self.add_many(Kept { call, count: 1 });
    }

    /// Takes over what another CPU has kept.
    pub fn append(&mut self, other: Self) {
        other.lost.into_iter().chain(other.others).for_each(|kept| self.add_many(kept));
        self.missed += other.missed;
    }

    fn add_many(&mut self, new: Kept) {
        let list = if means_lost_work(new.call.code) { &mut self.lost } else { &mut self.others };
        if let Some(kept) = list.iter_mut().find(|kept| kept.call == new.call) {
            kept.count += new.count;
        } else if list.len() < KEPT {
            list.push(new);
        } else {
            self.missed += new.count;
        }
    }

    /// Whether no call was refused.
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.others.is_empty()
    }

    /// The refusals that a kernel must not ignore, if there are any.
    pub fn lost(&self) -> Option<Self> {
        (!self.lost.is_empty()).then(|| Self { lost: self.lost.clone(), others: Vec::new(), missed: 0 })
    }
}

/// A list: `HcommLocalCopyOnThread: dst is null (code 2, HCCL_E_PTR) at FILE:LINE (function), 3 times; ..`. Nothing if no call was
/// refused.
impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Kept { call: RefusedCall { code, text, place }, count }) in
            self.lost.iter().chain(&self.others).enumerate()
        {
            let link = if index == 0 { "" } else { "; " };
            write!(f, "{link}{text} (code {code}, {}){place}", code::name(*code))?;
            if *count > 1 {
                write!(f, ", {count} times")?;
            }
        }
        if self.missed != 0 {
            write!(f, "; and {} more", self.missed)?;
        }
        Ok(())
    }
}

/// Refused calls as the end of a message about a launch that has failed.
pub(crate) fn refused_text(refused: &Refusals) -> String {
    if refused.is_empty() { String::new() } else { format!("; refused calls: {refused}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(code: i32, text: &str) -> RefusedCall {
        RefusedCall { code, text: text.to_owned(), place: Place::default() }
    }

    #[test]
    fn equal_refusals_are_counted() {
        let mut refusals = Refusals::default();
        assert_eq!(
            (refusals.to_string(), refused_text(&refusals), refusals.lost()),
            (String::new(), String::new(), None)
        );
        refusals.add(call(2, "f: dst is null"));
        refusals.add(call(20, "g: locked"));
        refusals.add(call(2, "f: dst is null"));
        assert_eq!(
            refusals.to_string(),
            "f: dst is null (code 2, HCCL_E_PTR), 2 times; g: locked (code 20, HCCL_E_AGAIN)"
        );
        let mut both = Refusals::default();
        both.add(call(2, "f: dst is null"));
        both.append(refusals);
        assert_eq!(both.lost().unwrap().to_string(), "f: dst is null (code 2, HCCL_E_PTR), 3 times");
    }

    /// Case 321.
    #[test]
    fn codes_after_which_a_kernel_must_not_return_0() {
        let is_lost = |code| {
            let mut refusals = Refusals::default();
            refusals.add(call(code, "f"));
            refusals.lost().is_some()
        };
        assert_eq!((0..=30).filter(|code| is_lost(*code)).collect::<Vec<_>>(), [1, 2, 6, 7, 16]);
    }

    #[test]
    fn polling_takes_no_memory_and_hides_no_refusal_that_counts() {
        let mut refusals = Refusals::default();
        for number in 0..1000 {
            refusals.add(call(20, &format!("lock {number}")));
        }
        refusals.add(call(6, "stale"));
        assert_eq!(refusals.others.len(), KEPT);
        assert_eq!(refusals.lost().unwrap().to_string(), "stale (code 6, HCCL_E_NOT_FOUND)");
        assert!(refusals.to_string().ends_with("; and 992 more"), "{refusals}");
    }
}
