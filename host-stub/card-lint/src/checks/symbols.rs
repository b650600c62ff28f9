//! Names that the library gives to others, and those that it takes from them.

use super::Context;
use crate::elf::Library;
use crate::report::{Check, Sink};

/// HAL functions that a queue is driven with, and the one that hands out task ids. Source: docs/card.md, "lint".
const HAL: [&str; 11] = [
    "halSqCqQuery",
    "halSqCqConfig",
    "halCqReportRecv",
    "halResourceIdRestore",
    "halResourceIdCheck",
    "halResourceIdInfoGet",
    "drvGetLocalDevIDByHostDevID",
    "drvQueryProcessHostPid",
    "halGetDeviceInfo",
    "halSqTaskSend",
    "_ZN5aicpu8GetSqeIdEjRjS0_",
];

/// The log of the scheduler.
const LOG: [&str; 5] = ["DlogRecord", "CheckLogLevel", "dlog_getlevel", "DlogFlush", "DlogVaList"];

/// What a library can ask a process about itself.
const PROCESS: [&str; 2] = ["getauxval", "gnu_get_libc_version"];

/// What compilers call on their own account.
const MEMORY: [&str; 5] = ["memcpy", "memmove", "memset", "memcmp", "bcmp"];

/// Calls of the vendor's library, for kernels that go through it.
const VENDOR: [&str; 15] = [
    "HcommLocalCopyOnThread",
    "HcommLocalReduceOnThread",
    "HcommThreadNotifyRecordOnThread",
    "HcommThreadNotifyWaitOnThread",
    "HcommThreadNotifyWaitOnThreadWithDefaultTimeout",
    "HcommAclrtNotifyRecordOnThread",
    "HcommAclrtNotifyWaitOnThread",
    "HcommSetNotifyWaitTimeOut",
    "HcommThreadResAcquireTimeOut",
    "HcommBatchModeStart",
    "HcommBatchModeEnd",
    "HcommAcquireComm",
    "HcommReleaseComm",
    "HcommThreadSynchronize",
    "HcommThreadJoin",
];

/// Library that defines [`VENDOR`].
pub const VENDOR_LIBRARY: &str = "libccl_kernel.so";

/// The entries that descriptions name, and nothing else, must be exported.
pub fn exports(library: &Library, context: &Context, sink: &mut Sink) {
    let file = context.name;
    let exported = || library.symbols.iter().filter(|symbol| symbol.defined);
    if let Some(entries) = context.entries {
        for entry in entries.iter().filter(|entry| exported().all(|symbol| symbol.name != **entry)) {
            let message = format!("the description names function {entry}, which the library does not export");
            sink.error(Check::Exports, file, message, "dlsym does not find it: a launch ends with 11003");
        }
    }
    // One finding for each kind: a library in C++ may export thousands.
    let (mut vendor, mut run_time, mut further) = (Vec::new(), Vec::new(), Vec::new());
    for symbol in exported() {
        let name = symbol.name.as_str();
        if context.entries.is_some_and(|entries| entries.contains(name)) {
            continue;
        } else if name.starts_with("Hcomm") {
            vendor.push(name);
        } else if MEMORY.contains(&name) || name.starts_with("rust_") || name.starts_with("__rust") {
            run_time.push(name);
        } else if context.entries.is_some() {
            further.push(name);
        }
    }
    let why = "libraries are opened with RTLD_GLOBAL: of two that export a name the first one answers the calls of both; \
               a version script keeps names local";
    for (names, what) in [
        (vendor, "exports names of the vendor's library"),
        (run_time, "exports names of a run-time library"),
        (further, "exports names that no description has"),
    ] {
        if !names.is_empty() {
            sink.error_or_warning(Check::Exports, file, format!("{what}: {}", list(&names)), why);
        }
    }
    if context.entries.is_none() {
        sink.note(format!("{file}: no description was found, so that exports were not compared with one"));
    }
}

/// What the library takes from others must be there, or be asked for weakly.
pub fn undefined(library: &Library, file: &str, sink: &mut Sink) {
    let uses_vendor = library.needed.iter().any(|needed| needed == VENDOR_LIBRARY);
    for symbol in library.symbols.iter().filter(|symbol| !symbol.defined) {
        let name = symbol.name.as_str();
        let of_process = [&HAL[..], &LOG, &PROCESS].iter().any(|names| names.contains(&name));
        let is_optional = of_process || VENDOR.contains(&name) && uses_vendor;
        let message = if is_optional && !symbol.weak {
            let why = "where it is missing, dlopen refuses the whole library; a weak reference is null there, which \
                       the kernel can test";
            sink.own(Check::Undefined, file, format!("{name} is undefined and not weak"), why);
            continue;
        } else if is_optional || MEMORY.contains(&name) {
            continue;
        } else if VENDOR.contains(&name) {
            format!("{name} is undefined, and {VENDOR_LIBRARY}, which defines it, is not needed")
        } else {
            format!("{name} is undefined, and is no name that a device is known to have")
        };
        sink.own(Check::Undefined, file, message, "dlopen or the first call fails where no library defines it");
    }
}

/// The first few names, and how many more there are.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c", "d", "e"]), "a, b, c, d, e");
        assert_eq!(list(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
