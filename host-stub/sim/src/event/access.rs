//! What a step of a schedule uses: two steps that use nothing in common may go in either order.

/// Something of a device that several actors use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// Bytes of HBM, by address.
    Memory,
    /// Entries of a queue, counted since it was made.
    Entries(u32),
    /// The tail of a queue.
    Tail(u32),
    /// The head of a queue.
    Head(u32),
    /// The state of a queue: enabled, refusing, suspended, free.
    Status(u32),
    /// A notify.
    Notify(u32),
    /// Operations submitted to a stream, by their place.
    Operations(u32),
    /// Operations of a stream that have completed, by their place.
    Completed(u32),
    /// The kernel on a core.
    Kernel(usize),
    /// Which cores are in use.
    Cores,
    /// Allocations.
    Allocations,
    /// Calls of kernels whose effect on others is not known: locks of communicators, staged tasks.
    Calls,
    /// Answers of the scheduler to host threads.
    Answers,
    /// A host thread: its start, and its end.
    Thread(usize),
    /// Channels to other devices.
    Channels,
    /// An event of streams, by its number.
    Event(u32),
}

/// How it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// It is looked at.
    Read,
    /// It is changed.
    Write,
    /// The step could not have been made before the write that it comes after.
    Await,
    /// A notify that was not set is set.
    Set,
    /// A notify that is set is taken.
    Take,
}

impl AccessKind {
    fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Set | Self::Take)
    }
}

/// One use of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// Number of the device in the run.
    pub device: u32,
    /// What is used.
    pub object: Object,
    /// First part of it that is used, and one past the last.
    pub parts: (u64, u64),
    /// How.
    pub kind: AccessKind,
}

impl Access {
    /// A use of all of an object, of the device that reports it.
    pub fn new(object: Object, kind: AccessKind) -> Self {
        Self::of(object, 0, u64::MAX, kind)
    }

    /// A use of `len` parts of an object from `first` on, of the device that reports it.
    pub fn of(object: Object, first: u64, len: u64, kind: AccessKind) -> Self {
        Self { device: 0, object, parts: (first, first.saturating_add(len)), kind }
    }

    /// Whether the order of the two matters: they use the same parts, and one changes them.
    pub fn conflicts(&self, other: &Self) -> bool {
        self.object == other.object
            && self.device == other.device
            && self.parts.0 < other.parts.1
            && other.parts.0 < self.parts.1
            && (self.kind.changes() || other.kind.changes())
    }

    /// Of two that conflict: whether `later` could also have come first.
    fn may_follow(&self, later: &Self) -> bool {
        !matches!((self.kind, later.kind), (_, AccessKind::Await) | (AccessKind::Set, AccessKind::Take))
    }
}

/// How two steps depend on each other, the first of which came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// They can go in either order, with the same result.
    None,
    /// The second one can't come before the first.
    Enabled,
    /// Their order matters.
    Ordered,
}

/// How a step that has used `later` depends on an earlier one that has used `earlier`.
pub fn dependence(earlier: &[Access], later: &[Access]) -> Dependence {
    let mut found = Dependence::None;
    for first in earlier {
        for second in later.iter().filter(|second| first.conflicts(second)) {
            if first.may_follow(second) {
                return Dependence::Ordered;
            }
            found = Dependence::Enabled;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_parts_with_a_change_conflict() {
        use AccessKind::{Read, Write};
        let bytes = |first, kind| [Access::of(Object::Memory, first, 8, kind)];
        let found = |one: &[Access], other: &[Access]| dependence(one, other);
        assert_eq!(found(&bytes(0, Write), &bytes(7, Read)), Dependence::Ordered);
        assert_eq!(found(&bytes(0, Write), &bytes(8, Write)), Dependence::None);
        assert_eq!(found(&bytes(0, Read), &bytes(0, Read)), Dependence::None);
        let other_device = [Access { device: 1, ..bytes(0, Write)[0] }];
        assert_eq!(found(&bytes(0, Write), &other_device), Dependence::None);
        assert_eq!(found(&bytes(0, Write), &[Access::new(Object::Notify(0), Write)]), Dependence::None);
    }

    #[test]
    fn what_a_step_waits_for_can_not_come_after_it() {
        use AccessKind::{Await, Set, Take, Write};
        let entry = |kind| [Access::of(Object::Entries(3), 5, 1, kind)];
        assert_eq!(dependence(&entry(Write), &entry(Await)), Dependence::Enabled);
        assert_eq!(dependence(&entry(Await), &entry(Write)), Dependence::Ordered);
        let notify = |kind| [Access::new(Object::Notify(1), kind)];
        assert_eq!(dependence(&notify(Set), &notify(Take)), Dependence::Enabled);
        assert_eq!(dependence(&notify(Take), &notify(Set)), Dependence::Ordered);
        assert_eq!(dependence(&notify(Set), &notify(Write)), Dependence::Ordered);
    }
}
