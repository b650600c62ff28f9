//! Notifies that the host has made by themselves (`aclrtCreateNotify`), named by their id. Ascend950 has no such form.

use super::Operation;
use crate::context::Core;
use crate::error::Error;
use crate::handle::{Slot, ThreadTable};
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::sq::{has_aclrt_notifies, max_notify_id};
use crate::task::{Request, Task};

/// Sets the notify.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
}

/// Waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) id: u64,
    pub(crate) timeout_s: u32,
}

/// The id, if the device's chip has the form and a descriptor can hold the id.
fn check(core: &Core<'_>, id: u64) -> Result<u32, Error> {
    let soc = core.device().soc();
    if !has_aclrt_notifies(soc) {
        return Err(Error::AclrtNotifyNotSupported(soc));
    }
    let limit = max_notify_id(soc);
    u32::try_from(id).ok().filter(|id| *id <= limit).ok_or(Error::BadNotifyId { id, limit })
}

impl Operation for Record {
    const ENTRY: EntryPoint = EntryPoint::ACLRT_NOTIFY_RECORD;

    fn task(self, _table: &ThreadTable, _slot: Option<Slot>) -> Option<Task> {
        None
    }

    fn nulls(self) -> Result<(), Error> {
        Ok(())
    }

    fn request(self, core: &Core<'_>, _handle: ThreadHandle, request: &mut Request) -> Result<(), Error> {
        *request = Request::single(Task::NotifyRecord { id: check(core, self.id)? });
        Ok(())
    }
}

impl Operation for Wait {
    const ENTRY: EntryPoint = EntryPoint::ACLRT_NOTIFY_WAIT;

    fn task(self, _table: &ThreadTable, _slot: Option<Slot>) -> Option<Task> {
        None
    }

    fn nulls(self) -> Result<(), Error> {
        Ok(())
    }

    fn request(self, core: &Core<'_>, _handle: ThreadHandle, request: &mut Request) -> Result<(), Error> {
        *request = Request::single(Task::NotifyWait { id: check(core, self.id)?, timeout_s: self.timeout_s });
        Ok(())
    }
}
