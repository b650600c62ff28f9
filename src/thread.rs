//! Communication thread: from the handle that the host gave out to the queue behind it.

use core::mem::offset_of;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::aclrt_notify;
use crate::copy;
use crate::device::Core;
use crate::error::{Error, Stop};
use crate::notify::{self, Action};
use crate::port::{Launch, Platform, QueueId, with_core};
use crate::queue::drain;
use crate::reduce::{self, Elements};
use crate::ring::Ring;
use crate::short::Short;
use crate::spec::DeviceAddr;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::thread::{DESCRIPTOR_SIZE, DescriptorTag, Engine, ThreadDescriptor, ThreadHandle};
use crate::sync::fence;

/// A live thread of any engine, of the device that runs the caller: what a notify can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(ThreadHandle);

/// A live AICPU_TS thread of the device that runs the caller.
///
/// Says that the handle was good when it was looked up. Should the host free the thread afterwards, calls answer
/// [`Error::BadHandle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(Peer);

impl Peer {
    /// Looks `handle` up in the thread table. Nothing outside the table is read, whatever the number.
    ///
    /// # Errors
    /// [`Error::NullThread`], [`Error::NoCore`] outside a kernel, [`Error::BadHandle`] for a malformed, foreign or stale
    /// handle.
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
        let peer = Self(handle);
        if peer.is_live() { Ok(peer) } else { Err(Error::BadHandle(handle)) }
    }

    /// The thread of `handle` without a look-up.
    ///
    /// # Safety
    /// The handle was looked up before and found good, and its thread has not been freed: its queue still has the status
    /// word of that life.
    #[inline]
    pub(crate) unsafe fn known(handle: ThreadHandle) -> Self {
        Self(handle)
    }

    /// The handle that the thread was looked up by.
    pub fn handle(&self) -> ThreadHandle {
        self.0
    }

    /// Whether the descriptor is alive in the generation of the handle: one word tells.
    #[inline]
    fn is_live(&self) -> bool {
        let tag = self.0.addr().0 as usize;
        // SAFETY: `look_up` found the address to be that of a slot of the thread table, which stays readable
        // (`Device::set_thread_table`) and whose tag is written as one word; slots are 64-byte aligned.
        let bits = unsafe { &*with_exposed_provenance::<AtomicU64>(tag) };
        // Pairs with the host's release store of the tag: the rest of the descriptor is read after it.
        bits.load(Ordering::Acquire) == DescriptorTag::live(self.0.generation()).to_bits()
    }

    #[inline]
    fn engine(&self) -> Engine {
        let engine = self.0.addr().0 as usize + offset_of!(ThreadDescriptor, engine);
        // SAFETY: as in `is_live`; the field lies within the slot.
        Engine(unsafe { with_exposed_provenance::<i32>(engine).read_volatile() })
    }

    /// Id of the thread's notify `index`.
    ///
    /// # Errors
    /// [`Error::BadNotifyIndex`].
    #[inline]
    pub(crate) fn notify_id(&self, index: u32) -> Result<u32, Error> {
        let descriptor = self.0.addr().0 as usize;
        let count = with_exposed_provenance::<u32>(descriptor + offset_of!(ThreadDescriptor, notify_count));
        // SAFETY: as in `is_live`; the field lies within the slot.
        let count = unsafe { count.read_volatile() };
        if index >= count {
            return Err(Error::BadNotifyIndex { index, count });
        }
        let table = with_exposed_provenance::<u64>(descriptor + offset_of!(ThreadDescriptor, notify_table));
        // SAFETY: as above.
        let table = unsafe { table.read_volatile() };
        // SAFETY: the host keeps `count` words readable there for the thread's life (`Device::set_thread_table`).
        Ok(unsafe { with_exposed_provenance::<u32>(table as usize).add(index as usize).read_volatile() })
    }

    /// The descriptor as it is now.
    ///
    /// # Errors
    /// [`Stop::BadHandle`] if the thread was freed meanwhile.
    fn descriptor(&self) -> Result<ThreadDescriptor, Stop> {
        let slot = with_exposed_provenance::<ThreadDescriptor>(self.0.addr().0 as usize);
        // SAFETY: as in `is_live`; every bit pattern is a descriptor.
        let descriptor = unsafe { slot.read_volatile() };
        // The host clears the tag first: what was read before a live tag belongs to it.
        fence(Ordering::Acquire);
        if self.is_live() { Ok(descriptor) } else { Err(Stop::BadHandle(self.0)) }
    }
}

