//! What stands around a kernel on a card: head of the launch, queues, core, status.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicU32, Ordering, fence};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::card::{
    CARD_VERSION, CardEnd, CardLaunch, CardState, CardStatus, CardTask, REASON_MAX, STATUS_OFFSET,
};
use hcomm_aicpu::spec::code::HCCL_SUCCESS;
use hcomm_aicpu::spec::params::{KernelParams, ParamsError, ParamsHeader, check};
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{Error, Peer, Thread, timeout};
use hcomm_hal::Hal;

use crate::error::CardError;
use crate::guard::guarded;
use crate::platform::{DEVICE, FreeCore, Reason, take_reason};
use crate::threads::{self, Entered};
use crate::{line::Line, log as card_log};

/// What a kernel returns to the scheduler: other numbers have meanings of their own there.
const ANSWER_DONE: u32 = 0;
const ANSWER_FAILED: u32 = 1;

/// Runs a kernel of this library on a card, and gives what its C function returns: 0, or 1 if it failed. How it ended is in the
/// status that the head of the launch names. `run` gets the kernel's own parameters and how many bytes they have.
///
/// After an error the end notify that the launch names is recorded, unless a task of its queue has failed: that queue runs
/// nothing any more, and the status says that no end notify will come.
///
/// # Safety
/// `args` is null, or a [`ParamsHeader`] and the address of a status can be read there; if it is the header of a [`CardLaunch`], all
/// of it and the kernel's own parameters. The status is null or that of a [`CardStatus`] that nothing else writes.
pub unsafe fn launch(
    name: &'static str,
    args: *const c_void,
    run: impl FnOnce(*const c_void, u64) -> Result<i32, Error>,
) -> u32 {
    let mut run = Some(run);
    let mut once = |own: *const c_void, size: u64| match run.take() {
        Some(run) => run(own, size),
        None => Ok(HCCL_SUCCESS),
    };
    // SAFETY: passed on.
    unsafe { carry_out(name, args, &mut once) }
}

/// A kernel: gets its own parameters and how many bytes they have.
type Kernel<'k> = &'k mut dyn FnMut(*const c_void, u64) -> Result<i32, Error>;

/// [`launch()`], once for all kernels.
///
/// # Safety
/// As for [`launch()`].
#[inline(never)]
unsafe fn carry_out(name: &'static str, args: *const c_void, run: Kernel<'_>) -> u32 {
    // SAFETY: passed on.
    let Some(head) = (unsafe { read_params::<CardLaunch>(name, args) }) else { return ANSWER_FAILED };
    let own = args.cast::<u8>().wrapping_add(size_of::<CardLaunch>()).cast::<c_void>();
    let mut status = CardStatus { version: CARD_VERSION, ..CardStatus::NEW };
    match threads::enter(&Hal::of_process(), head.threads) {
        Ok(entered) => {
            let (result, refused) = on_a_core(&head, || run(own, head.params_size));
            status.code = result.as_ref().map_or_else(CardError::code, |code| *code);
            if status.code != HCCL_SUCCESS {
                let reason = match result {
                    _ if !refused.bytes().is_empty() => refused,
                    Ok(code) => Reason::new(format_args!("{name}: returned {code}")),
                    Err(error) => Reason::new(format_args!("{name}: {error}")),
                };
                set_reason(&mut status, &reason);
                status.task = first_failure(&entered);
                status.end = end_after_failure(&head, &status.task);
            }
        }
        Err(error) => {
            log::error!("{name}: {error}");
            set_reason(&mut status, &Line::new(format_args!("{name}: {error}")));
            status.code = error.code();
            // Without its threads the launch can record nothing.
            status.end = if head.end_thread == 0 { CardEnd::KERNEL } else { CardEnd::NONE };
        }
    }
    finish(head.status, status)
}

/// Runs `run` on a free core, with the launch's limit of waits for room. Gives the first refused call, too.
fn on_a_core(head: &CardLaunch, run: impl FnOnce() -> Result<i32, Error>) -> (Result<i32, CardError>, Reason) {
    let Some(core) = FreeCore::take() else { return (Err(CardError::NoCore), Reason::EMPTY) };
    let kernel = || {
        // What the kernel before on this thread of execution has left.
        take_reason();
        let run = || timeout::set_sq_full(seconds(head.timeout_ms)).and_then(|()| run());
        let result = guarded(run).map_or(Err(CardError::Panicked), |result| result.map_err(CardError::from));
        (result, take_reason())
    };
    match DEVICE.run(core.0, kernel) {
        Ok(((result, reason), end)) if result != Ok(HCCL_SUCCESS) || !end.batch_left_open => (result, reason),
        Ok((_, _)) => (Err(CardError::BatchLeftOpen), Reason::EMPTY),
        Err(_) => (Err(CardError::NoCore), Reason::EMPTY),
    }
}

/// Never 0, which would mean no limit.
fn seconds(ms: u32) -> f32 {
    ms.div_ceil(1000).max(1) as f32
}

