//! Text of events, for people and for tests.

use std::fmt;

use hcomm_aicpu::spec::map::HBM_STRIDE;

use super::recorder::Trace;
use super::what::{Caller, ChannelName, Event, NotifyUser, Origin, Range, TaskPlace, What, Who};

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Core(core) => write!(f, "core {core}"),
            Self::Stars => f.write_str("stars"),
            Self::Sdma => f.write_str("sdma"),
        }
    }
}

impl fmt::Display for TaskPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {} sq {} slot {} task {:#x}", self.stream_id, self.sq_id, self.slot, self.task_id)
    }
}

impl fmt::Display for NotifyUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => write!(f, "{task}"),
            Self::Stream(id) => write!(f, "stream {id}"),
            Self::Peer { device, .. } => write!(f, "device {device}"),
        }
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {} from rank {} to rank {}", self.slot, self.rank, self.peer_rank)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alloc { host, range: Range { addr, len }, kind, .. } => {
                write!(f, "alloc: thread {} {addr:#x} len {len} for {}", host.0, kind.name())
            }
            Self::Free { host, range: Range { addr, len }, .. } => {
                write!(f, "free: ")?;
                if let Some(host) = host {
                    write!(f, "thread {} ", host.0)?;
                }
                write!(f, "{addr:#x} len {len}")
            }
            Self::HostCopy { host, reads, writes, .. } => {
                write!(f, "host copy: thread {}", host.0)?;
                for (name, Range { addr, len }) in [("reads", reads), ("writes", writes)] {
                    if *len != 0 {
                        write!(f, " {name} {addr:#x} len {len}")?;
                    }
                }
                Ok(())
            }
            Self::ThreadsAcquired { host, threads, caller } => {
                write!(f, "threads acquired: thread {}", host.0)?;
                for thread in threads.iter() {
                    write!(f, " stream {} sq {}", thread.stream_id, thread.sq_id)?;
                }
                match caller {
                    Caller::Source(place) => write!(f, " at {place}"),
                    Caller::Site(_) | Caller::Unknown => Ok(()),
                }
            }
            Self::ThreadsReleased { host, threads } => {
                write!(f, "threads released: thread {} count {}", host.0, threads.len())
            }
            Self::HostReturned { host } => write!(f, "call returned: thread {}", host.0),
            Self::Submitted { host, stream_id, operation, .. } => {
                write!(f, "submitted: thread {} stream {stream_id} {operation}", host.0)
            }
            Self::StreamTransfer { stream_id, reads, writes } => {
                let (dst, src, len) = (writes.addr, reads[0].addr, writes.len);
                write!(f, "stream transfer: stream {stream_id} dst {dst:#x} src {src:#x} len {len}")
            }
            Self::OperationEnded { stream_id } => write!(f, "operation ended: stream {stream_id}"),
            Self::Synchronized { host, stream_id, .. } => {
                write!(f, "synchronized: thread {} stream {stream_id}", host.0)
            }
            Self::EventRecorded { stream_id, event } => write!(f, "event {event} recorded: stream {stream_id}"),
            Self::EventAwaited { stream_id, event } => write!(f, "event {event} awaited: stream {stream_id}"),
            Self::EventObserved { host, event } => write!(f, "event {event} observed: thread {}", host.0),
            Self::EventDestroyed { host, event } => write!(f, "event {event} destroyed: thread {}", host.0),
            Self::LaunchQueued { stream_id, kernel, .. } => {
                write!(f, "launch queued: stream {stream_id} kernel {kernel}")
            }
            Self::LaunchStarted { origin: Origin { launch, core }, stream_id, kernel } => {
                write!(f, "launch {launch} started: stream {stream_id} kernel {kernel} core {core}")
            }
            Self::LaunchReturned { origin, code } => write!(f, "launch {} kernel returned: code {code}", origin.launch),
            Self::LaunchEnded { launch, .. } => write!(f, "launch {launch} ended"),
            Self::Call { origin, seq, entry, sq_id, first, count, .. } => {
                let name = entry.name().unwrap_or("unknown function");
                write!(f, "call {seq} of launch {}: {name} sq {sq_id} slot {first} count {count}", origin.launch)
            }
            Self::CallRefused { code, text, .. } => write!(f, "call refused: code {code}: {text}"),
            Self::CommAcquired { origin, comm } => write!(f, "comm acquired: launch {} comm {comm}", origin.launch),
            Self::CommReleased { origin, comm } => write!(f, "comm released: launch {} comm {comm}", origin.launch),
            Self::OwnAccess { origin, range: Range { addr, len }, writes, .. } => {
                let verb = if *writes { "wrote" } else { "read" };
                write!(f, "launch {} {verb}: {addr:#x} len {len}", origin.launch)
            }
            Self::Observed { origin, sq_id, head, .. } => {
                write!(f, "launch {} observed: sq {sq_id} head {head}", origin.launch)
            }
            Self::Doorbell { sq_id, tail, .. } => write!(f, "doorbell: sq {sq_id} tail {tail}"),
            Self::DoorbellRefused { sq_id, tail, error, .. } => {
                write!(f, "doorbell refused: sq {sq_id} tail {tail}: {error}")
            }
            Self::TaskBegan { task, kind, by, reads, writes } => {
                let (dst, src, len) = (writes.addr, reads[0].addr, writes.len);
                write!(f, "task began: {task} {kind} dst {dst:#x} src {src:#x} len {len}")?;
                match by {
                    Some(by) => write!(f, " by launch {} core {}", by.origin.launch, by.origin.core),
                    None => Ok(()),
                }
            }
            Self::ChannelMade { channel } => write!(f, "{channel} made"),
            Self::ChannelRung { task, channel } => write!(f, "{channel} rung: {task}"),
            Self::Entry { channel, kind, reads, writes, record, .. } => {
                let (dst, src, len) = (writes.addr, reads[0].addr, writes.len);
                write!(f, "entry: {channel} {kind}")?;
                if len != 0 {
                    write!(f, " dst {dst:#x} src {src:#x} len {len}")?;
                }
                match record {
                    Some(record) => write!(f, " record {} of device {}", record.number, record.device),
                    None => Ok(()),
                }
            }
            Self::TaskEnded { task } => write!(f, "task ended: {task}"),
            Self::TasksDropped { sq_id, first, count, reason } => {
                write!(f, "tasks dropped: sq {sq_id} slot {first} count {count}: {reason}")
            }
            Self::QueueSuspended { sq_id } => write!(f, "queue suspended: sq {sq_id}"),
            Self::StreamReset { stream_id } => write!(f, "stream reset: stream {stream_id}"),
            Self::StreamRemoved { stream_id } => write!(f, "stream removed: stream {stream_id}"),
            Self::QueueReset { sq_id } => write!(f, "queue reset: sq {sq_id}"),
            Self::HeadPublished { sq_id, head } => write!(f, "head published: sq {sq_id} head {head}"),
            Self::NotifySet { id, by, .. } => write!(f, "notify {id} set: {by}"),
            Self::NotifyTaken { id, by, .. } => write!(f, "notify {id} taken: {by}"),
            Self::Error(error) => write!(f, "error: {error}"),
            Self::Found(error) => write!(f, "found: {error}"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, what, .. } = self;
        write!(f, "{}.{:09} {}: {what}", at.as_secs(), at.subsec_nanos(), what.who())
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "{}", with_offsets(&event.to_string(), self.hbm_base))?;
        }
        match self.lost {
            0 => Ok(()),
            lost => writeln!(f, "{lost} events lost"),
        }
    }
}

