//! What a report of a race says: both accesses, the bytes and their allocation, and what would order them.

use std::fmt;
use std::sync::Arc;

use super::history::Kind;
use crate::event::{Caller, Range, SiteId};
use crate::stream::StreamId;

/// Who made an access, as far as a report names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    /// A task of a queue.
    Task {
        /// Kind of task, by name.
        kind: &'static str,
        /// Slot of its device.
        device: usize,
        /// Stream of the queue.
        stream_id: u32,
        /// The queue.
        sq_id: u32,
        /// Which task of the queue, counted from 1 since its thread was acquired.
        number: u64,
        /// Rank of the peer, if it moves bytes over a channel.
        peer: Option<u32>,
        /// Launch whose kernel queued it, if that is known.
        launch: Option<u64>,
        /// Number of the name of that kernel.
        kernel: Option<u32>,
        /// Where the kernel called.
        site: SiteId,
    },
    /// A copy or reduce that the host queued on a stream.
    StreamTransfer {
        /// Slot of the device.
        device: usize,
        /// The stream.
        stream_id: StreamId,
        /// Where the host called.
        site: SiteId,
    },
    /// The code of a kernel itself.
    Own {
        /// Slot of the device.
        device: usize,
        /// Launch of the kernel.
        launch: u64,
        /// Number of the name of the kernel.
        kernel: Option<u32>,
        /// An aligned load of at most 8 bytes, as a kernel polls.
        is_poll: bool,
        /// The instruction.
        site: SiteId,
    },
    /// A copy by a host thread.
    HostCopy {
        /// Slot of the device.
        device: usize,
        /// Number of the thread.
        host: u64,
        /// Where the host called.
        site: SiteId,
    },
    /// A free by a host thread.
    Free {
        /// Slot of the device.
        device: usize,
        /// Number of the thread.
        host: u64,
        /// Where the host called.
        site: SiteId,
    },
}

impl Maker {
    /// Where the program called for it.
    pub fn site(&self) -> SiteId {
        match *self {
            Self::Task { site, .. }
            | Self::StreamTransfer { site, .. }
            | Self::Own { site, .. }
            | Self::HostCopy { site, .. }
            | Self::Free { site, .. } => site,
        }
    }

    /// Slot of the device that has made it.
    pub fn device(&self) -> usize {
        match *self {
            Self::Task { device, .. }
            | Self::StreamTransfer { device, .. }
            | Self::Own { device, .. }
            | Self::HostCopy { device, .. }
            | Self::Free { device, .. } => device,
        }
    }

    /// Whether it is the code of a kernel itself.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    fn is_of_host(&self) -> bool {
        matches!(self, Self::HostCopy { .. } | Self::Free { .. })
    }
}

/// A place as the event stream names it, and its text once somebody has asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPlace {
    /// What the event says.
    pub caller: Caller,
    /// File and line, or function.
    pub text: Option<Arc<str>>,
}

impl CallPlace {
    /// Of return addresses.
    pub fn of_site(site: SiteId) -> Self {
        Self { caller: Caller::Site(site), text: None }
    }

    /// Return addresses that have no text yet.
    pub fn open_site(&self) -> Option<SiteId> {
        match self.caller {
            Caller::Site(site) if self.text.is_none() && site != SiteId::UNKNOWN => Some(site),
            _ => None,
        }
    }
}

/// ` made at host.c:40`, if the place is known.
pub(super) fn at(f: &mut fmt::Formatter<'_>, what: &str, place: &CallPlace) -> fmt::Result {
    match (&place.text, place.caller) {
        (Some(text), _) => write!(f, "{what} at {text}"),
        (None, Caller::Source(place)) => write!(f, "{what} at {place}"),
        (None, Caller::Site(_) | Caller::Unknown) => Ok(()),
    }
}

/// A thread, as its host program knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// Index in the list of handles that the host got.
    pub index: usize,
    /// Length of that list.
    pub count: usize,
    /// Where the host acquired it.
    pub place: CallPlace,
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} of the {}", self.index, self.count)?;
        at(f, " acquired", &self.place)
    }
}

/// One of the two accesses of a race, as a report names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RacingAccess {
    /// Who made it.
    pub maker: Maker,
    /// Read or write.
    pub kind: Kind,
    /// Rank of its device, if that has channels.
    pub rank: Option<u32>,
    /// Kernel of the launch that queued the task.
    pub kernel: Option<Arc<str>>,
    /// Thread that the task was queued on.
    pub thread: Option<ThreadName>,
    /// Where the program called for it.
    pub place: CallPlace,
}

