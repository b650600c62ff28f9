//! Kernels of the library itself: threads come, are asked for failed tasks, and go.

use core::ffi::c_void;

use hcomm_aicpu::spec::card::{CARD_VERSION, CardInit, CardStatus, CardThread};
use hcomm_hal::Hal;

use crate::launch::{finish_with, read_params};
use crate::threads;

/// The answer for parameters that are none.
const BAD_PARAMS: u32 = 1;

const STATUS: CardStatus = CardStatus { version: CARD_VERSION, ..CardStatus::NEW };

/// Makes a thread of the host known to the library. Parameters: [`CardInit`]. Its handle and slot are in the status.
#[unsafe(no_mangle)]
extern "C-unwind" fn hcomm_card_init(args: *const c_void) -> u32 {
    let name = "hcomm_card_init";
    // SAFETY: who launches a kernel owes null or parameters; `read_params` checks whose.
    let Some(init) = (unsafe { read_params::<CardInit>(name, args) }) else { return BAD_PARAMS };
    let mut status = STATUS;
    let result = threads::add(&Hal::of_process(), &init).map(|new| {
        (status.thread, status.slot, status.restore_code) = (new.handle, new.slot as u32, new.restore_code);
    });
    finish_with(name, init.status, status, result)
}

/// Looks for failed tasks of a thread. Parameters: [`CardThread`]. The first one is in the status; finding one is no error.
#[unsafe(no_mangle)]
extern "C-unwind" fn hcomm_card_report(args: *const c_void) -> u32 {
    let name = "hcomm_card_report";
    // SAFETY: as above.
    let Some(params) = (unsafe { read_params::<CardThread>(name, args) }) else { return BAD_PARAMS };
    let mut status = STATUS;
    let result = threads::failed_task(params.thread).map(|failed| status.task = failed.unwrap_or_default());
    finish_with(name, params.status, status, result)
}

/// Forgets a thread, before the host destroys its stream. Parameters: [`CardThread`].
#[unsafe(no_mangle)]
extern "C-unwind" fn hcomm_card_release(args: *const c_void) -> u32 {
    let name = "hcomm_card_release";
    // SAFETY: as above.
    let Some(params) = (unsafe { read_params::<CardThread>(name, args) }) else { return BAD_PARAMS };
    finish_with(name, params.status, STATUS, threads::remove(params.thread))
}
