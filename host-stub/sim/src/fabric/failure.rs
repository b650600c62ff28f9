//! Peers that have failed: what waits for them ends.

use std::sync::Arc;

use super::end::ChannelEnd;
use super::peer_failure::PeerFailure;
use crate::error::{DeviceError, TaskError};
use crate::memory::Memory;
use crate::queue::HwQueue;
use crate::scheduler::Scheduler;

impl<M: Memory> Scheduler<M> {
    /// The device has failed with `error`: its peers are told.
    pub(crate) fn tell_peers(&self, error: Option<&DeviceError>) {
        let Some(port) = &self.port else { return };
        let first = match error {
            Some(DeviceError::Task { error: TaskError::PeerFailed { rank, text, .. }, .. }) => {
                Some((*rank, Arc::from(text.as_str())))
            }
            _ => None,
        };
        let error = error.map(|error| Arc::from(error.to_string()));
        port.fail(&PeerFailure { device: port.device(), first, error, is_launch: false });
    }

    /// A kernel has failed: its peers are told, whose waits it would have ended. The device works.
    pub(crate) fn tell_peers_of_launch(&self, error: &DeviceError) {
        let Some(port) = self.port.as_ref().filter(|_| !self.channels.is_empty()) else { return };
        let error = Some(Arc::from(error.to_string()));
        port.tell(&PeerFailure { device: port.device(), first: None, error, is_launch: true });
    }

    /// Something is launched: what failed at a peer before does not end its waits.
    pub(crate) fn forget_launches_of_peers(&mut self) {
        for end in self.channels.values_mut() {
            end.failure = end.failure.take().filter(|failure| !failure.is_launch);
        }
    }

    /// A peer has failed: what only it could record will not come.
    pub(crate) fn peer_failed(&mut self, failure: &PeerFailure) {
        // A device that has another one's slot is told of by its own channels, later.
        let ends = self.channels.values_mut().filter(|end| end.peer == failure.device);
        let is_new = |end: &&mut ChannelEnd| end.failure.as_ref().is_none_or(|known| known.is_launch);
        ends.filter(is_new).for_each(|end| end.failure = Some(failure.clone()));
        // A wait that is not parked has been woken by a record, and looks again.
        let parked = |queue: &&HwQueue| queue.is_parked();
        let waits = self.queues.iter().filter(parked);
        let waits: Vec<_> = waits.filter_map(|queue| Some((queue.config.sq_id, queue.wait?))).collect();
        for (sq_id, wait) in waits {
            if let Some(error) = self.hopeless(wait.notify_id) {
                self.task_failed(sq_id, wait.task_id, error);
            }
        }
    }

    /// Why a wait for this notify can't end: only a failed peer would record it.
    pub(crate) fn hopeless(&self, id: u32) -> Option<TaskError> {
        let end = self.channels.values().find(|end| end.has_notify(id))?;
        let (failure, peer_rank, notify) = (end.failure.as_ref()?, end.name.peer_rank, self.notifies.name(id));
        let (rank, text) = match (&failure.first, &failure.error) {
            (Some((rank, text)), _) => (*rank, text.to_string()),
            (None, Some(text)) => (peer_rank, text.to_string()),
            (None, None) => (peer_rank, "its device was closed".to_owned()),
        };
        Some(TaskError::PeerFailed { notify, rank, text })
    }
}
