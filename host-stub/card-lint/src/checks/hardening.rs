//! How the library is laid out in memory, and what runs when it is opened.

use crate::elf::{Library, PF_W, PF_X, dt, pt};
use crate::report::{Check, Sink};

const DF_TEXTREL: u64 = 4;
const DF_BIND_NOW: u64 = 8;
const DF_STATIC_TLS: u64 = 16;
const DF_1_NOW: u64 = 1;

/// Largest page that AArch64 Linux has.
const MAX_PAGE: u64 = 0x1_0000;

/// Most thread-local bytes of ours: what C libraries keep free for libraries that are opened late is little more.
const MAX_TLS: u64 = 1024;

const R_AARCH64_TLS_TPREL: u32 = 1030;
const R_AARCH64_IRELATIVE: u32 = 1032;

/// Read-only tables, no code that can be written, nothing that runs when the library is opened.
pub fn hardening(library: &Library, file: &str, sink: &mut Sink) {
    let has_flag = |tag, flag| library.value(tag).is_some_and(|flags| flags & flag != 0);
    let mut own = |message: &str, why| sink.own(Check::Hardening, file, message.to_owned(), why);
    let binds_now =
        library.value(dt::BIND_NOW).is_some() || has_flag(dt::FLAGS, DF_BIND_NOW) || has_flag(dt::FLAGS_1, DF_1_NOW);
    if !binds_now {
        let why = "a missing function shows only at its first call, in the middle of a kernel";
        own("names are bound at the first call: link with -Wl,-z,now", why);
    }
    if library.segments(pt::GNU_RELRO).next().is_none() {
        let why = "a wild store can redirect calls of a process that all users of the device share";
        own("no GNU_RELRO: link with -Wl,-z,relro", why);
    }
    let why =
        "memory that can be written and executed is refused by hardened kernels, and lets a wild store become code";
    match library.segments(pt::GNU_STACK).next() {
        Some(stack) if stack.flags & PF_X == 0 => {}
        Some(_) => own("asks for an executable stack: link with -Wl,-z,noexecstack", why),
        None => own("does not say that its stack is not executable: link with -Wl,-z,noexecstack", why),
    }
    for segment in library.segments(pt::LOAD).filter(|segment| segment.flags & (PF_W | PF_X) == PF_W | PF_X) {
        own(&format!("the segment at {:#x} can be written and executed", segment.addr), why);
    }
    if library.value(dt::TEXTREL).is_some() || has_flag(dt::FLAGS, DF_TEXTREL) {
        own("has relocations in its code (TEXTREL): compile with -fPIC and link with -Wl,-z,text", why);
    }
    let why = "it runs inside dlopen, on the scheduler's thread, where a call of the HAL or a fault hurts every user";
    for (tag, name) in [(dt::INIT, "INIT"), (dt::INIT_ARRAYSZ, "INIT_ARRAY"), (dt::PREINIT_ARRAYSZ, "PREINIT_ARRAY")] {
        if library.value(tag).is_some_and(|value| value != 0) {
            own(
                &format!("has code that runs when it is opened ({name}): link with -nostartfiles, no constructors"),
                why,
            );
        }
    }
    let has_ifunc = library.symbols.iter().any(|symbol| symbol.ifunc);
    if has_ifunc || library.relocations.contains(&R_AARCH64_IRELATIVE) {
        own("has functions that are chosen when it is opened (IFUNC)", why);
    }
}

/// Segments must fit pages of 64 KiB.
pub fn alignment(library: &Library, file: &str, sink: &mut Sink) {
    for segment in library.segments(pt::LOAD) {
        let (addr, align) = (segment.addr, segment.align);
        let is_congruent =
            align <= 1 || align.is_power_of_two() && addr.wrapping_sub(segment.offset) & (align - 1) == 0;
        if !is_congruent {
            let message = format!(
                "the segment at {addr:#x} lies at {:#x} of the file, which differ below its alignment of {align:#x}",
                segment.offset
            );
            sink.error(Check::Alignment, file, message, "dlopen refuses such a segment with 11002");
        } else if align < MAX_PAGE {
            let message = format!(
                "the segment at {addr:#x} is aligned to {align:#x}, not to 0x10000: link with -Wl,-z,max-page-size=65536"
            );
            let why = "the page size of the card is not known for certain; with pages of 64 KiB dlopen refuses it";
            sink.error_or_warning(Check::Alignment, file, message, why);
        }
    }
}

/// Little thread-local memory, found through the loader.
pub fn tls(library: &Library, file: &str, sink: &mut Sink) {
    let size: u64 = library.segments(pt::TLS).map(|segment| segment.mem_size).fold(0, u64::saturating_add);
    let why = "a library that is opened late shares a small reserve of thread-local memory with all others: when it is \
               used up, dlopen fails with 11002";
    let is_static = library.value(dt::FLAGS).is_some_and(|flags| flags & DF_STATIC_TLS != 0)
        || library.relocations.contains(&R_AARCH64_TLS_TPREL);
    if is_static {
        let message = format!(
            "{size} thread-local bytes are addressed from the thread pointer (initial-exec): compile with \
             -ftls-model=global-dynamic"
        );
        sink.error_or_warning(Check::Tls, file, message, why);
    } else if size >= MAX_TLS {
        sink.own(Check::Tls, file, format!("{size} thread-local bytes, fewer than {MAX_TLS} are allowed"), why);
    }
}
