//! Notifies of threads: a task of one queue sets one, a task of another waits for it.

use crate::device::Core;
use crate::encode::{NotifyId, Task};
use crate::error::Error;
use crate::port::Port;
use crate::queue::{One, submit};
use crate::thread::{Peer, Thread};

/// [`Thread::notify_record`](crate::Thread::notify_record) on any port.
#[inline]
pub(crate) fn record<P: Port>(port: &P, core: &Core<'_>, thread: &Thread, to: &Peer, index: u32) -> Result<(), Error> {
    let id = NotifyId::new(core.device().soc(), to.notify_id(index)?)?;
    submit(port, core, thread, One::new(Task::NotifyRecord { id }))
}

/// [`Thread::notify_wait`](crate::Thread::notify_wait) on any port.
#[inline]
pub(crate) fn wait<P: Port>(
    port: &P,
    core: &Core<'_>,
    thread: &Thread,
    index: u32,
    timeout_s: u32,
) -> Result<(), Error> {
    let id = NotifyId::new(core.device().soc(), thread.peer().notify_id(index)?)?;
    submit(port, core, thread, One::new(Task::NotifyWait { id, timeout_s }))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::spec::stars950::{NotifyRecord, NotifyWait};
    use crate::test_port::{STALE, TestPort};

    #[test]
    fn record_and_wait_name_the_id_of_the_index() {
        let mut port = TestPort::new(8);
        let device = port.device();
        let (thread, core) = (port.thread(&device), Core::new(&device));
        record(&port, &core, &thread, &thread.peer(), 1).unwrap();
        wait(&port, &core, &thread, 0, 77).unwrap();
        let expected = [NotifyRecord::new(0x1_ffff).build(0), NotifyWait::new(40, 77).build(1)];
        assert_eq!(port.slots()[..3], [expected[0], expected[1], STALE]);
    }

    #[test]
    fn index_the_thread_lacks_is_refused_with_ptr() {
        let mut port = TestPort::new(8);
        let device = port.device();
        let (thread, core) = (port.thread(&device), Core::new(&device));
        for index in [3, u32::MAX] {
            let error = Error::BadNotifyIndex { index, count: 3 };
            assert_eq!(record(&port, &core, &thread, &thread.peer(), index), Err(error));
            assert_eq!(wait(&port, &core, &thread, index, 1), Err(error));
            assert_eq!(error.code(), 2);
        }
        assert_eq!(port.slots(), [STALE; 8]);
    }

    #[test]
    fn id_wider_than_the_field_is_refused() {
        let mut port = TestPort::new(8);
        let device = port.device();
        let (thread, core) = (port.thread(&device), Core::new(&device));
        let error = Error::NotifyIdTooLarge { id: 0x2_0000, limit: 0x1_ffff };
        assert_eq!(record(&port, &core, &thread, &thread.peer(), 2), Err(error));
        assert_eq!(wait(&port, &core, &thread, 2, 1), Err(error));
        assert_eq!(port.slots(), [STALE; 8]);
    }
}