impl RacingAccess {
    /// Whether a report of this one stands for `other`, too: the same call in the program.
    pub fn is_same_call(&self, other: &Self) -> bool {
        let (site, of_other) = (self.maker.site(), other.maker.site());
        let is_same_place = match (&self.place.text, &other.place.text) {
            (Some(text), Some(of_other)) => text == of_other,
            _ => site == of_other && site != SiteId::UNKNOWN,
        };
        self.kind == other.kind && (self.maker == other.maker || is_same_place)
    }

    /// `thread 2`, or the stream of a queue whose thread is not known.
    fn short_name(&self) -> String {
        match (&self.thread, self.maker) {
            (Some(thread), _) => format!("thread {}", thread.index),
            (None, Maker::Task { stream_id, .. } | Maker::StreamTransfer { stream_id, .. }) => {
                format!("stream {stream_id}")
            }
            (None, Maker::Own { launch, .. }) => format!("the kernel of launch {launch}"),
            (None, Maker::HostCopy { host, .. } | Maker::Free { host, .. }) => format!("host thread {host}"),
        }
    }

    /// The same with the rank.
    fn name_of_rank(&self) -> String {
        let name = self.short_name();
        self.rank.map_or_else(|| name.clone(), |rank| format!("rank {rank}'s {name}"))
    }
}

impl fmt::Display for RacingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            Kind::Read => "read",
            Kind::Write => "write",
        };
        match self.maker {
            Maker::Task { kind, stream_id, sq_id, number, peer, launch, .. } => {
                write!(f, "the {verb} of task {number} ({kind}")?;
                if let Some(peer) = peer {
                    write!(f, ", channel to rank {peer}")?;
                }
                f.write_str(") on ")?;
                if let Some(rank) = self.rank {
                    write!(f, "rank {rank}, ")?;
                }
                match &self.thread {
                    Some(thread) => write!(f, "{thread}")?,
                    None => write!(f, "stream {stream_id} (sq {sq_id})")?,
                }
                at(f, ", queued", &self.place)?;
                if let Some(launch) = launch {
                    write!(f, " in launch {launch}")?;
                }
                match &self.kernel {
                    Some(kernel) => write!(f, " of kernel {kernel}"),
                    None => Ok(()),
                }
            }
            Maker::StreamTransfer { stream_id, .. } => {
                write!(f, "the {verb} of a transfer on stream {stream_id}")?;
                at(f, ", queued", &self.place)
            }
            Maker::Own { launch, .. } => {
                write!(f, "the {verb} by the code of ")?;
                match &self.kernel {
                    Some(kernel) => write!(f, "kernel {kernel} itself")?,
                    None => f.write_str("the kernel itself")?,
                }
                at(f, "", &self.place)?;
                write!(f, " in launch {launch}")
            }
            Maker::HostCopy { host, .. } => {
                write!(f, "the {verb} of a copy by host thread {host}")?;
                at(f, "", &self.place)
            }
            Maker::Free { host, .. } => {
                write!(f, "the free by host thread {host}")?;
                at(f, "", &self.place)
            }
        }
    }
}

/// The allocation that a race lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RacyAllocation {
    /// All of it.
    pub range: Range,
    /// Where the host made it.
    pub place: CallPlace,
}

/// Why nothing orders two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No notify and no other order between those who make them.
    Unordered,
    /// They are entries of one doorbell, which go in any order.
    Batch,
    /// They are doorbells of one channel on two threads.
    Channel {
        /// Rank of its own end.
        rank: u32,
        /// Rank of the peer.
        peer_rank: u32,
    },
}

/// Two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The one that came first in this run.
    pub first: RacingAccess,
    /// The other one.
    pub second: RacingAccess,
    /// Bytes that both touch.
    pub range: Range,
    /// The allocation that they lie in, if it is known.
    pub allocation: Option<RacyAllocation>,
    /// Why nothing orders them.
    pub cause: Cause,
    /// How often accesses of the same two calls have raced.
    pub count: u64,
}

impl Race {
    /// Whether a report of this one stands for `other`, too: the same two calls in the program.
    pub fn is_same_pair(&self, other: &Self) -> bool {
        let is_same = |a: &RacingAccess, b: &RacingAccess| a.is_same_call(b);
        (is_same(&self.first, &other.first) && is_same(&self.second, &other.second))
            || (is_same(&self.first, &other.second) && is_same(&self.second, &other.first))
    }

