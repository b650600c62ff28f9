//! The functions of the HAL that this process has.

use crate::abi::{LocalDeviceFn, ReportFn, RestoreFn, SqCqFn};

/// The functions of the HAL; `None` where no library of the process has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hal {
    pub(crate) query: Option<SqCqFn>,
    pub(crate) config: Option<SqCqFn>,
    pub(crate) report: Option<ReportFn>,
    pub(crate) restore: Option<RestoreFn>,
    pub(crate) local_device: Option<LocalDeviceFn>,
}

/// Address of a weak reference, 0 where nothing defines it.
///
/// Rust has no weak references of its own, and takes the test of a function's address for null to be always false. So the
/// name is made weak for the assembler, and its address is read from the table that the loader fills.
#[macro_export]
macro_rules! weak_address {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: one load from the loader's table, which is filled before any code of this library runs.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            ::core::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {address}, :got:", $name),
                concat!("ldr {address}, [{address}, :got_lo12:", $name, "]"),
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            ::core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {address}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// The function at an address that is not 0.
macro_rules! function {
    ($name:literal, $kind:ty) => {{
        let address = weak_address!($name);
        // SAFETY: Option of a function pointer has the layout of an address in which 0 is None. What defines the name is the
        // HAL, whose headers give it this type.
        unsafe { core::mem::transmute::<usize, Option<$kind>>(address) }
    }};
}

impl Hal {
    /// What the libraries of this process define. Costs a few loads; nothing is looked up by name.
    pub fn of_process() -> Self {
        Self {
            query: function!("halSqCqQuery", SqCqFn),
            config: function!("halSqCqConfig", SqCqFn),
            report: function!("halCqReportRecv", ReportFn),
            restore: function!("halResourceIdRestore", RestoreFn),
            local_device: function!("drvGetLocalDevIDByHostDevID", LocalDeviceFn),
        }
    }
}
