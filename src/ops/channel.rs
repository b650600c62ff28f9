//! Operations on a channel: arguments to entries.
//!
//! As for the other operations there is a fast look, which gives the one entry of nearly every write, read and record on an
//! Ascend950, and the full check in the order of the interface.

use super::timeout_of;
use crate::channel::state::{Bound, Work};
use crate::channel::submit::{self, Ends};
use crate::channel::work::{Cursor, Item, Transfer, TransferKind, Transfers};
use crate::context::{Core, OnCore, on_core, with_core};
use crate::error::{ChannelOperation, Error};
use crate::port::Platform;
use crate::port::hooks::Hooks;
use crate::spec::DeviceAddr;
use crate::spec::channel::Protocol;
use crate::spec::data_type::SdmaReduce;
use crate::spec::record::EntryPoint;
use crate::sq::{self, EntrySource, Fast};
use crate::task::{RemoteTask, Request, Task};

/// A call with a fast path.
pub(crate) trait ChannelCall: EntrySource + Copy {
    /// The function.
    const ENTRY: EntryPoint;

    /// Whether the arguments may be those of [`work`](EntrySource::work): looked at before a queue is locked.
    fn is_simple(self) -> bool;

    /// What the call asks for.
    fn transfer(self) -> Transfer;
}

/// Write and read of `len` bytes: `READ` tells which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move<const READ: bool> {
    pub(crate) dst: DeviceAddr,
    pub(crate) src: DeviceAddr,
    pub(crate) len: u64,
}

impl<const READ: bool> EntrySource for Move<READ> {
    const BLOCKS: u32 = 1;

    #[inline(always)]
    fn work(self, bound: &Bound) -> Option<Work> {
        let Self { dst, src, len } = self;
        let (remote, local) = if READ { (src, dst) } else { (dst, src) };
        if len > bound.max_slice.get().into() || !bound.has_remote(remote, len) {
            return None;
        }
        let len = len as u32;
        Some(match READ {
            true => Work::Read { remote, local, len, reduce: None },
            false => Work::Write { remote, local, len, reduce: None, notify: None },
        })
    }
}

impl<const READ: bool> ChannelCall for Move<READ> {
    const ENTRY: EntryPoint = if READ { EntryPoint::READ } else { EntryPoint::WRITE };

    #[inline(always)]
    fn is_simple(self) -> bool {
        let Self { dst, src, len } = self;
        // Below 2^63 no range of one entry overflows.
        !(dst.is_null() || src.is_null() || len == 0 || (dst.0 | src.0) >> 63 != 0)
    }

    fn transfer(self) -> Transfer {
        let Self { dst, src, len } = self;
        let kind = if READ { TransferKind::Read } else { TransferKind::Write };
        Transfer::Copy { kind, dst, src, len, notify: None }
    }
}

/// Sets notify `index` of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) index: u32,
}

impl EntrySource for Record {
    const BLOCKS: u32 = 1;

    #[inline(always)]
    fn work(self, bound: &Bound) -> Option<Work> {
        (self.index < bound.peer_notify_count).then_some(Work::Record { notify: self.index })
    }
}

impl ChannelCall for Record {
    const ENTRY: EntryPoint = EntryPoint::CHANNEL_NOTIFY_RECORD;

    #[inline(always)]
    fn is_simple(self) -> bool {
        true
    }

    fn transfer(self) -> Transfer {
        Transfer::Record { notify: self.index }
    }
}

/// The fast path of a call, on the core that runs the caller.
#[inline(always)]
pub(crate) fn fast<C: ChannelCall>(ends: Ends, call: C) -> Fast {
    #[cfg(not(feature = "extern-abi"))]
    return with_core(FastPath { ends, call }, Fast::NotTaken);
    #[cfg(feature = "extern-abi")]
    {
        let _ = (ends, call);
        Fast::NotTaken
    }
}

struct FastPath<C> {
    ends: Ends,
    call: C,
}

impl<C: ChannelCall> OnCore for FastPath<C> {
    type Output = Fast;

    #[inline(always)]
    fn run(self, core: &Core<'_>, io: &Hooks) -> Fast {
        let Self { ends: Ends { thread, channel }, call } = self;
        if !call.is_simple() {
            return Fast::NotTaken;
        }
        sq::try_entry(io, core.device().queues(), core.queues(), thread, channel, call)
    }
}

/// What is left of a call after its fast path: all of it, if that has done nothing.
#[inline(always)]
pub(crate) fn finish<C: ChannelCall>(ends: Ends, call: C, fast: Fast) -> Result<(), Error> {
    match fast {
        Fast::Queued => Ok(()),
        Fast::Refused { sq_id } => Err(Error::DoorbellRefused { sq_id }),
        Fast::NotTaken => transfer(ends, call.transfer(), C::ENTRY),
    }
}

/// A whole call of one transfer, every check in its order.
#[cold]
#[inline(never)]
pub(crate) fn transfer(ends: Ends, transfer: Transfer, entry: EntryPoint) -> Result<(), Error> {
    transfer.check_nulls()?;
    #[cfg(not(feature = "extern-abi"))]
    return on_core(|core, io| run(io, core, ends, &[transfer][..], false, entry));
    #[cfg(feature = "extern-abi")]
    {
        let _ = entry;
        crate::extern_channel::transfer(ends, transfer)
    }
}

