//! Communication thread: from the handle that the host gave out to the queue behind it.

use core::mem::offset_of;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{Ordering, fence};

use crate::copy;
use crate::device::Core;
use crate::error::Error;
use crate::port::{Platform, QueueId, with_core};
use crate::queue::Ring;
use crate::spec::DeviceAddr;
use crate::spec::thread::{DESCRIPTOR_SIZE, DescriptorTag, Engine, ThreadDescriptor, ThreadHandle};

/// A live AICPU_TS thread of the device that runs the caller.
///
/// Says that the handle was good when it was looked up. Should the host free the thread afterwards, calls answer
/// [`Error::BadHandle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    handle: ThreadHandle,
    /// Slot in the thread table.
    index: usize,
}

impl Thread {
    /// Looks `handle` up in the thread table. Nothing outside the table is read, whatever the number.
    ///
    /// # Errors
    /// [`Error::NullThread`], [`Error::NoCore`] outside a kernel, [`Error::BadHandle`] for a malformed, foreign or stale
    /// handle, [`Error::WrongEngine`].
    #[inline]
    pub fn from_handle(handle: ThreadHandle) -> Result<Self, Error> {
        if handle.0 == 0 {
            return Err(Error::NullThread);
        }
        with_core(|core| Self::look_up(core, handle)).unwrap_or(Err(Error::NoCore))
    }

    /// [`from_handle`](Self::from_handle) for a handle that is not 0, on `core`.
    #[inline]
    pub(crate) fn look_up(core: &Core<'_>, handle: ThreadHandle) -> Result<Self, Error> {
        let (base, len) = core.device().thread_table();
        // An address below the table wraps around to a huge offset.
        let offset = handle.addr().0.wrapping_sub(base);
        if offset >= len || !offset.is_multiple_of(DESCRIPTOR_SIZE) {
            return Err(Error::BadHandle(handle));
        }
        let thread = Self { handle, index: (offset / DESCRIPTOR_SIZE) as usize };
        if handle.generation() == 0 || !thread.is_live() {
            return Err(Error::BadHandle(handle));
        }
        let engine = thread.engine();
        if engine != Engine::AICPU_TS {
            return Err(Error::WrongEngine { handle, engine });
        }
        Ok(thread)
    }

    /// Queues a copy of `len` bytes from `src` to `dst`, in as many tasks as the chunk rule needs, and returns; the copy
    /// itself runs later. Any alignment; ranges that overlap in part have no defined result. `len` 0 queues nothing.
    ///
    /// # Errors
    /// In this order: [`Error::NullDst`], [`Error::NullSrc`] (also for `len` 0), [`Error::NoCore`],
    /// [`Error::AddressOverflow`], [`Error::BadHandle`] if the thread has been freed, [`Error::Suspended`],
    /// [`Error::QueueFull`], [`Error::DoorbellRefused`].
    #[inline]
    pub fn local_copy(&self, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        copy::check_addresses(dst, src)?;
        with_core(|core| copy::local_copy(&Platform, core, self, dst, src, len)).unwrap_or(Err(Error::NoCore))
    }

    /// The handle that the thread was looked up by.
    pub fn handle(&self) -> ThreadHandle {
        self.handle
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn generation(&self) -> u16 {
        self.handle.generation()
    }

    /// Whether the descriptor is alive in the generation of the handle: one word tells.
    #[inline]
    fn is_live(&self) -> bool {
        let tag = self.handle.addr().0 as usize;
        // SAFETY: `look_up` found the address to be that of a slot of the thread table, which stays readable
        // (`Device::set_thread_table`); slots are 64-byte aligned.
        let bits = unsafe { with_exposed_provenance::<u64>(tag).read_volatile() };
        // Pairs with the host's release store of the tag: the rest of the descriptor is read after it.
        fence(Ordering::Acquire);
        bits == DescriptorTag::live(self.generation()).to_bits()
    }

    #[inline]
    fn engine(&self) -> Engine {
        let engine = self.handle.addr().0 as usize + offset_of!(ThreadDescriptor, engine);
        // SAFETY: as in `is_live`; the field lies within the slot.
        Engine(unsafe { with_exposed_provenance::<i32>(engine).read_volatile() })
    }

    /// The ring of the thread, as the descriptor gives it now.
    ///
    /// # Errors
    /// [`Error::BadQueue`] for a ring that can't be; [`Error::BadHandle`] if the thread was freed meanwhile.
    pub(crate) fn ring(&self) -> Result<Ring, Error> {
        let slot = with_exposed_provenance::<ThreadDescriptor>(self.handle.addr().0 as usize);
        // SAFETY: as in `is_live`; every bit pattern is a descriptor.
        let ThreadDescriptor { sq_base, depth, sq_id, regs, .. } = unsafe { slot.read_volatile() };
        // The host clears the tag first: what was read before a live tag belongs to it.
        fence(Ordering::Acquire);
        if !self.is_live() {
            return Err(Error::BadHandle(self.handle));
        }
        Ring::new(sq_base, depth, QueueId { sq_id, regs })
    }
}