    /// Whether one of the two is an access of a kernel's own code.
    pub fn is_of_own_code(&self) -> bool {
        self.first.maker.is_own() || self.second.maker.is_own()
    }

    /// Whether a kernel polls for what a task writes: it works, and orders nothing.
    pub fn is_polling(&self) -> bool {
        let is_poll = |access: &RacingAccess| matches!(access.maker, Maker::Own { is_poll: true, .. });
        let is_task = |access: &RacingAccess| matches!(access.maker, Maker::Task { .. });
        (is_poll(&self.first) && is_task(&self.second)) || (is_task(&self.first) && is_poll(&self.second))
    }

    /// The places that a report of it names.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut CallPlace> {
        let Self { first, second, allocation, .. } = self;
        let mut places = vec![&mut first.place, &mut second.place];
        places.extend(first.thread.iter_mut().chain(&mut second.thread).map(|thread| &mut thread.place));
        places.extend(allocation.iter_mut().map(|allocation| &mut allocation.place));
        places.into_iter()
    }

    /// What the program has to add.
    fn remedy(&self) -> String {
        let Self { first, second, cause, .. } = self;
        match cause {
            Cause::Batch => {
                return "they are entries of one batch, which go in any order: make them two calls, or two batches"
                    .to_owned();
            }
            Cause::Channel { .. } => {
                return "the threads share the work ring, and the doorbell of one also starts entries of the other, even those \
                        behind a wait: give each a channel of its own, or order them by a notify"
                    .to_owned();
            }
            Cause::Unordered => {}
        }
        match (&first.maker, &second.maker) {
            (first, second) if first.is_of_host() && second.is_of_host() => {
                "the calls overlap in time: begin one after the other has returned".to_owned()
            }
            (_, second) if second.is_of_host() => {
                "synchronise the stream before the call (aclrtSynchronizeStream, Stream::synchronize), and let it wait \
                 for the tasks (end notify)"
                    .to_owned()
            }
            (first, _) if first.is_of_host() => {
                "make the call before the launch, or behind a synchronise of the stream".to_owned()
            }
            _ if self.is_polling() => "polling: the load sees the task's bytes or those before it, and orders nothing; wait with \
                 HcommThreadSynchronize or HcommThreadJoin (on an Ascend950 they order)"
                .to_owned(),
            (one, other) if one.device() != other.device() => {
                let (first, second) = (first.name_of_rank(), second.name_of_rank());
                format!(
                    "no notify of a channel from {first} to {second} orders them: let {second} wait, before the latter, for a \
                     notify that {first} records behind the former (in a batch: as its last entry)"
                )
            }
            (Maker::Own { .. }, Maker::Task { .. }) | (Maker::Task { .. }, Maker::Own { .. }) => {
                "let the kernel wait for the task before it accesses these bytes (HcommThreadSynchronize, HcommThreadJoin: on an \
                 Ascend950 they order), or queue the task after the access"
                    .to_owned()
            }
            _ if first.short_name() == second.short_name() => {
                "synchronise between the two launches, or put them on one stream".to_owned()
            }
            _ => {
                let (first, second) = (first.short_name(), second.short_name());
                format!(
                    "no notify from {first} to {second} orders them: let {second} wait, before the latter, for a notify that \
                     {first} records after the former"
                )
            }
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, range: Range { addr, len }, allocation, cause, count } = self;
        match cause {
            Cause::Channel { rank, peer_rank } => {
                write!(f, "race on the channel from rank {rank} to rank {peer_rank}")?;
            }
            Cause::Unordered if self.is_polling() => write!(f, "polling on {len} bytes at {addr:#x}")?,
            Cause::Unordered | Cause::Batch => write!(f, "race on {len} bytes at {addr:#x}")?,
        }
        if let Some(RacyAllocation { range, place }) = allocation {
            let offset = addr - range.addr;
            write!(f, " (offset {offset} of the allocation of {} bytes at {:#x}", range.len, range.addr)?;
            at(f, ", made", place)?;
            f.write_str(")")?;
        }
        write!(f, ": nothing orders {second} behind {first}; {}", self.remedy())?;
        if *count > 1 {
            write!(f, " (found {count} times)")?;
        }
        Ok(())
    }
}