/// Transfers with one doorbell.
#[cold]
#[inline(never)]
pub(crate) fn batch(ends: Ends, transfers: &dyn Transfers) -> Result<(), Error> {
    #[cfg(not(feature = "extern-abi"))]
    return on_core(|core, io| run(io, core, ends, transfers, true, EntryPoint::BATCH_TRANSFER));
    #[cfg(feature = "extern-abi")]
    crate::extern_channel::batch(ends, transfers)
}

/// A call on handles that are still to be looked up.
pub(crate) fn run<P: Platform, T: Transfers + ?Sized>(
    io: &P,
    core: &Core<'_>,
    ends: Ends,
    transfers: &T,
    is_batch: bool,
    entry: EntryPoint,
) -> Result<(), Error> {
    let bound = submit::enter(core, ends)?;
    let transfers = &ByRef(transfers);
    if is_batch {
        if bound.protocol == Protocol::HCCS {
            return Err(not_supported(&bound, ChannelOperation::Batch));
        }
        if transfers.count() == 0 {
            return Err(Error::NoTransfers);
        }
        for index in 0..transfers.count() {
            transfers.get(index)?.check_nulls()?;
        }
    }
    if bound.protocol == Protocol::HCCS {
        return run_hccs(io, core, ends, &bound, transfers, entry);
    }
    submit::submit(io, core, ends, &bound, transfers, is_batch, entry)
}

/// One transfer as tasks of the thread's queue: Ascend910B, Ascend910_93.
fn run_hccs<P: Platform>(
    io: &P,
    core: &Core<'_>,
    ends: Ends,
    bound: &Bound,
    transfers: &dyn Transfers,
    entry: EntryPoint,
) -> Result<(), Error> {
    let transfer = transfers.get(0)?;
    if matches!(transfer, Transfer::Copy { notify: Some(_), .. } | Transfer::Reduce { notify: Some(_), .. }) {
        return Err(not_supported(bound, ChannelOperation::WithNotify));
    }
    let opcode = match transfer {
        // What SDMA computes, not what the engine of an Ascend950's channel does.
        Transfer::Reduce { op, data_type, .. } => {
            SdmaReduce::new(op, data_type).ok_or(Error::ChannelReduce { op, data_type })?.opcode
        }
        _ => 0,
    };
    // Checks the rest.
    Cursor::new(transfers, bound, false)?;
    let request = match transfer.item(bound)? {
        Item::Record { notify } => Request::single(RemoteTask::Record { register: bound.peer_notify(notify) }),
        Item::Move { len: 0, .. } => return Ok(()),
        Item::Move { kind, remote, local, len, .. } => {
            let (dst, src) = if kind == TransferKind::Write { (remote, local) } else { (local, remote) };
            Request::remote(dst, src, len, opcode)
        }
    };
    sq::submit(io, core.device().queues(), core.queues(), ends.thread, request, entry)
}

fn not_supported(bound: &Bound, operation: ChannelOperation) -> Error {
    Error::ChannelOperation { operation, protocol: bound.protocol }
}

/// Waits for notify `index` of this end, for up to `timeout_s` seconds (0 = without limit); `None`: for as long as the core's
/// limit says.
#[cold]
#[inline(never)]
pub(crate) fn wait(ends: Ends, index: u32, timeout_s: Option<u32>) -> Result<(), Error> {
    #[cfg(not(feature = "extern-abi"))]
    return on_core(|core, io| wait_on(io, core, ends, index, timeout_s));
    #[cfg(feature = "extern-abi")]
    crate::extern_channel::wait(ends, index, timeout_s)
}

pub(crate) fn wait_on<P: Platform>(
    io: &P,
    core: &Core<'_>,
    ends: Ends,
    index: u32,
    timeout_s: Option<u32>,
) -> Result<(), Error> {
    let id = submit::enter(core, ends)?.own_notify(index)?;
    let request = Request::single(Task::NotifyWait { id, timeout_s: timeout_of(core, timeout_s) });
    sq::submit(io, core.device().queues(), core.queues(), ends.thread, request, EntryPoint::CHANNEL_NOTIFY_WAIT)
}

/// Orders what follows on the channel behind what came before.
#[cold]
#[inline(never)]
pub(crate) fn fence(ends: Ends) -> Result<(), Error> {
    #[cfg(not(feature = "extern-abi"))]
    return on_core(|core, _| {
        submit::enter(core, ends)?;
        submit::fence(core, ends);
        Ok(())
    });
    #[cfg(feature = "extern-abi")]
    crate::extern_channel::fence(ends)
}

/// Lets a list without a fixed size be asked as any other.
struct ByRef<'t, T: ?Sized>(&'t T);

impl<T: Transfers + ?Sized> Transfers for ByRef<'_, T> {
    fn count(&self) -> u32 {
        self.0.count()
    }

    fn get(&self, index: u32) -> Result<Transfer, Error> {
        self.0.get(index)
    }
}