/// `text` with each hexadecimal number that lies in the terabyte from `base` on as an offset from there.
fn with_offsets(text: &str, base: u64) -> String {
    let mut parts = text.split("0x");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        let offset = u64::from_str_radix(&part[..end], 16).ok().and_then(|addr| addr.checked_sub(base));
        match offset.filter(|offset| *offset < HBM_STRIDE) {
            Some(offset) => shown += &format!("hbm+{offset:#x}{}", &part[end..]),
            None => shown += &format!("0x{part}"),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::site::SiteId;
    use super::super::what::Queuer;
    use super::*;

    #[test]
    fn text_has_a_line_for_each_event() {
        let task = TaskPlace { stream_id: 3, sq_id: 1, slot: 0, task_id: 1024 };
        let base = 0x12c0_0000_0000;
        let (src, dst) = (Range { addr: 0x1000, len: 16 }, Range { addr: base + 0x2000, len: 16 });
        let origin = Origin { launch: 2, core: 1 };
        let by = Some(Queuer { origin, call: None, site: SiteId::UNKNOWN });
        let (at, device) = (Duration::new(1, 5), 0);
        let reads = [src, Range::default()];
        let events = vec![
            Event { at, device, what: What::Doorbell { by: Some(origin), sq_id: 1, tail: 1 } },
            Event { at, device, what: What::TaskBegan { task, kind: "sdma copy", by, reads, writes: dst } },
        ];
        let text = "1.000000005 core 1: doorbell: sq 1 tail 1\n\
                    1.000000005 sdma: task began: stream 3 sq 1 slot 0 task 0x400 sdma copy dst hbm+0x2000 \
                    src 0x1000 len 16 by launch 2 core 1\n7 events lost\n";
        assert_eq!(Trace { hbm_base: base, events, lost: 7 }.to_string(), text);
    }
}
