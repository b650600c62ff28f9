//! How queues and the whole device are reset: suspend, resume, restart.

use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::queue::QueueStatus;

use super::cpu::CpuFault;
use super::decode::{self, Action};
use super::error::DeviceError;
use super::event::What;
use super::host_stream::DroppedTasks;
use super::inbox::Recovery;
use super::memory::Memory;
use super::queue::{HwQueue, QueueConfig, Registers};
use super::scheduler::Scheduler;
use super::stall::Stall;

impl<M: Memory> Scheduler<M> {
    /// Queues run nothing more. What they had not run is dropped, and the launches that rang it end with an error.
    pub(super) fn suspend(&mut self, ids: &[u32]) {
        let launches = self.launches.started();
        for &sq_id in ids {
            self.drop_tasks(sq_id, "suspended");
            self.shared.events.tell(|| What::QueueSuspended { sq_id });
            self.shared.touch_status(sq_id);
            if let Some(queue) = self.queue_mut(sq_id) {
                if !queue.suspended {
                    queue.suspended_after = launches;
                }
                queue.suspended = true;
                Registers::of(&*self.shared.memory, sq_id).set_state(QueueStatus::SUSPENDED);
            }
        }
    }

    /// Drops what a queue has not run. An engine finishes what it has begun.
    pub(super) fn drop_tasks(&mut self, sq_id: u32, reason: &'static str) {
        // What was rung before counts as rung: it is part of what is dropped.
        if let Err(error) = self.observe(sq_id) {
            return self.bad_doorbell(sq_id, error);
        }
        let Some(queue) = self.queue_mut(sq_id) else { return };
        let (name, last_rung, depth) = (queue.config.name(), queue.last_rung, queue.config.depth);
        let pending = if queue.rung >= queue.head { queue.rung - queue.head } else { depth - queue.head + queue.rung };
        let begun = u32::from(queue.busy);
        queue.rung = (queue.head + begun) % depth;
        let dropped = pending - begun;
        if dropped == 0 {
            return;
        }
        let first = queue.rung;
        self.flush_doorbells(sq_id, first, dropped);
        self.shared.events.tell(|| What::TasksDropped { sq_id, first, count: dropped, reason });
        let Some(queue) = self.queue_mut(sq_id) else { return };
        // They count as done: no operation waits for them.
        queue.count_done(u64::from(dropped));
        queue.wait = None;
        let dropped = DroppedTasks {
            sq_id,
            generation: queue.generation,
            first: queue.done_total - u64::from(dropped) + u64::from(begun),
            last_rung,
            last_unsure: queue.last_unsure,
            users: queue.users.clone(),
            error: DeviceError::Dropped { queue: name, dropped, reason },
        };
        self.streams.note_dropped(&dropped);
    }

    /// What channels would have started by doorbells that are dropped never runs.
    fn flush_doorbells(&mut self, sq_id: u32, first: u32, count: u32) {
        if self.channels.is_empty() {
            return;
        }
        let Some(QueueConfig { base, depth, .. }) = self.queue_mut(sq_id).map(|queue| queue.config) else { return };
        for slot in (first..first + count).map(|slot| slot % depth) {
            let addr = base + u64::from(slot) * decode::SQE_LEN as u64;
            let sqe = self.shared.memory.load_sqe(addr).ok();
            let task = sqe.and_then(|sqe| decode::decode(self.shared.soc, &sqe).ok());
            if let Some(Action::UbDoorbell { jetty, producer_index }) = task.map(|task| task.action) {
                self.flush_channel(jetty, producer_index);
            }
        }
    }

    /// Does what has waited for engines and kernels. Whether there was anything that need not wait any more.
    pub(super) fn recover(&mut self) -> bool {
        let recoveries = std::mem::take(&mut self.requests.recoveries);
        let waiting = recoveries.len();
        for recovery in recoveries {
            match recovery {
                Recovery::Restart(_) if self.queues.iter().any(|queue| queue.busy) => {
                    self.requests.recoveries.push(recovery);
                }
                Recovery::Resume(ref ids, _) if !self.can_resume(ids) => self.requests.recoveries.push(recovery),
                Recovery::Resume(ids, reply) => {
                    ids.iter().for_each(|sq_id| self.restart_queue(*sq_id));
                    // The caller may have stopped waiting.
                    let _ = reply.try_send(());
                    self.shared.turn.answered();
                }
                Recovery::Restart(reply) => {
                    let _ = reply.try_send(self.restart());
                    self.shared.turn.answered();
                }
            }
        }
        self.requests.recoveries.len() < waiting
    }

    fn restart(&mut self) -> Result<(), String> {
        self.end_all(&DeviceError::Restarted);
        self.cpu.restart().map_err(|fault| match fault {
            CpuFault::Cpu(text) | CpuFault::Kernel(text) => text,
        })?;
        self.launches.reset();
        for args in self.launches.take_kept() {
            self.shared.free_own(args, None);
        }
        for sq_id in 0..self.shared.queues.count() {
            match self.queue_mut(sq_id) {
                Some(_) => self.restart_queue(sq_id),
                // Somebody may have rung it all the same.
                None => Registers::of(&*self.shared.memory, sq_id).reset(),
            }
        }
        self.restart_channels();
        self.notifies.clear();
        self.queues.find_deadline(self.now);
        self.shared.failed.clear();
        Ok(())
    }

    /// Empties a queue: head and tail are 0, and the device crate finds that out by the epoch. Its faults end.
    fn restart_queue(&mut self, sq_id: u32) {
        self.shared.touch_status(sq_id);
        let Some(queue) = self.queue_mut(sq_id) else { return };
        (queue.head, queue.rung, queue.count) = (0, 0, 0);
        (queue.stopped, queue.suspended) = (false, false);
        queue.wait = None;
        queue.count_done(queue.rung_total - queue.done_total);
        let rung_total = queue.rung_total;
        queue.hold = Stall::default();
        let registers = Registers::of(&*self.shared.memory, sq_id);
        registers.reset();
        if let Some(entry) = self.shared.queues.get(sq_id) {
            entry.refuse_at.store(0, Ordering::Relaxed);
            entry.rung.store(rung_total, Ordering::Relaxed);
            // No kernel rings now. The next doorbell must be told.
            entry.noticed.store(false, Ordering::Relaxed);
        }
        self.shared.events.forget_owners(sq_id);
        self.shared.events.tell(|| What::QueueReset { sq_id });
        registers.reset_epoch();
    }

    /// Whether nothing works on these queues any more. A kernel that has looked at the status of one before it was suspended
    /// may still ring; one that was started later has seen that it is.
    fn can_resume(&self, ids: &[u32]) -> bool {
        let mut queues = ids.iter().filter_map(|id| self.queues.get(*id));
        let may_ring = |queue: &HwQueue| {
            let last = if queue.suspended { queue.suspended_after } else { u64::MAX };
            self.streams.kernels().any(|number| number <= last)
        };
        !queues.any(|queue| queue.busy || may_ring(queue))
    }
}
