//! What differs between the SoCs: descriptors and task ids. [`Soc`] is looked at in this file only.

use crate::spec::soc::Soc;
use crate::spec::stars910::{self, LinkType, Stamp};
use crate::spec::stars950;
use crate::spec::ub::{Jetty, UbDoorbell};
use crate::spec::{DeviceAddr, Sqe};
use crate::task::{RemoteTask, Task, UbDoorbellTask};

use super::ids::{FlippingId, Holds, IdDraw, IdRange};

/// Which descriptors and ids a chip takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Stars950,
    Stars910,
}

impl Format {
    pub(crate) fn of(soc: Soc) -> Self {
        match soc {
            Soc::Ascend950 => Self::Stars950,
            Soc::Ascend910B | Soc::Ascend910_93 => Self::Stars910,
        }
    }
}

/// Where the next task id of a queue comes from: which of the two depends on the chip.
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
    pub(crate) fn straight(&self, format: Format) -> u32 {
        match format {
            Format::Stars950 => self.range.left(),
            // Numbered by the slow path: a stamp holds the stream, and place holders come between.
            Format::Stars910 => 0,
        }
    }

    /// Entries that `tasks` tasks take from here on: theirs, and those of the place holders between them.
    pub(crate) fn entries_for(&self, format: Format, tasks: u64) -> u64 {
        match format {
            Format::Stars950 => tasks,
            Format::Stars910 => self.flipping.entries_for(tasks),
        }
    }

    /// The place holder that comes before the next task, if there is one: before the first of a new round of ids.
    #[inline]
    pub(crate) fn take_place_holder(&mut self, format: Format, stream_id: u16) -> Option<Sqe> {
        match format {
            Format::Stars950 => None,
            Format::Stars910 => self.flipping.take_flip().map(|flips| stars910::flip_place_holder(stream_id, flips)),
        }
    }

    /// The descriptor of `task`, before which there is no place holder, with the next id.
    #[inline]
    pub(crate) fn encode<H: Holds>(
        &mut self,
        format: Format,
        stream_id: u16,
        draw: &mut IdDraw<'_, H>,
        task: impl Encode,
    ) -> Sqe {
        match format {
            Format::Stars950 => task.stars950(draw.next()),
            Format::Stars910 => task.stars910(Stamp { stream_id, task_id: self.flipping.take_id() }),
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

/// What becomes a descriptor, on each chip. Ids of notifies are at most [`max_notify_id`].
pub(crate) trait Encode: Copy {
    /// On an Ascend950.
    fn stars950(self, task_id: u32) -> Sqe;
    /// On an Ascend910B or Ascend910_93.
    fn stars910(self, stamp: Stamp) -> Sqe;
}

impl Encode for Task {
    #[inline(always)]
    fn stars950(self, task_id: u32) -> Sqe {
        match self {
            Self::Sdma { src, dst, len, opcode } => {
                stars950::Sdma::new(src, dst, len).with_opcode(opcode).build(task_id)
            }
            Self::NotifyRecord { id } => stars950::NotifyRecord::with_checked_id(id).build(task_id),
            Self::NotifyWait { id, timeout_s } => stars950::NotifyWait::with_checked_id(id, timeout_s).build(task_id),
        }
    }

    fn stars910(self, stamp: Stamp) -> Sqe {
        match self {
            Self::Sdma { src, dst, len, opcode } => stars910::Sdma::new(src, dst, len).with_opcode(opcode).build(stamp),
            Self::NotifyRecord { id } => stars910::record_with_checked_id(id, stamp),
            Self::NotifyWait { id, timeout_s } => stars910::wait_with_checked_id(id, timeout_s, stamp),
        }
    }
}

impl Encode for RemoteTask {
    // No channel of this chip asks for it: a doorbell that starts nothing, of a jetty that no channel has.
    fn stars950(self, task_id: u32) -> Sqe {
        UbDoorbell::new(Jetty::NONE, 0).build(task_id)
    }

    fn stars910(self, stamp: Stamp) -> Sqe {
        match self {
            Self::Sdma { src, dst, len, opcode } => {
                let sdma = stars910::Sdma::new(src, dst, len).with_opcode(opcode);
                sdma.with_link(LinkType::HCCS, QOS_HCCS).build(stamp)
            }
            Self::Record { register } => stars910::record_at_checked_addr(register, stamp),
        }
    }
}

impl Encode for UbDoorbellTask {
    #[inline(always)]
    fn stars950(self, task_id: u32) -> Sqe {
        UbDoorbell::new(self.jetty, self.producer_index).build(task_id)
    }

    // No channel of this chip asks for it: a write to no register.
    fn stars910(self, stamp: Stamp) -> Sqe {
        stars910::record_at_checked_addr(DeviceAddr(0), stamp)
    }
}