/// The first failed task of the launch's threads. What can't be asked is left out: the launch has an error already.
fn first_failure(entered: &Entered) -> CardTask {
    let failed = |handle| match threads::failed_task(handle) {
        Ok(failed) => failed,
        Err(error) => {
            log::warn!("no reports of thread {handle:#x}: {error}");
            None
        }
    };
    entered.handles().find_map(failed).unwrap_or_default()
}

/// Records the end notify after an error, if the queue runs it.
fn end_after_failure(head: &CardLaunch, failed: &CardTask) -> CardEnd {
    if head.end_thread == 0 {
        return CardEnd::KERNEL;
    }
    if failed.thread == head.end_thread {
        return CardEnd::NONE;
    }
    let record = || {
        timeout::set_sq_full(seconds(head.timeout_ms))?;
        let thread = Thread::from_handle(ThreadHandle(head.end_thread))?;
        thread.notify_record(Peer::from_handle(ThreadHandle(head.end_peer))?, head.end_notify)
    };
    let recorded = FreeCore::take().and_then(|core| DEVICE.run(core.0, record).ok());
    match recorded {
        Some((Ok(()), _)) => CardEnd::RECORDED,
        Some((Err(error), _)) => {
            log::error!("no end notify: {error}");
            CardEnd::NONE
        }
        None => CardEnd::NONE,
    }
}

pub(crate) fn set_reason(status: &mut CardStatus, reason: &Line<REASON_MAX>) {
    let bytes = reason.bytes();
    status.reason[..bytes.len()].copy_from_slice(bytes);
    status.reason_len = bytes.len() as u32;
}

/// Ends a kernel: writes its status, and gives what its C function returns.
pub(crate) fn finish(to: DeviceAddr, mut status: CardStatus) -> u32 {
    let is_done = status.code == HCCL_SUCCESS;
    status.state = if is_done { CardState::DONE } else { CardState::FAILED };
    write_status(to, &status);
    if is_done { ANSWER_DONE } else { ANSWER_FAILED }
}

/// Ends a kernel that has no more to say than its result.
pub(crate) fn finish_with(name: &str, to: DeviceAddr, mut status: CardStatus, result: Result<(), CardError>) -> u32 {
    if let Err(error) = result {
        log::error!("{name}: {error}");
        set_reason(&mut status, &Line::new(format_args!("{name}: {error}")));
        status.code = error.code();
    }
    finish(to, status)
}

/// Writes a status, the state last.
fn write_status(to: DeviceAddr, status: &CardStatus) {
    let to = with_exposed_provenance_mut::<CardStatus>(to.0 as usize);
    if to.is_null() || !to.cast::<u64>().is_aligned() {
        log::error!("no status can be written at {to:p}: it must be a multiple of 8 above 0");
        return;
    }
    // SAFETY: the host owes a status there, which nothing else writes (`launch`).
    unsafe { to.write_volatile(CardStatus { state: CardState::PENDING, ..*status }) };
    fence(Ordering::Release);
    // SAFETY: as above, and aligned; the host reads the word after the rest.
    unsafe { AtomicU32::from_ptr((&raw mut (*to).state).cast()) }.store(status.state.0, Ordering::Release);
}

/// A copy of the parameters at `args`. `None`: they are not a `P`; the log and, if the magic is right, the status say why.
///
/// # Safety
/// As for [`launch`], with `P` for the head.
pub(crate) unsafe fn read_params<P: KernelParams>(name: &'static str, args: *const c_void) -> Option<P> {
    card_log::install();
    if args.is_null() {
        log::error!("{name}: no parameters");
        return None;
    }
    // SAFETY: not null, so the caller owes a header there, whatever its alignment.
    let header = unsafe { args.cast::<ParamsHeader>().read_unaligned() };
    match check::<P>(&header) {
        Ok(()) => {
            let mut params = MaybeUninit::<P>::uninit();
            // SAFETY: the header is that of a `P`, so the caller owes a whole one.
            unsafe { args.cast::<u8>().copy_to_nonoverlapping(params.as_mut_ptr().cast(), size_of::<P>()) };
            // SAFETY: all of its bytes have just been written, and any bytes are a `P`, since it is `FromBytes`.
            Some(unsafe { params.assume_init() })
        }
        Err(error) => {
            log::error!("{name}: {error}");
            if !matches!(error, ParamsError::BadMagic { .. }) {
                // SAFETY: the magic is right: in every version the address of the status follows the header.
                let to = unsafe { args.cast::<u8>().add(STATUS_OFFSET).cast::<DeviceAddr>().read_unaligned() };
                let mut status = CardStatus { version: CARD_VERSION, ..CardStatus::NEW };
                set_reason(&mut status, &Line::new(format_args!("{name}: {error}")));
                (status.code, status.state) = (CardError::from(error).code(), CardState::VERSION);
                write_status(to, &status);
            }
            None
        }
    }
}
