//! From a task to the descriptor of the device's SoC.

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
