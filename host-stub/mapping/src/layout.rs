//! Where HBM lies in the address space of this process.

use std::sync::OnceLock;

use hcomm_aicpu::spec::map::{HBM_BASE, HBM_STRIDE};
use rustix::mm::{MapFlags, ProtFlags};

/// Environment variable with the address of the HBM of device slot 0.
pub const BASE_VAR: &str = "HCOMM_SIM_HBM_BASE";
/// Most device slots of a process: by default the HBM of the last one ends below 2^47.
pub const SLOTS: usize = 64;
/// A base is a multiple of it. Below [`HBM_STRIDE`] it is the distance of two slots too.
const LOW_STRIDE: u64 = 64 << 30;
/// End of the low address range, in which ThreadSanitizer and MemorySanitizer leave room for a program.
const LOW_END: u64 = 512 << 30;
/// End of the address space of a process.
const END: u64 = 1 << 47;
/// Last address that is a base.
const LAST: u64 = END - HBM_STRIDE;
/// Bytes that are looked at to learn whether a base is free.
const PROBE_LEN: usize = 64 << 10;

/// Base, distance and number of the device slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First address of the HBM in slot 0.
    pub base: u64,
    /// Distance of the HBM of two slots: also the largest HBM.
    pub stride: u64,
    /// Number of slots.
    pub slots: usize,
}

/// Value of [`BASE_VAR`] that is no base.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{BASE_VAR} is {0:?}: must be a multiple of {LOW_STRIDE:#x} from {LOW_STRIDE:#x} to {LAST:#x}")]
pub struct BadBase(String);

/// The message: what `unwrap` and a failed assertion print.
impl std::fmt::Debug for BadBase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Layout {
    const DEFAULT: Self = Self { base: HBM_BASE, stride: HBM_STRIDE, slots: SLOTS };
    const LOW: Self =
        Self { base: LOW_STRIDE, stride: LOW_STRIDE, slots: ((LOW_END - LOW_STRIDE) / LOW_STRIDE) as usize };

    /// The layout of this process, which never changes: the one of [`BASE_VAR`]; without that variable the default one, or the
    /// low one if something else, as the shadow memory of a sanitizer, lies where the default one begins.
    ///
    /// # Errors
    /// [`BadBase`].
    pub fn of_process() -> Result<Self, BadBase> {
        static LAYOUT: OnceLock<Result<Layout, BadBase>> = OnceLock::new();
        LAYOUT.get_or_init(Self::choose).clone()
    }

    fn choose() -> Result<Self, BadBase> {
        if let Some(value) = std::env::var_os(BASE_VAR) {
            return Self::parse(&value.to_string_lossy());
        }
        let is_moved = !is_free(Self::DEFAULT.base) && is_free(Self::LOW.base);
        Ok(if is_moved { Self::LOW } else { Self::DEFAULT })
    }

    /// The layout with a base in decimal or, after `0x`, hexadecimal digits.
    fn parse(text: &str) -> Result<Self, BadBase> {
        let bad = || BadBase(text.to_owned());
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        let base = number.map_err(|_| bad())?;
        let (stride, end) =
            if base < HBM_STRIDE { (LOW_STRIDE, LOW_END.max(base + LOW_STRIDE)) } else { (HBM_STRIDE, END) };
        if base == 0 || !base.is_multiple_of(LOW_STRIDE) || base > LAST {
            return Err(bad());
        }
        Ok(Self { base, stride, slots: SLOTS.min(((end - base) / stride) as usize) })
    }

    /// First address of the HBM in `slot`.
    pub fn slot_base(&self, slot: usize) -> u64 {
        self.base + slot as u64 * self.stride
    }

    /// Whether the HBM of a slot could be at `addr`.
    pub fn contains(&self, addr: u64) -> bool {
        (self.base..self.slot_base(self.slots)).contains(&addr)
    }
}

/// Whether nothing is mapped from `base` on.
fn is_free(base: u64) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: FIXED_NOREPLACE: the call fails rather than replace what is mapped there.
    let mapped = unsafe { rustix::mm::mmap_anonymous(base as usize as *mut _, PROBE_LEN, ProtFlags::empty(), flags) };
    let Ok(ptr) = mapped else { return false };
    // SAFETY: just mapped, and nothing has its address. An unmap that fails leaves a range that takes no memory.
    let _ = unsafe { rustix::mm::munmap(ptr, PROBE_LEN) };
    ptr as usize as u64 == base
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 440.
    #[test]
    fn base_is_a_multiple_of_64_gib_inside_the_address_space() {
        let layout = |text| Layout::parse(text);
        assert_eq!(layout("0x12c000000000"), Ok(Layout::DEFAULT));
        assert_eq!(layout("68719476736"), Ok(Layout::LOW));
        assert_eq!(layout("0x7f0000000000"), Ok(Layout { base: 0x7f00_0000_0000, stride: HBM_STRIDE, slots: 1 }));
        assert_eq!(layout("0x9000000000"), Ok(Layout { base: 0x90_0000_0000, stride: LOW_STRIDE, slots: 1 }));
        for bad in ["", "0", "0x1", "x", "0x7f1000000000", "0xffffffffffffffff", "-1", "0x8000000000001"] {
            let message = layout(bad).unwrap_err().to_string();
            assert!(message.contains(&format!("{bad:?}: must be a multiple of 0x1000000000")), "{message}");
        }
        let last = Layout::LOW.slot_base(Layout::LOW.slots - 1);
        assert!(Layout::LOW.contains(last + LOW_STRIDE - 1) && !Layout::LOW.contains(last + LOW_STRIDE));
    }

    #[test]
    fn address_that_is_taken_is_not_free() {
        let base = 0x11_0000_0000;
        assert!(is_free(base));
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: FIXED_NOREPLACE: the call fails rather than replace what is mapped there.
        let ptr = unsafe { rustix::mm::mmap_anonymous(base as usize as *mut _, PROBE_LEN, ProtFlags::empty(), flags) };
        let ptr = ptr.unwrap();
        assert!(!is_free(base));
        // SAFETY: mapped above, and unused.
        unsafe { rustix::mm::munmap(ptr, PROBE_LEN) }.unwrap();
        assert!(is_free(base));
    }
}
