//! Notifies that the host has made by themselves (`aclrtCreateNotify`), named by their id. Ascend950 has no such form.

use crate::device::Core;
use crate::encode::{NotifyId, Task};
use crate::error::Error;
use crate::port::{Launch, Platform, Port};
use crate::queue::submit;
use crate::spec::soc::Soc;
use crate::spec::thread::ThreadHandle;
use crate::thread::Thread;
use crate::work::Work;

/// What is done with the notify.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// It is set.
    Record,
    /// It is waited for.
    Wait { timeout_s: u32 },
}

/// Every check in its order, on the core that runs the caller. Answers as `HcommAclrtNotifyRecordOnThread` and
/// `HcommAclrtNotifyWaitOnThread`.
#[cold]
#[inline(never)]
pub(crate) fn by_id(handle: ThreadHandle, id: u64, action: Action) -> Result<(), Error> {
    let launch = Launch;
    let (core, thread) = Thread::on_core(&launch, handle)?;
    on_thread(&Platform, core, thread, id, action)
}

/// The task on a thread that was looked up.
fn on_thread<P: Port>(port: &P, core: &Core<'_>, thread: Thread, id: u64, action: Action) -> Result<(), Error> {
    let soc = core.device().soc();
    if soc == Soc::Ascend950 {
        return Err(Error::AclrtNotifyNotSupported(soc));
    }
    let limit = NotifyId::limit(soc);
    let bad = Error::BadNotifyId { id, limit };
    let id = NotifyId::new(soc, u32::try_from(id).map_err(|_| bad)?).map_err(|_| bad)?;
    let task = match action {
        Action::Record => Task::NotifyRecord { id },
        Action::Wait { timeout_s } => Task::NotifyWait { id, timeout_s },
    };
    submit(port, core, thread, &mut Work::one(soc, task))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::spec::stars910::{MAX_NOTIFY_ID, Stamp, notify_record, notify_wait};
    use crate::test_port::{STALE, TestPort};

    const LARGEST: u64 = MAX_NOTIFY_ID as u64;
    const WAIT: Action = Action::Wait { timeout_s: 77 };

    #[test]
    fn record_and_wait_name_the_id_in_the_stream_of_the_thread() {
        for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
            let mut port = TestPort::new(8);
            let device = port.device();
            device.set_soc(soc);
            let (thread, core) = (port.thread(&device), Core::new(&device));
            on_thread(&port, &core, thread, 5, Action::Record).unwrap();
            on_thread(&port, &core, thread, LARGEST, WAIT).unwrap();
            let stamp = |task_id| Stamp { stream_id: 3, task_id };
            let expected = [notify_record(5, stamp(0)), notify_wait(MAX_NOTIFY_ID, 77, stamp(1)), STALE];
            assert_eq!(port.slots()[..3], expected, "{soc:?}");
        }
    }

    #[test]
    fn id_that_does_not_fit_is_refused_and_never_cut() {
        for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
            let mut port = TestPort::new(8);
            let device = port.device();
            device.set_soc(soc);
            let (thread, core) = (port.thread(&device), Core::new(&device));
            // Each would be a good id if it were cut to 13 or 32 bits.
            for id in [LARGEST + 1, 1 << 17, 1 << 32, u64::MAX] {
                let error = Error::BadNotifyId { id, limit: MAX_NOTIFY_ID };
                for action in [Action::Record, WAIT] {
                    assert_eq!(on_thread(&port, &core, thread, id, action), Err(error));
                }
                assert_eq!(error.code(), 1);
            }
            assert_eq!(port.slots(), [STALE; 8]);
        }
    }

    #[test]
    fn ascend950_refuses_every_id() {
        let mut port = TestPort::new(8);
        let device = port.device();
        let (thread, core) = (port.thread(&device), Core::new(&device));
        for id in [0, u64::MAX] {
            let error = on_thread(&port, &core, thread, id, Action::Record).unwrap_err();
            assert_eq!(error, Error::AclrtNotifyNotSupported(Soc::Ascend950));
            let text = "notifies that are named by their id are not supported on Ascend950";
            assert_eq!((error.code(), error.to_string().as_str()), (5, text));
        }
        assert_eq!(port.slots(), [STALE; 8]);
    }
}