impl Thread {
    /// Looks `handle` up in the thread table. Nothing outside the table is read, whatever the number.
    ///
    /// # Errors
    /// [`Error::NullThread`], [`Error::NoCore`] outside a kernel, [`Error::BadHandle`] for a malformed, foreign or stale
    /// handle, [`Error::WrongEngine`].
    #[inline]
    pub fn from_handle(handle: ThreadHandle) -> Result<Self, Error> {
        Self::new(Peer::from_handle(handle)?)
    }

    /// [`from_handle`](Self::from_handle) for a handle that is not 0, on `core`.
    #[cfg(test)]
    pub(crate) fn look_up(core: &Core<'_>, handle: ThreadHandle) -> Result<Self, Error> {
        Self::new(Peer::look_up(core, handle)?)
    }

    /// [`from_handle`](Self::from_handle), and the core that runs the caller.
    #[inline]
    pub(crate) fn on_core(launch: &Launch, handle: ThreadHandle) -> Result<(&Core<'_>, Self), Error> {
        if handle.0 == 0 {
            return Err(Error::NullThread);
        }
        let core = launch.core().ok_or(Error::NoCore)?;
        Ok((core, Self::new(Peer::look_up(core, handle)?)?))
    }

    #[inline]
    fn new(peer: Peer) -> Result<Self, Error> {
        let engine = peer.engine();
        if engine != Engine::AICPU_TS {
            return Err(Error::WrongEngine { handle: peer.0, engine });
        }
        Ok(Self(peer))
    }

