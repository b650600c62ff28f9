//! What differs between the SoCs: descriptors and task ids. Each has one type here; [`Soc`] is looked at in this file only.

use crate::spec::soc::Soc;
use crate::spec::stars910::{self, LinkType, Stamp};
use crate::spec::stars950;
use crate::spec::ub::{Jetty, UbDoorbell};
use crate::spec::{DeviceAddr, Sqe};
use crate::task::Task;

use super::ids::{Flip, FlippingId, Holds, IdDraw, IdRange};

/// Where the next task id of a queue comes from: which of the two depends on the SoC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    /// Ascend950.
    pub(crate) range: IdRange,
    /// Ascend910B, Ascend910_93.
    pub(crate) flipping: FlippingId,
}

impl Ids {
    /// Of a queue that has had no task.
    pub(crate) const FIRST: Self = Self { range: IdRange::EMPTY, flipping: FlippingId::FIRST };

    /// Ids that follow each other and need nothing but counting: the fast path takes these.
    pub(crate) fn straight(&self, soc: Soc) -> u32 {
        match soc {
            Soc::Ascend950 => self.range.left(),
            // Numbered by the slow path: a stamp holds the stream, and place holders come between.
            Soc::Ascend910B | Soc::Ascend910_93 => 0,
        }
    }

    /// Entries that `tasks` tasks take from here on: theirs, and those of the place holders between them.
    pub(crate) fn entries_for(&self, soc: Soc, tasks: u64) -> u64 {
        match soc {
            Soc::Ascend950 => tasks,
            Soc::Ascend910B | Soc::Ascend910_93 => self.flipping.entries_for(tasks),
        }
    }

    /// The next entry: of `task`, or a place holder before the first task of a new round of ids.
    #[inline]
    pub(crate) fn next_entry<H: Holds>(
        &mut self,
        soc: Soc,
        stream_id: u16,
        draw: &mut IdDraw<'_, H>,
        task: impl FnOnce() -> Task,
    ) -> Sqe {
        match soc {
            Soc::Ascend950 => Stars950::encode(task(), draw.next()),
            Soc::Ascend910B | Soc::Ascend910_93 => match self.flipping.next() {
                Flip::TaskId(task_id) => Stars910::encode(task(), Stamp { stream_id, task_id }),
                Flip::PlaceHolder(flips) => stars910::flip_place_holder(stream_id, flips),
            },
        }
    }
}

/// Largest notify id that a descriptor holds.
#[inline]
pub(crate) fn max_notify_id(soc: Soc) -> u32 {
    match soc {
        Soc::Ascend950 => stars950::MAX_NOTIFY_ID,
        Soc::Ascend910B | Soc::Ascend910_93 => stars910::MAX_NOTIFY_ID,
    }
}

/// Whether a kernel may name a notify by its id.
pub(crate) fn has_aclrt_notifies(soc: Soc) -> bool {
    match soc {
        Soc::Ascend950 => false,
        Soc::Ascend910B | Soc::Ascend910_93 => true,
    }
}

/// QoS of copies between devices.
const QOS_HCCS: u8 = 6;

/// Descriptors of an Ascend950.
pub(crate) struct Stars950;

impl Stars950 {
    /// The descriptor; of a notify whose id is at most [`max_notify_id`].
    #[inline(always)]
    pub(crate) fn encode(task: Task, task_id: u32) -> Sqe {
        match task {
            Task::Sdma { src, dst, len, opcode } => {
                stars950::Sdma::new(src, dst, len).with_opcode(opcode).build(task_id)
            }
            Task::NotifyRecord { id } => stars950::NotifyRecord::with_checked_id(id).build(task_id),
            Task::NotifyWait { id, timeout_s } => stars950::NotifyWait::with_checked_id(id, timeout_s).build(task_id),
            Task::UbDoorbell { jetty, producer_index } => UbDoorbell::new(jetty, producer_index).build(task_id),
            // No channel of this chip asks for these: a doorbell that starts nothing, of a jetty that no channel has.
            Task::RemoteSdma { .. } | Task::RemoteRecord { .. } => UbDoorbell::new(Jetty::NONE, 0).build(task_id),
        }
    }
}

/// Descriptors of an Ascend910B or Ascend910_93.
pub(crate) struct Stars910;

impl Stars910 {
    /// The descriptor; of a notify whose id is at most [`max_notify_id`].
    pub(crate) fn encode(task: Task, stamp: Stamp) -> Sqe {
        match task {
            Task::Sdma { src, dst, len, opcode } => stars910::Sdma::new(src, dst, len).with_opcode(opcode).build(stamp),
            Task::NotifyRecord { id } => stars910::record_with_checked_id(id, stamp),
            Task::NotifyWait { id, timeout_s } => stars910::wait_with_checked_id(id, timeout_s, stamp),
            Task::RemoteSdma { src, dst, len, opcode } => {
                let sdma = stars910::Sdma::new(src, dst, len).with_opcode(opcode);
                sdma.with_link(LinkType::HCCS, QOS_HCCS).build(stamp)
            }
            Task::RemoteRecord { register } => stars910::record_at_checked_addr(register, stamp),
            // No channel of this chip asks for it: a write to no register.
            Task::UbDoorbell { .. } => stars910::record_at_checked_addr(DeviceAddr(0), stamp),
        }
    }
}
