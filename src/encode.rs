//! From a task to the descriptor of the device's SoC.

use crate::copy::Chunk;
use crate::error::Error;
use crate::spec::soc::Soc;
use crate::spec::stars910::{self, Stamp};
use crate::spec::{DeviceAddr, Sqe, stars950};

/// What a descriptor asks the device to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    Sdma { src: DeviceAddr, dst: DeviceAddr, len: u32, opcode: u8 },
    NotifyRecord { id: NotifyId },
    NotifyWait { id: NotifyId, timeout_s: u32 },
}

/// A notify id that fits into the descriptors of its device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotifyId(u32);

impl NotifyId {
    /// The largest.
    #[inline]
    pub(crate) fn limit(soc: Soc) -> u32 {
        match soc {
            Soc::Ascend950 => stars950::MAX_NOTIFY_ID,
            Soc::Ascend910B | Soc::Ascend910_93 => stars910::MAX_NOTIFY_ID,
        }
    }

    /// # Errors
    /// [`Error::NotifyIdTooLarge`]: it is never cut to the field.
    #[inline]
    pub(crate) fn new(soc: Soc, id: u32) -> Result<Self, Error> {
        let limit = Self::limit(soc);
        if id > limit { Err(Error::NotifyIdTooLarge { id, limit }) } else { Ok(Self(id)) }
    }
}

impl Task {
    /// The descriptor for an Ascend950.
    #[inline]
    pub(crate) fn for_950(self, task_id: u32) -> Sqe {
        match self {
            Self::Sdma { src, dst, len, opcode } => {
                stars950::Sdma::new(src, dst, len).with_opcode(opcode).build(task_id)
            }
            Self::NotifyRecord { id } => stars950::NotifyRecord::new(id.0).build(task_id),
            Self::NotifyWait { id, timeout_s } => stars950::NotifyWait::new(id.0, timeout_s).build(task_id),
        }
    }

    /// The descriptor for an Ascend910B or Ascend910_93.
    pub(crate) fn for_910(self, stamp: Stamp) -> Sqe {
        match self {
            Self::Sdma { src, dst, len, opcode } => stars910::Sdma::new(src, dst, len).with_opcode(opcode).build(stamp),
            Self::NotifyRecord { id } => stars910::notify_record(id.0, stamp),
            Self::NotifyWait { id, timeout_s } => stars910::notify_wait(id.0, timeout_s, stamp),
        }
    }
}

/// A descriptor that lacks what its place in a queue gives it, and, if it moves bytes, which ones: what lacks is zero.
///
/// On every SoC the first byte read is word 4 of an SDMA descriptor and the first byte written is word 5.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    sqe: Sqe,
    /// Bits of word 3 and of word 6 that the length of a chunk goes to.
    len_bits: [u64; 2],
    /// Bits of words 4 and 5 that the addresses go to: all or none.
    addr_bits: u64,
}

impl Draft {
    /// For `task`; the range of an SDMA task is not looked at.
    #[inline]
    pub(crate) fn new(soc: Soc, task: Task) -> Self {
        let (task, moves) = match task {
            Task::Sdma { opcode, .. } => (Task::Sdma { src: DeviceAddr(0), dst: DeviceAddr(0), len: 0, opcode }, true),
            other => (other, false),
        };
        let (low, high) = (u64::from(u32::MAX), u64::from(u32::MAX) << 32);
        let (sqe, len_bits) = match soc {
            Soc::Ascend950 => (task.for_950(0), [0, low]),
            Soc::Ascend910B | Soc::Ascend910_93 => (task.for_910(Stamp { stream_id: 0, task_id: 0 }), [high, 0]),
        };
        if moves { Self { sqe, len_bits, addr_bits: u64::MAX } } else { Self { sqe, len_bits: [0; 2], addr_bits: 0 } }
    }

    /// The descriptor of one chunk, with the `stamp` of its place: bits of word 0. No branch, and every word by itself: it
    /// goes straight into a slot.
    #[inline(always)]
    pub(crate) fn entry(&self, Chunk { dst, src, len }: Chunk, stamp: u64) -> Sqe {
        let Sqe([w0, w1, w2, w3, w4, w5, w6, w7]) = self.sqe;
        let (len, [high, low], addr) = (u64::from(len), self.len_bits, self.addr_bits);
        Sqe([w0 | stamp, w1, w2, w3 | len << 32 & high, w4 | src.0 & addr, w5 | dst.0 & addr, w6 | len & low, w7])
    }
}

/// Stamp of a task with this id in the queue of an Ascend950.
#[inline]
pub(crate) fn stamp_950(task_id: u32) -> u64 {
    u64::from(task_id) << 32
}

/// Stamp of a task in the queue of an Ascend910B or Ascend910_93.
#[inline]
pub(crate) fn stamp_910(Stamp { stream_id, task_id }: Stamp) -> u64 {
    u64::from(stream_id) << 32 | u64::from(task_id) << 48
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const CHUNK: Chunk = Chunk { dst: DeviceAddr(0x12c0_1234_5678), src: DeviceAddr(u64::MAX), len: 0x89ab_cdef };

    #[test]
    fn draft_with_range_and_stamp_is_the_descriptor() {
        let Chunk { dst, src, len } = CHUNK;
        let id = NotifyId::new(Soc::Ascend910B, 77).unwrap();
        let (record, wait) = (Task::NotifyRecord { id }, Task::NotifyWait { id, timeout_s: 5 });
        for task in [Task::Sdma { src, dst, len, opcode: 0x71 }, Task::Sdma { src, dst, len, opcode: 0 }, record, wait]
        {
            let entry = Draft::new(Soc::Ascend950, task).entry(CHUNK, stamp_950(0xfedc_ba98));
            assert_eq!(entry, task.for_950(0xfedc_ba98), "{task:?}");
            let stamp = Stamp { stream_id: 0xfedc, task_id: 0xba98 };
            for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
                assert_eq!(Draft::new(soc, task).entry(CHUNK, stamp_910(stamp)), task.for_910(stamp), "{task:?}");
            }
        }
    }
}
