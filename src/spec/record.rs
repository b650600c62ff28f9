//! Records of calls: who queued which slots, from where. Written only if the host asks for them in the boot block.
//!
//! Each core has a ring of its own. The core writes records and `head`, the host writes `tail`. A full ring makes the core
//! wait: no record is dropped. A call writes its record after its slots and before it rings the doorbell; a call of several
//! groups writes one for each. The record that was written last for a slot tells who queued the task in it: a group whose
//! doorbell is refused, or a batch that is dropped, leaves its records behind, and its slots are never published under them.
//! Records of a launch lie before those of the next launch of the same core: a reader that notes `head` when a launch
//! begins and when it ends knows which are its own.

use super::queue::QueueStatus;

/// Distance between the rings of two cores, in bytes.
pub const RECORD_STRIDE: u64 = 0x1_0000;
/// Records that a ring has room for.
pub const RECORDS: usize = 511;
/// Return addresses in a record.
pub const RECORD_FRAMES: usize = 11;

/// Function of the API that was called. Open: any number read from a ring is a valid value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct EntryPoint(pub u32);

/// Numbers and names from one list.
macro_rules! entry_points {
    ($($number:literal $constant:ident $name:literal;)*) => {
        impl EntryPoint {
            $(#[doc = concat!("`", $name, "`, also through the safe interface.")]
            pub const $constant: Self = Self($number);)*

            /// Name of the C function; `None` for a number that is none's.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

entry_points! {
    1 LOCAL_COPY "HcommLocalCopyOnThread";
    2 LOCAL_REDUCE "HcommLocalReduceOnThread";
    3 NOTIFY_RECORD "HcommThreadNotifyRecordOnThread";
    4 NOTIFY_WAIT "HcommThreadNotifyWaitOnThread";
    5 ACLRT_NOTIFY_RECORD "HcommAclrtNotifyRecordOnThread";
    6 ACLRT_NOTIFY_WAIT "HcommAclrtNotifyWaitOnThread";
    7 SYNCHRONIZE "HcommThreadSynchronize";
    8 JOIN "HcommThreadJoin";
    9 WRITE "HcommWriteOnThread";
    10 READ "HcommReadOnThread";
    11 WRITE_REDUCE "HcommWriteReduceOnThread";
    12 READ_REDUCE "HcommReadReduceOnThread";
    13 WRITE_WITH_NOTIFY "HcommWriteWithNotifyOnThread";
    14 WRITE_REDUCE_WITH_NOTIFY "HcommWriteReduceWithNotifyOnThread";
    15 CHANNEL_NOTIFY_RECORD "HcommChannelNotifyRecordOnThread";
    16 CHANNEL_NOTIFY_WAIT "HcommChannelNotifyWaitOnThread";
    17 BATCH_TRANSFER "HcommBatchTransferOnThread";
    18 ACQUIRE_COMM "HcommAcquireComm";
    19 RELEASE_COMM "HcommReleaseComm";
}

/// One call, or one group of its tasks.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct CallRecord {
    /// Counts the records of the core, from 1.
    pub seq: u64,
    /// Status word of the queue during the call: generation of the thread, and resets.
    pub status: QueueStatus,
    /// The function.
    pub entry: EntryPoint,
    /// The queue.
    pub sq_id: u32,
    /// First slot that the call has written. For [`EntryPoint::SYNCHRONIZE`] and [`EntryPoint::JOIN`]: the head that the call
    /// has seen when it found the queue drained. For [`EntryPoint::ACQUIRE_COMM`] and [`EntryPoint::RELEASE_COMM`]: place of
    /// the communicator in the table.
    pub first: u32,
    /// Slots written, place holders included: `first`, and those after it around the end of the ring. 0 for a call that
    /// queues nothing.
    pub count: u32,
    /// Padding, zero.
    pub reserved: u64,
    /// Return addresses, innermost first, 0 after the last one. The first ones lie in the library itself; the first outside
    /// of it is where the kernel called.
    pub frames: [u64; RECORD_FRAMES],
}
const _: () = assert!(size_of::<CallRecord>() == 128);

/// Ring of one core.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct RecordRing {
    /// Written by the core, last: records ever put in. Record *n*, from 0, lies in slot `n % RECORDS`.
    pub head: u64,
    _pad: [u64; 7],
    /// Written by the host, last: records ever taken out.
    pub tail: u64,
    _pad2: [u64; 7],
    /// The records.
    pub slots: [CallRecord; RECORDS],
}
const _: () = assert!(size_of::<RecordRing>() as u64 == RECORD_STRIDE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_have_their_names() {
        assert_eq!(EntryPoint::LOCAL_COPY.name(), Some("HcommLocalCopyOnThread"));
        assert_eq!(EntryPoint::JOIN.name(), Some("HcommThreadJoin"));
        assert_eq!([EntryPoint(0).name(), EntryPoint(20).name()], [None; 2]);
    }
}
