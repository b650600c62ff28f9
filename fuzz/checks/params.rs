//! Launch parameters of any bytes: a kernel refuses those of another kind without reading past the head, and whatever is in
//! its own, it answers a code.
//!
//! The bytes are handed over exactly as long as they are, at an odd address, so that a read past them is one past the heap.

use std::ffi::CStr;

use hcomm_aicpu::spec::code::{HCCL_E_PARA, HCCL_SUCCESS};
use hcomm_aicpu::spec::params::{ParamsHeader, check as check_header};
use hcomm_kernel::{Control, KernelFn, LocalCopyParams, kernels};
use hcomm_testkit_platform::{NOTIFIES, Rig, STALE};
use zerocopy::{FromBytes, IntoBytes};

fn kernel(name: &CStr) -> KernelFn {
    let names = |entry: &&hcomm_kernel::KernelEntry| {
        // SAFETY: the table of kernels holds what the macro `kernel!` put there: names that end with a zero byte.
        unsafe { CStr::from_ptr(entry.name) == name }
    };
    kernels().iter().find(names).expect("a kernel of this name").function
}

/// In the place of a handle: the one of an AICPU_TS or of a CPU_TS thread, whose numbers no file can know.
const LIVE_THREAD: u64 = 1;
const CPU_THREAD: u64 = 2;
/// Bytes of the longest copy that is tried: a longer one takes the time of its tasks.
const LONGEST: u64 = 1 << 42;
/// Entries of the ring.
const DEPTH: u32 = 5;

fn handle(rig: &Rig, number: u64) -> u64 {
    match number {
        LIVE_THREAD => rig.live(),
        CPU_THREAD => rig.of_other_engine(),
        _ => number,
    }
}

/// What the kernel answered, and how many doorbells it rang; `None` for bytes that no host hands over.
pub fn check(bytes: &[u8]) -> Option<(u32, usize)> {
    let (header, _) = ParamsHeader::read_from_prefix(bytes).ok()?;
    let rig = Rig::new(DEPTH);
    rig.run_at_looks(DEPTH, 0);
    let own = check_header::<LocalCopyParams>(&header).is_ok();
    // Who launches owes as many bytes as the head of a kernel's own parameters says.
    let used = if own { size_of::<LocalCopyParams>() } else { size_of::<ParamsHeader>() };
    let bytes = bytes.get(..used)?;
    let mut params = LocalCopyParams::read_from_bytes(bytes).ok();
    if let Some(params) = &mut params {
        params.thread = handle(&rig, params.thread);
        params.control.cpu_thread = handle(&rig, params.control.cpu_thread);
        params.len = params.len.min(LONGEST);
    }
    let bytes = params.as_ref().map_or(bytes, IntoBytes::as_bytes);
    let odd: Box<[u8]> = [&[0], bytes].concat().into();

    let code = rig.launch(|| kernel(c"local_copy")(odd[1..].as_ptr().cast()));

    let doorbells = rig.doorbells().len();
    let queued = doorbells != 0 || rig.slots().iter().any(|slot| *slot != STALE);
    let Some(params) = params else {
        assert_eq!((code, queued), (HCCL_E_PARA as u32, false), "parameters of another kind");
        return Some((code, doorbells));
    };
    let is_live = params.thread == rig.live();
    let good = is_live
        && params.user_in.0 != 0
        && params.ccl_buf.0 != 0
        && params.len <= params.ccl_buf_size
        && [params.user_in, params.ccl_buf]
            .iter()
            .all(|addr| addr.0.checked_add(params.len.saturating_sub(1)).is_some());
    let Control { cpu_thread, start_notify, end_notify } = params.control;
    if params.control == Control::NONE {
        assert_eq!(code == HCCL_SUCCESS as u32, good, "code {code}, {params:x?}");
        assert_eq!(queued, good && params.len != 0, "code {code}, {params:x?}");
    } else {
        let starts = is_live && params.len <= params.ccl_buf_size && start_notify < NOTIFIES;
        let ends = [rig.live(), rig.of_other_engine()].contains(&cpu_thread) && end_notify < NOTIFIES;
        assert_eq!(code == HCCL_SUCCESS as u32, good && starts && ends, "code {code}, {params:x?}");
        assert_eq!(queued, starts, "code {code}, {params:x?}");
    }
    Some((code, doorbells))
}
