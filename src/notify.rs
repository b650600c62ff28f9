//! Notifies of threads: a task of one queue sets one, a task of another waits for it.

use crate::device::Core;
use crate::encode::{NotifyId, Task};
use crate::error::Error;
use crate::port::{Platform, Port, with_core};
use crate::queue::{One, Short, submit, submit_one};
use crate::spec::thread::ThreadHandle;
use crate::thread::{Peer, Thread};

/// What is done with a notify, and with which.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Notify `index` of the thread of `to` is set.
    Record { to: ThreadHandle, index: u32 },
    /// Notify `index` of the thread itself is waited for.
    Wait { index: u32, timeout_s: u32 },
}

impl Action {
    /// The task on the thread of `handle`.
    #[inline]
    fn task(self, core: &Core<'_>, handle: ThreadHandle) -> Result<Task, Error> {
        let id = |of, index| NotifyId::new(core.device().soc(), Peer::look_up(core, of)?.notify_id(index)?);
        Ok(match self {
            Self::Record { to, index } => Task::NotifyRecord { id: id(to, index)? },
            Self::Wait { index, timeout_s } => Task::NotifyWait { id: id(handle, index)?, timeout_s },
        })
    }
}

/// The short way, on the core that runs the caller: nothing needs a closer look.
#[inline]
pub(crate) fn short(handle: ThreadHandle, action: Action) -> Short {
    with_core(|core| match action.task(core, handle) {
        Ok(task) => submit_one(&Platform, core, handle, task),
        Err(_) => Short::NotTaken,
    })
    .unwrap_or(Short::NotTaken)
}

/// Every check in its order, on the core that runs the caller. Answers as `HcommThreadNotifyRecordOnThread` and
/// `HcommThreadNotifyWaitOnThread`.
#[cold]
#[inline(never)]
pub(crate) fn long(handle: ThreadHandle, action: Action) -> Result<(), Error> {
    if matches!(action, Action::Record { to: ThreadHandle(0), .. }) {
        return Err(Error::NullThread);
    }
    let thread = Thread::from_handle(handle)?;
    with_core(|core| on_thread(&Platform, core, &thread, action)).unwrap_or(Err(Error::NoCore))
}

/// The task on a thread that was looked up.
fn on_thread<P: Port>(port: &P, core: &Core<'_>, thread: &Thread, action: Action) -> Result<(), Error> {
    submit(port, core, thread, One::new(action.task(core, thread.handle())?))
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
        on_thread(&port, &core, &thread, Action::Record { to: thread.handle(), index: 1 }).unwrap();
        on_thread(&port, &core, &thread, Action::Wait { index: 0, timeout_s: 77 }).unwrap();
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
            let record = Action::Record { to: thread.handle(), index };
            assert_eq!(on_thread(&port, &core, &thread, record), Err(error));
            assert_eq!(on_thread(&port, &core, &thread, Action::Wait { index, timeout_s: 1 }), Err(error));
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
        let record = Action::Record { to: thread.handle(), index: 2 };
        assert_eq!(on_thread(&port, &core, &thread, record), Err(error));
        assert_eq!(on_thread(&port, &core, &thread, Action::Wait { index: 2, timeout_s: 1 }), Err(error));
        assert_eq!(port.slots(), [STALE; 8]);
    }
}
