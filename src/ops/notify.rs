//! Notifies of threads: a task of one queue sets one, a task of another waits for it.

use core::sync::atomic::Ordering;

use super::{Operation, outlined};
use crate::context::Core;
use crate::error::Error;
use crate::handle::{NotifyLook, Slot, ThreadTable};
use crate::spec::record::EntryPoint;
use crate::spec::soc::Soc;
use crate::spec::thread::ThreadHandle;
use crate::sq::{Fast, max_notify_id};
use crate::stop::Stop;
use crate::sync::fence;
use crate::task::{Request, Task};

/// Sets notify `index` of the thread of `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) to: ThreadHandle,
    pub(crate) index: u32,
}

/// Waits for notify `index` of the thread itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) index: u32,
    pub(crate) timeout_s: u32,
}

outlined!(notify_record(to: ThreadHandle, index: u32) => Record { to, index });
outlined!(notify_wait(index: u32, timeout_s: u32) => Wait { index, timeout_s });

/// Id of notify `index` of a thread that lived before this look at it. The caller checks afterwards that it still lives.
#[inline(always)]
fn look(slot: Slot, index: u32) -> Option<u32> {
    let NotifyLook::Id(id) = slot.notify(index) else { return None };
    // What was read counts if the thread lives now.
    fence(Ordering::Acquire);
    (id <= max_notify_id(Soc::Ascend950)).then_some(id)
}

/// Id of notify `index` of the live thread of `handle`, if a descriptor of the device's chip can hold it.
fn id(core: &Core<'_>, handle: ThreadHandle, index: u32) -> Result<u32, Error> {
    let slot = core.table().live(handle)?;
    let look = slot.notify(index);
    fence(Ordering::Acquire);
    if !slot.is_live() {
        return Err(Stop::bad_handle(handle).into());
    }
    let id = match look {
        NotifyLook::Id(id) => id,
        NotifyLook::Only(count) => return Err(Error::BadNotifyIndex { index, count }),
    };
    let limit = max_notify_id(core.device().soc());
    if id > limit { Err(Error::NotifyIdTooLarge { id, limit }) } else { Ok(id) }
}

impl Operation for Record {
    const ENTRY: EntryPoint = EntryPoint::NOTIFY_RECORD;

    #[inline(always)]
    fn task(self, table: &ThreadTable, _slot: Option<Slot>) -> Option<Task> {
        let to = table.live(self.to).ok()?;
        let id = look(to, self.index)?;
        to.is_live().then_some(Task::NotifyRecord { id })
    }

    fn nulls(self) -> Result<(), Error> {
        if self.to.0 == 0 { Err(Error::NullThread) } else { Ok(()) }
    }

    fn request(self, core: &Core<'_>, _handle: ThreadHandle, request: &mut Request) -> Result<(), Error> {
        *request = Request::single(Task::NotifyRecord { id: id(core, self.to, self.index)? });
        Ok(())
    }
}

impl Operation for Wait {
    const ENTRY: EntryPoint = EntryPoint::NOTIFY_WAIT;

    #[inline(always)]
    fn task(self, _table: &ThreadTable, slot: Option<Slot>) -> Option<Task> {
        // The thread lived when its queue was entered, and the status of the queue says next whether it still does.
        Some(Task::NotifyWait { id: look(slot?, self.index)?, timeout_s: self.timeout_s })
    }

    fn nulls(self) -> Result<(), Error> {
        Ok(())
    }

    fn request(self, core: &Core<'_>, handle: ThreadHandle, request: &mut Request) -> Result<(), Error> {
        let Self { index, timeout_s } = self;
        *request = Request::single(Task::NotifyWait { id: id(core, handle, index)?, timeout_s });
        Ok(())
    }
}