    /// Queues a copy of `len` bytes from `src` to `dst`, in as many tasks as the chunk rule needs, and returns; the copy
    /// itself runs later. Any alignment; ranges that overlap in part have no defined result. `len` 0 queues nothing.
    ///
    /// # Errors
    /// In this order: [`Error::NullDst`], [`Error::NullSrc`] (also for `len` 0), [`Error::NoCore`], [`Error::BadHandle`] if
    /// the thread has been freed, [`Error::AddressOverflow`], [`Error::Suspended`], [`Error::QueueFull`],
    /// [`Error::DoorbellRefused`].
    #[inline]
    pub fn local_copy(&self, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        /// The same code as in the C entry point, once for all kernels.
        #[inline(never)]
        fn short(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Short {
            copy::short(handle, dst, src, len)
        }
        let handle = self.handle();
        match short(handle, dst, src, len) {
            Short::Queued => Ok(()),
            other => other.or_else(handle, || copy::long(handle, dst, src, len)),
        }
    }

    /// Queues `dst[i] = op(dst[i], src[i])` for `count` elements, in as many tasks as the chunk rule needs, and returns.
    /// `count` 0 queues nothing.
    ///
    /// # Errors
    /// In this order: [`Error::NullDst`], [`Error::NullSrc`], [`Error::NoCore`], [`Error::BadHandle`],
    /// [`Error::ReduceNotSupported`], [`Error::CountTooLarge`], [`Error::Misaligned`], then as
    /// [`local_copy`](Self::local_copy).
    #[inline]
    pub fn local_reduce(
        &self,
        dst: DeviceAddr,
        src: DeviceAddr,
        count: u64,
        data_type: DataType,
        op: ReduceOp,
    ) -> Result<(), Error> {
        #[inline(never)]
        fn short(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, elements: Elements) -> Short {
            reduce::short(handle, dst, src, elements)
        }
        let (handle, elements) = (self.handle(), Elements { count, data_type, op });
        match short(handle, dst, src, elements) {
            Short::Queued => Ok(()),
            other => other.or_else(handle, || reduce::long(handle, dst, src, elements)),
        }
    }

    /// Queues a task that sets notify `index` of thread `to`.
    ///
    /// # Errors
    /// [`Error::BadHandle`] if one of the threads has been freed, [`Error::BadNotifyIndex`], then as
    /// [`local_copy`](Self::local_copy).
    #[inline]
    pub fn notify_record(&self, to: Peer, index: u32) -> Result<(), Error> {
        #[inline(never)]
        fn short(handle: ThreadHandle, to: ThreadHandle, index: u32) -> Short {
            notify::short(handle, Action::Record { to, index })
        }
        let (handle, to) = (self.handle(), to.handle());
        match short(handle, to, index) {
            Short::Queued => Ok(()),
            other => other.or_else(handle, || notify::long(handle, Action::Record { to, index })),
        }
    }

    /// Queues a task that waits for notify `index` of this thread for up to `timeout_s` seconds (0 = for ever) and clears
    /// it. Tasks queued later run after it; the caller does not wait.
    ///
    /// # Errors
    /// As [`notify_record`](Self::notify_record).
    #[inline]
    pub fn notify_wait(&self, index: u32, timeout_s: u32) -> Result<(), Error> {
        #[inline(never)]
        fn short(handle: ThreadHandle, index: u32, timeout_s: u32) -> Short {
            notify::short(handle, Action::Wait { index, timeout_s })
        }
        let handle = self.handle();
        match short(handle, index, timeout_s) {
            Short::Queued => Ok(()),
            other => other.or_else(handle, || notify::long(handle, Action::Wait { index, timeout_s })),
        }
    }

    /// [`notify_wait`](Self::notify_wait) with the limit of the core, see [`timeout`](crate::timeout).
    ///
    /// # Errors
    /// As [`notify_wait`](Self::notify_wait).
    pub fn notify_wait_default(&self, index: u32) -> Result<(), Error> {
        let timeout_s = with_core(|core| core.notify_wait_timeout_s()).ok_or(Error::NoCore)?;
        self.notify_wait(index, timeout_s)
    }

    /// Queues a task that sets the notify with this id, which the host has made by itself (`aclrtGetNotifyId`).
    ///
    /// # Errors
    /// [`Error::NoCore`], [`Error::BadHandle`], [`Error::AclrtNotifyNotSupported`], [`Error::BadNotifyId`], then as
    /// [`local_copy`](Self::local_copy).
    pub fn aclrt_notify_record(&self, id: u64) -> Result<(), Error> {
        aclrt_notify::by_id(self.handle(), id, aclrt_notify::Action::Record)
    }

    /// Queues a task that waits for the notify with this id for up to `timeout_s` seconds (0 = for ever) and clears it.
    ///
    /// # Errors
    /// As [`aclrt_notify_record`](Self::aclrt_notify_record).
    pub fn aclrt_notify_wait(&self, id: u64, timeout_s: u32) -> Result<(), Error> {
        aclrt_notify::by_id(self.handle(), id, aclrt_notify::Action::Wait { timeout_s })
    }

    /// Waits until the device has taken every task queued on this thread, and rings first for those that a batch has
    /// staged. At most `timeout_us` microseconds; 0 looks once.
    ///
    /// # Errors
    /// [`Error::QueueFull`] with no entry wanted after that time, and as [`local_copy`](Self::local_copy).
    pub fn join(&self, timeout_us: u64) -> Result<(), Error> {
        let launch = Launch;
        drain(&Platform, launch.core().ok_or(Error::NoCore)?, *self, Some(timeout_us))
    }

    /// [`join`](Self::join) with the limit of the core for a full queue.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn synchronize(&self) -> Result<(), Error> {
        let launch = Launch;
        let core = launch.core().ok_or(Error::NoCore)?;
        drain(&Platform, core, *self, Some(core.sq_full_timeout_us()).filter(|us| *us != 0))
    }

