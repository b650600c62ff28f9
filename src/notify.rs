//! Notifies of threads: a task of one queue sets one, a task of another waits for it.

use crate::device::Core;
use crate::encode::{NotifyId, Task};
use crate::error::Error;
use crate::port::{Launch, Platform, Port};
use crate::queue::submit;
use crate::short::{Short, submit_one};
use crate::spec::soc::Soc;
use crate::spec::thread::ThreadHandle;
use crate::thread::{Peer, Thread};
use crate::work::Work;

/// What is done with a notify, and with which.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Notify `index` of the thread of `to` is set.
    Record { to: ThreadHandle, index: u32 },
    /// Notify `index` of the thread itself is waited for.
    Wait { index: u32, timeout_s: u32 },
}

/// The short way, on the core that runs the caller: nothing needs a closer look.
#[inline(always)]
pub(crate) fn short(handle: ThreadHandle, action: Action) -> Short {
    let launch = Launch;
    let Some(core) = launch.core() else { return Short::NotTaken };
    submit_one(&Platform, core, handle, |is_enabled| match action {
        Action::Record { to, index } => {
            let id = Peer::look_up(core, to).ok()?.notify_id(index).ok()?;
            Some(Task::NotifyRecord { id: NotifyId::new(Soc::Ascend950, id).ok()? })
        }
        Action::Wait { .. } if !is_enabled => None,
        Action::Wait { index, timeout_s } => {
            // SAFETY: the short way asks for the task once it knows the handle, and the queue is enabled.
            let id = unsafe { Peer::known(handle) }.notify_id(index).ok()?;
            Some(Task::NotifyWait { id: NotifyId::new(Soc::Ascend950, id).ok()?, timeout_s })
        }
    })
}

/// Every check in its order, on the core that runs the caller. Answers as `HcommThreadNotifyRecordOnThread` and
/// `HcommThreadNotifyWaitOnThread`.
#[cold]
#[inline(never)]
pub(crate) fn long(handle: ThreadHandle, action: Action) -> Result<(), Error> {
    if matches!(action, Action::Record { to: ThreadHandle(0), .. }) {
        return Err(Error::NullThread);
    }
    let launch = Launch;
    let (core, thread) = Thread::on_core(&launch, handle)?;
    on_thread(&Platform, core, thread, action)
}

/// The task on a thread that was looked up.
fn on_thread<P: Port>(port: &P, core: &Core<'_>, thread: Thread, action: Action) -> Result<(), Error> {
    let id = |of: Peer, index| NotifyId::new(core.device().soc(), of.notify_id(index)?);
    let task = match action {
        Action::Record { to, index } => Task::NotifyRecord { id: id(Peer::look_up(core, to)?, index)? },
        Action::Wait { index, timeout_s } => Task::NotifyWait { id: id(thread.peer(), index)?, timeout_s },
    };
    submit(port, core, thread, &mut Work::one(core.device().soc(), task))
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
        on_thread(&port, &core, thread, Action::Record { to: thread.handle(), index: 1 }).unwrap();
        on_thread(&port, &core, thread, Action::Wait { index: 0, timeout_s: 77 }).unwrap();
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
            assert_eq!(on_thread(&port, &core, thread, record), Err(error));
            assert_eq!(on_thread(&port, &core, thread, Action::Wait { index, timeout_s: 1 }), Err(error));
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
        assert_eq!(on_thread(&port, &core, thread, record), Err(error));
        assert_eq!(on_thread(&port, &core, thread, Action::Wait { index: 2, timeout_s: 1 }), Err(error));
        assert_eq!(port.slots(), [STALE; 8]);
    }
}
