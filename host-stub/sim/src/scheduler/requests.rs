//! Requests of the host that wait until engines and kernels have let go of what they change.

use std::sync::mpsc::SyncSender;

use crate::inbox::Recovery;

/// Queues that are to be removed.
pub(crate) struct Removal {
    pub(crate) ids: Vec<u32>,
    /// The last launch that may know them.
    pub(crate) last_launch: u64,
    /// Who waits for it.
    pub(crate) reply: SyncSender<()>,
}

/// What has not been done.
#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) removals: Vec<Removal>,
    pub(crate) recoveries: Vec<Recovery>,
}

impl Requests {
    /// Queues are to be removed that launches up to number `last_launch` may know.
    pub(crate) fn remove(&mut self, ids: Vec<u32>, last_launch: u64, reply: SyncSender<()>) {
        self.removals.push(Removal { ids, last_launch, reply });
    }

    /// Drops all requests. Each caller that waits for an answer is told at once that none will come: its end of the channel
    /// is dropped.
    pub(crate) fn drop_all(&mut self) {
        self.removals.clear();
        self.recoveries.clear();
    }

    /// The device closes: its queues are as good as removed.
    pub(crate) fn answer_removals(&mut self) {
        for Removal { reply, .. } in self.removals.drain(..) {
            // The caller may have stopped waiting.
            let _ = reply.try_send(());
        }
    }
}
