//! Peers that have failed: what waits for them ends.

use std::sync::Arc;

use super::peer_failure::PeerFailure;
use crate::error::{DeviceError, TaskError};
use crate::ids::Owner;
use crate::memory::Memory;
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
        port.fail(&PeerFailure { device: port.device(), first, error });
    }

    /// A peer has failed: what only it could record will not come.
    pub(crate) fn peer_failed(&mut self, failure: PeerFailure) {
        let device = failure.device;
        self.failed_peers.insert(device, failure);
        let waits: Vec<_> = self.queues.iter().filter_map(|queue| Some((queue.config.sq_id, queue.wait?))).collect();
        for (sq_id, wait) in waits {
            if let Some(error) = self.hopeless(wait.notify_id) {
                self.task_failed(sq_id, wait.task_id, error);
            }
        }
    }

    /// Why a wait for this notify can't end: only a failed peer would record it.
    pub(crate) fn hopeless(&self, id: u32) -> Option<TaskError> {
        if self.failed_peers.is_empty() {
            return None;
        }
        let notify = self.notifies.name(id);
        let Some(Owner::Channel { peer, peer_rank, .. }) = notify.owner else { return None };
        let failure = self.failed_peers.get(&peer)?;
        let (rank, text) = match (&failure.first, &failure.error) {
            (Some((rank, text)), _) => (*rank, text.to_string()),
            (None, Some(text)) => (peer_rank, text.to_string()),
            (None, None) => (peer_rank, "its device was closed".to_owned()),
        };
        Some(TaskError::PeerFailed { notify, rank, text })
    }
}
