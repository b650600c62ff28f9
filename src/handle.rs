//! From the handle that the host gave out to the descriptor in the thread table: the one place that reads the table.
//!
//! The host may free a thread, and give its slot to another one, at any time. So everything that is read of a descriptor
//! counts only if the tag says afterwards that the thread still lives in the generation of the handle: tag, fields, tag.

use core::mem::offset_of;
use core::num::NonZeroU64;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU64, Ordering};

use zerocopy::transmute;

use crate::spec::DeviceAddr;
use crate::spec::thread::{
    DESCRIPTOR_SIZE, DescriptorTag, Engine, MAX_THREADS, NotifyTable, ThreadDescriptor, ThreadHandle,
};
use crate::stop::Stop;
use crate::sync::fence;

/// Where the thread table is, as it is told once, before the first launch.
pub(crate) struct TablePlace {
    base: AtomicU64,
    slots: AtomicU64,
}

impl TablePlace {
    /// No table: every handle is refused.
    pub(crate) const fn none() -> Self {
        Self { base: AtomicU64::new(0), slots: AtomicU64::new(0) }
    }

    /// # Safety
    /// As for [`Device::set_thread_table`](crate::Device::set_thread_table).
    pub(crate) unsafe fn set(&self, base: DeviceAddr, slots: usize) {
        assert!(slots <= MAX_THREADS, "{slots} thread slots, at most {MAX_THREADS}");
        self.base.store(base.0, Ordering::Relaxed);
        self.slots.store(if base.is_null() { 0 } else { slots as u64 }, Ordering::Relaxed);
    }

    /// The table. The start of a launch is ordered after [`set`](Self::set).
    pub(crate) fn get(&self) -> ThreadTable {
        ThreadTable { base: self.base.load(Ordering::Relaxed), slots: self.slots.load(Ordering::Relaxed) }
    }
}

/// The thread table.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ThreadTable {
    base: u64,
    slots: u64,
}

impl ThreadTable {
    /// The slot that `handle` names, whether or not its thread lives. Nothing is read.
    #[inline(always)]
    pub(crate) fn slot(&self, handle: ThreadHandle) -> Option<Slot> {
        // An address below the table wraps around to a huge offset, and one between two slots is rotated to a huge index.
        let index = handle.addr().0.wrapping_sub(self.base).rotate_right(DESCRIPTOR_SIZE.trailing_zeros());
        if index >= self.slots {
            return None;
        }
        // SAFETY: not 0, because the address 0 is in no table: one with slots does not start there.
        Some(Slot(unsafe { NonZeroU64::new_unchecked(handle.0) }))
    }

    /// The slot of a live thread.
    ///
    /// # Errors
    /// [`Error::BadHandle`](crate::Error::BadHandle) for a malformed, foreign or stale handle.
    #[inline]
    pub(crate) fn live(&self, handle: ThreadHandle) -> Result<Slot, Stop> {
        self.slot(handle).filter(|slot| slot.is_live()).ok_or(Stop::bad_handle(handle))
    }

    /// Where the queue of the live thread of `handle` is, which is of engine AICPU_TS.
    ///
    /// # Errors
    /// [`Error::BadHandle`](crate::Error::BadHandle) for a malformed, foreign or stale handle; [`Error::WrongEngine`](crate::Error::WrongEngine).
    #[cold]
    #[inline(never)]
    pub(crate) fn queue_place(&self, handle: ThreadHandle) -> Result<QueuePlace, Stop> {
        let mut stop = Stop::bad_handle(handle);
        if let Some(slot) = self.slot(handle)
            && let Some(descriptor) = slot.descriptor()
        {
            let ThreadDescriptor { engine, sq_base, depth, sq_id, regs, stream_id, comm, .. } = descriptor;
            if engine == Engine::AICPU_TS {
                return Ok(QueuePlace { slot, sq_base, depth, sq_id, regs, stream_id, comm });
            }
            stop = Stop::wrong_engine(engine, handle);
        }
        Err(stop)
    }
}

/// What a descriptor says of the queue of its thread.
pub(crate) struct QueuePlace {
    pub(crate) slot: Slot,
    pub(crate) sq_base: DeviceAddr,
    pub(crate) regs: u64,
    pub(crate) sq_id: u32,
    pub(crate) depth: u32,
    pub(crate) stream_id: u32,
    /// Communicator of the thread.
    pub(crate) comm: u64,
}

/// A slot of the thread table, and the generation that a handle asks for in it: the handle itself, found to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(NonZeroU64);

/// Notify of a slot, as far as one look tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotifyLook {
    /// Its id.
    Id(u32),
    /// There are only so many.
    Only(u32),
}

impl Slot {
    /// Whether the descriptor is alive in the generation of the handle: one word tells.
    #[inline(always)]
    pub(crate) fn is_live(self) -> bool {
        let tag = self.handle().addr().0 as usize;
        // SAFETY: `ThreadTable::slot` found the address to be that of a slot of the table, which stays readable
        // (`Device::set_thread_table`); slots are 64-byte aligned, and the host writes the tag as one atomic word.
        let bits = unsafe { &*with_exposed_provenance::<AtomicU64>(tag) };
        // Pairs with the host's release store of the tag: the rest of the descriptor is read after it.
        bits.load(Ordering::Acquire) == DescriptorTag::live(self.handle().generation()).to_bits()
    }

    /// Notify `index`, as the descriptor and its table say now. The caller checks afterwards, behind an acquire fence, that
    /// the thread lives: by [`is_live`](Self::is_live), or by the status word of its queue.
    #[inline(always)]
    pub(crate) fn notify(self, index: u32) -> NotifyLook {
        let word = self.handle().addr().0 as usize + offset_of!(ThreadDescriptor, notifies);
        // SAFETY: an aligned word within the slot, which is readable as in `is_live`; the host writes it as one atomic word.
        let word = unsafe { &*with_exposed_provenance::<AtomicU64>(word) };
        // Address and number come from one word, so they belong together whatever the host does meanwhile.
        let table = NotifyTable(word.load(Ordering::Relaxed));
        if index >= table.count() {
            return NotifyLook::Only(table.count());
        }
        let ids = with_exposed_provenance::<u32>(table.addr().0 as usize);
        // SAFETY: the table has more than `index` ids, and every table that a descriptor has ever named stays readable
        // while a kernel runs (`Device::set_thread_table`).
        NotifyLook::Id(unsafe { ids.add(index as usize).read_volatile() })
    }

    /// The descriptor of the live thread; `None` if it does not live, or was freed meanwhile.
    #[inline(always)]
    pub(crate) fn descriptor(self) -> Option<ThreadDescriptor> {
        if self.is_live() {
            let slot = with_exposed_provenance::<[u64; DESCRIPTOR_SIZE as usize / 8]>(self.handle().addr().0 as usize);
            // SAFETY: a slot of the table, readable and aligned as in `is_live`. Whole words: one load each.
            let words = unsafe { slot.read_volatile() };
            // The host clears the tag before it changes a field: what was read before a live tag belongs to it.
            fence(Ordering::Acquire);
            if self.is_live() {
                return Some(transmute!(words));
            }
        }
        None
    }

    /// The handle.
    #[inline(always)]
    pub(crate) fn handle(self) -> ThreadHandle {
        ThreadHandle(self.0.get())
    }
}
