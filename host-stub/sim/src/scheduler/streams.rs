//! The streams of a device, as its scheduler keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::DeviceError;
use crate::host_stream::{DroppedTasks, HostStream, Running};
use crate::ids::StreamId;
use crate::stream::{StreamShared, Waiters};
use crate::vector_clock::ActorId;

/// All streams.
#[derive(Default)]
pub(crate) struct Streams(BTreeMap<StreamId, HostStream>);

impl Streams {
    /// Adds an empty stream.
    pub(crate) fn add(&mut self, shared: Arc<StreamShared>) {
        self.0.insert(shared.id(), HostStream::new(shared));
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&HostStream> {
        self.0.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut HostStream> {
        self.0.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &HostStream> {
        self.0.values()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The first stream whose number is not below `from`.
    pub(crate) fn next_from(&self, from: StreamId) -> Option<StreamId> {
        self.0.range(from..).next().map(|(id, _)| *id)
    }

    /// Launches that have been started and not completed.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Running> {
        self.iter().filter_map(|stream| stream.running.as_ref())
    }

    /// Numbers of the launches whose kernels run.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = u64> {
        self.iter().filter_map(HostStream::kernel)
    }

    /// Limits of running kernels and of waits that have begun.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = Duration> {
        self.iter().filter_map(HostStream::deadline)
    }

    /// Threads of the host that wait for a stream.
    pub(crate) fn waiters(&self) -> Waiters {
        self.iter().map(|stream| stream.shared.waiters()).fold(Waiters::default(), |sum, one| Waiters {
            all: sum.all + one.all,
            without_limit: sum.without_limit + one.without_limit,
        })
    }

    /// Tasks were dropped that launches may have queued.
    pub(crate) fn note_dropped(&mut self, dropped: &DroppedTasks) {
        self.0.values_mut().for_each(|stream| stream.note_dropped(dropped));
    }

    /// A queue is gone, and its number may be used again.
    pub(crate) fn forget_queue(&mut self, sq_id: ActorId) {
        self.0.values_mut().for_each(|stream| stream.before.forget(sq_id));
    }

    /// Numbers of all streams.
    pub(crate) fn ids(&self) -> impl Iterator<Item = StreamId> {
        self.0.keys().copied()
    }

    /// Every operation ends with `error`; `with`: what kernels end with that ran beside the one that has failed. Gives the
    /// parameters of their launches, which kernels that still run may read.
    pub(crate) fn end_all(&mut self, error: &DeviceError, with: Option<&'static str>) -> Vec<u64> {
        self.0.values_mut().flat_map(|stream| stream.end_all(error, with)).collect()
    }

    /// Forgets a stream that the host has released, once it is empty. Whether it did.
    pub(crate) fn forget_released(&mut self, id: StreamId) -> bool {
        let is_empty = |stream: &HostStream| stream.detached && stream.ops.is_empty() && stream.running.is_none();
        self.0.get(&id).is_some_and(is_empty) && self.0.remove(&id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Op;

    #[test]
    fn released_stream_stays_until_it_is_empty() {
        let mut streams = Streams::default();
        for id in [9, 4] {
            streams.add(Arc::new(StreamShared::new(id)));
        }
        assert_eq!([0, 4, 5, 10].map(|from| streams.next_from(from)), [Some(4), Some(4), Some(9), None]);
        let stream = streams.get_mut(4).unwrap();
        stream.shared.submit();
        stream.ops.push_back(Op::NotifyRecord { id: 1 });
        stream.detached = true;
        assert!(!streams.forget_released(4) && !streams.forget_released(9), "one has work, the other is in use");
        assert_eq!(streams.end_all(&DeviceError::Closed, None), [0; 0]);
        assert!(streams.forget_released(4) && !streams.forget_released(4));
        assert_eq!((streams.count(), streams.get(4).is_none()), (1, true));
    }
}
