//! Records of notifies that an operation of a stream has left behind.
//!
//! A record is judged only by the stream that has made it, itself or by a task of its launches, and only if no other stream can
//! be about to wait for it: whatever belongs to another stream stays as it is.

use super::error::DeviceError;
use super::host_stream::{Ended, Queued};
use super::memory::Memory;
use super::notify::RecordedBy;
use super::queue::HwQueue;
use super::scheduler::Scheduler;
use super::stream::StreamId;

impl<M: Memory> Scheduler<M> {
    /// Takes away the records that stream `id` has left, whose launches since its last look are `ended`, and gives the error
    /// that names them. `failed`: one of the launches has failed.
    pub(super) fn leftovers(&mut self, id: StreamId, ended: &[Ended], failed: bool) -> Option<DeviceError> {
        let launches_ended = self.streams.get(id)?.launches_ended;
        let is_alone = self.streams.count() == 1;
        let queues = &self.queues;
        let queue_of = |stream_id| queues.iter().find(|queue| queue.config.stream_id == stream_id);
        let leftovers = self.notifies.take_leftovers(|owner, by| {
            let is_own = match *by {
                // Without a launch behind it, a start is recorded and its kernel still to come.
                RecordedBy::Stream { id: recorder, launches_ended: then } => recorder == id && then < launches_ended,
                // Of a channel: its next operation may take it.
                RecordedBy::Peer { .. } => false,
                RecordedBy::Task { queue, task, rung_at } => ended.iter().any(|ended| {
                    let is_in = |queued: &Queued| queued.is_sure && queued.generation == queue && task <= queued.tasks;
                    rung_at > ended.since && ended.queued.iter().any(is_in)
                }),
            };
            if !is_own {
                return false;
            }
            match queue_of(owner) {
                // The notify of a stream's own thread: its later operations wait for it.
                None => owner == id,
                // A launch of another stream may wait for it.
                Some(queue) if !is_idle(queue) || queue.users.iter().any(|user| *user != id) => false,
                Some(queue) => {
                    let is_for_launch = matches!(by, RecordedBy::Stream { .. });
                    is_for_launch || failed || is_alone || queue.users.contains(&id)
                }
            }
        });
        let first = *leftovers.first()?;
        Some(DeviceError::NotifyLeftSet { stream_id: id, first, others: leftovers.len() - 1 })
    }
}

fn is_idle(queue: &HwQueue) -> bool {
    queue.stopped || queue.is_empty()
}
