//! From the channel handle that the host gave out to the descriptor in the channel table: the one place that reads the table.
//!
//! As for threads: what was read of a descriptor counts only if the tag says afterwards that the channel still lives in the
//! generation of the handle.

use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::spec::DeviceAddr;
use crate::spec::channel::{CHANNEL_SIZE, ChannelDescriptor, ChannelHandle, ChannelTag, MAX_CHANNELS};
use crate::sync::fence;

/// Where the channel table is, as it is told once, before the first launch.
pub(crate) struct ChannelPlace {
    base: AtomicU64,
    slots: AtomicU64,
}

impl ChannelPlace {
    /// No table: every handle is refused.
    pub(crate) const fn none() -> Self {
        Self { base: AtomicU64::new(0), slots: AtomicU64::new(0) }
    }

    /// # Safety
    /// As for [`Device::set_channel_table`](crate::Device::set_channel_table).
    pub(crate) unsafe fn set(&self, base: DeviceAddr, slots: usize) {
        assert!(slots <= MAX_CHANNELS, "{slots} channel slots, at most {MAX_CHANNELS}");
        self.base.store(base.0, Ordering::Relaxed);
        self.slots.store(if base.is_null() { 0 } else { slots as u64 }, Ordering::Relaxed);
    }

    /// The descriptor of the live channel of `handle`.
    ///
    /// # Errors
    /// [`Error::BadChannel`] for a malformed, foreign or stale handle, also if it was freed meanwhile.
    pub(crate) fn descriptor(&self, handle: ChannelHandle) -> Result<ChannelDescriptor, Error> {
        let (base, slots) = (self.base.load(Ordering::Relaxed), self.slots.load(Ordering::Relaxed));
        // An address below the table wraps around to a huge offset, and one between two slots is rotated to a huge index.
        let index = handle.addr().0.wrapping_sub(base).rotate_right(CHANNEL_SIZE.trailing_zeros());
        if index < slots {
            let slot = Slot(handle);
            if slot.is_live() {
                let descriptor = with_exposed_provenance::<ChannelDescriptor>(handle.addr().0 as usize);
                // SAFETY: a slot of the table, which stays readable (`Device::set_channel_table`) and is 64-byte aligned; every
                // bit pattern is a descriptor.
                let descriptor = unsafe { descriptor.read_volatile() };
                // The host clears the tag before it changes a field: what was read before a live tag belongs to it.
                fence(Ordering::Acquire);
                if slot.is_live() {
                    return Ok(descriptor);
                }
            }
        }
        Err(Error::BadChannel(handle))
    }
}

/// A handle whose address was found to be that of a slot of the table.
#[derive(Clone, Copy)]
pub(crate) struct Slot(pub(crate) ChannelHandle);

impl Slot {
    /// Tag of the descriptor while it lives in the generation of the handle.
    pub(crate) fn tag(self) -> u64 {
        ChannelTag::live(self.0.generation()).to_bits()
    }

    /// Whether the descriptor is alive in the generation of the handle: one word tells.
    #[inline(always)]
    pub(crate) fn is_live(self) -> bool {
        self.has_tag(self.tag())
    }

    /// Whether this is the descriptor's tag.
    #[inline(always)]
    pub(crate) fn has_tag(self, expected: u64) -> bool {
        let tag = with_exposed_provenance::<AtomicU64>(self.0.addr().0 as usize);
        // SAFETY: `ChannelPlace::descriptor` found the address to be that of a slot of the table, which stays readable; the
        // host writes the tag as one atomic word.
        let bits = unsafe { &*tag };
        // Pairs with the host's release store of the tag: the rest of the descriptor is read after it.
        bits.load(Ordering::Acquire) == expected
    }
}