    /// The thread as one that notifies are sent to.
    pub fn peer(&self) -> Peer {
        self.0
    }

    /// The handle that the thread was looked up by.
    pub fn handle(&self) -> ThreadHandle {
        self.0.0
    }

    /// The ring of the thread, as the descriptor gives it now.
    ///
    /// # Errors
    /// As [`Ring::new`]; [`Stop::BadHandle`] if the thread was freed meanwhile.
    pub(crate) fn ring(&self) -> Result<Ring, Stop> {
        let ThreadDescriptor { sq_base, depth, sq_id, regs, stream_id, .. } = self.0.descriptor()?;
        Ring::new(sq_base, depth, QueueId { sq_id, regs }, stream_id)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::test_port::{GENERATION, TestPort};

    #[test]
    fn every_handle_but_the_live_one_is_refused() {
        let mut port = TestPort::new(4);
        let device = port.device();
        let core = Core::new(&device);
        let good = port.handle();
        assert_eq!(Thread::look_up(&core, good).map(|thread| thread.handle()), Ok(good));
        let unused = port.handle_of(3, GENERATION);
        let bad = [
            u64::MAX,
            1,
            good.0 + 1,
            good.0 + 8,
            good.0 - 63,
            good.0 & 0xffff_ffff_ffff,
            good.0 + (1 << 48),
            good.0 - (1 << 48),
            unused.0,
            port.handle_of(0, GENERATION).0 - 64,
            port.handle_of(4, GENERATION).0,
            port.handle_of(1 << 20, GENERATION).0,
            0x0007_0000_0000_0040,
        ];
        for handle in bad.map(ThreadHandle) {
            assert_eq!(Thread::look_up(&core, handle), Err(Error::BadHandle(handle)), "{:#x}", handle.0);
        }
    }

    #[test]
    fn unused_slot_of_zeros_is_refused_in_generation_zero_too() {
        let mut port = TestPort::new(4);
        let device = port.device();
        let zero = port.handle_of(3, 0);
        assert_eq!(Thread::look_up(&Core::new(&device), zero), Err(Error::BadHandle(zero)));
    }

    #[test]
    fn tag_of_another_version_or_kind_is_refused() {
        for edit in [|tag: &mut DescriptorTag| tag.version = 2, |tag: &mut DescriptorTag| tag.magic ^= 1] {
            let mut port = TestPort::new(4);
            let device = port.device();
            port.edit_descriptor(|descriptor| edit(&mut descriptor.tag));
            let handle = port.handle();
            assert_eq!(Thread::look_up(&Core::new(&device), handle), Err(Error::BadHandle(handle)));
        }
    }

    #[test]
    fn other_engines_are_refused() {
        for engine in [Engine::CPU_TS, Engine(-1), Engine(4), Engine(i32::MAX)] {
            let mut port = TestPort::new(4);
            let device = port.device();
            port.edit_descriptor(|descriptor| descriptor.engine = engine);
            let handle = port.handle();
            let error = Thread::look_up(&Core::new(&device), handle).unwrap_err();
            assert_eq!((error, error.code()), (Error::WrongEngine { handle, engine }, 6));
        }
    }

    #[test]
    fn device_without_a_table_refuses_every_handle() {
        let device = Box::new(Device::new());
        for handle in [1, 64, 0x0001_0000_0000_0000, u64::MAX].map(ThreadHandle) {
            assert_eq!(Thread::look_up(&Core::new(&device), handle), Err(Error::BadHandle(handle)));
        }
    }

    #[test]
    fn outside_a_kernel_there_is_no_core() {
        assert_eq!(Thread::from_handle(ThreadHandle(0)), Err(Error::NullThread));
        assert_eq!(Thread::from_handle(ThreadHandle(64)), Err(Error::NoCore));
    }
}
