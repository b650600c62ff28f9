//! Communication threads: a hardware queue, its ring, and the descriptor that a handle names.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use hcomm_aicpu::spec::queue::{MIN_DEPTH, QueueStatus};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::stars910;
use hcomm_aicpu::spec::thread::{
    DESCRIPTOR_SIZE, DescriptorTag, Engine, MAX_THREADS, NotifyTable, ThreadDescriptor, ThreadHandle,
};
use hcomm_aicpu::spec::{DeviceAddr, SQE_SIZE};
use zerocopy::IntoBytes;

use crate::device::{Cpu, Inner, RECOVERY_TIMEOUT};
use crate::error::Error;
use crate::product::Acquire;
use hcomm_mapping::SharedMemory;
use hcomm_sim::alloc::Kind;
use hcomm_sim::error::QueueName;
use hcomm_sim::event::{AcquiredThread, Caller, HostThread, What};
use hcomm_sim::inbox::Command;
use hcomm_sim::inbox::Recovery;
use hcomm_sim::notify::{MAX_NOTIFY_IDS, Owner};
use hcomm_sim::queue::{QueueConfig, Registers, regs_phys};

/// Most notifies of a thread.
pub const MAX_NOTIFIES: u32 = 65_535;
/// Most entries of a ring.
pub const MAX_DEPTH: u32 = 65_536;
/// How long the scheduler may take to release a queue: longer than the largest task of an engine.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

/// What threads are acquired with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadConfig {
    /// Engine that queues their tasks; the device's product decides which are supported.
    pub engine: Engine,
    /// Number of threads.
    pub count: u32,
    /// Notifies of each thread.
    pub notify_count: u32,
    /// Entries of each ring; `None`: what the device was opened with.
    pub depth: Option<u32>,
}

impl ThreadConfig {
    /// `count` threads of engine AICPU_TS without notifies.
    pub fn new(count: u32) -> Self {
        Self { engine: Engine::AICPU_TS, count, notify_count: 0, depth: None }
    }

    /// # Errors
    /// A number out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.count == 0 || self.count as usize > MAX_THREADS {
            return Err(Error::BadThreadCount(self.count));
        }
        if self.notify_count > MAX_NOTIFIES {
            return Err(Error::BadNotifyCount(self.notify_count));
        }
        Ok(())
    }

    /// Sets the notifies of each thread.
    pub fn notifies(self, notify_count: u32) -> Self {
        Self { notify_count, ..self }
    }

    /// Sets the entries of each ring.
    pub fn depth(self, depth: u32) -> Self {
        Self { depth: Some(depth), ..self }
    }
}

/// What a thread is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Stream whose tasks its queue holds.
    pub stream_id: u32,
    /// Its queue.
    pub sq_id: u32,
    /// Entries of the ring; 0 for a thread of the host.
    pub depth: u32,
}

/// Counts of one thread's queue since it was acquired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Tasks that were carried out.
    pub tasks: u64,
    /// Doorbells that were rung.
    pub doorbells: u64,
}

/// # Errors
/// [`Error::BadDepth`].
pub(crate) fn check_depth(depth: u32) -> Result<(), Error> {
    if (MIN_DEPTH..=MAX_DEPTH).contains(&depth) { Ok(()) } else { Err(Error::BadDepth(depth)) }
}

/// One acquired thread.
#[derive(Clone, Debug)]
struct Acquired {
    comm: u64,
    engine: Engine,
    slot: u32,
    stream_id: u32,
    /// Null for a thread of the host: its tasks are operations of its stream.
    ring: DeviceAddr,
    depth: u32,
    /// Null without notifies.
    notify_table: DeviceAddr,
    notify_ids: Vec<u32>,
}

/// The table of thread descriptors, as the host keeps it. The slot of a thread is also the number of its queue.
pub(crate) struct ThreadTable {
    base: DeviceAddr,
    /// Generation of the last thread of each slot, 0 before the first.
    generations: Vec<u16>,
    live: HashMap<u32, Acquired>,
    notify_ids: NotifyIds,
}

impl ThreadTable {
    /// An empty table at `base`.
    pub(crate) fn new(base: DeviceAddr, soc: Soc) -> Self {
        let notify_ids = NotifyIds::new(match soc {
            Soc::Ascend950 => MAX_NOTIFY_IDS,
            // A descriptor can't name larger ids.
            Soc::Ascend910B | Soc::Ascend910_93 => stars910::MAX_NOTIFY_ID + 1,
        });
        Self { base, generations: vec![0; MAX_THREADS], live: HashMap::new(), notify_ids }
    }

    /// Slots for new threads. A slot whose last generation is used up is never one again: a handle or status word that
    /// returned could be taken for an earlier thread's.
    fn free_slots(&self) -> impl Iterator<Item = u32> {
        let is_free = |slot: &u32| !self.live.contains_key(slot) && self.generations[*slot as usize] < u16::MAX;
        (0..MAX_THREADS as u32).filter(is_free)
    }

    fn addr(&self, slot: u32) -> DeviceAddr {
        DeviceAddr(self.base.0 + u64::from(slot) * DESCRIPTOR_SIZE)
    }
}

fn table(inner: &Inner) -> MutexGuard<'_, ThreadTable> {
    inner.threads.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acquires threads of communicator `comm`: all of them, or none. `streams` returns that many numbers of new streams; it is called after all
/// checks.
pub(crate) fn acquire(
    inner: &Inner,
    comm: u64,
    config: &ThreadConfig,
    streams: impl FnOnce(u32) -> Vec<u32>,
    caller: Caller,
) -> Result<Vec<ThreadHandle>, Error> {
    let engine = inner.options.product.engine_for(Acquire::Threads, config.engine)?;
    let config = &ThreadConfig { engine, ..*config };
    inner.check_alive()?;
    config.check()?;
    let depth = config.depth.unwrap_or(inner.options.queue_depth);
    check_depth(depth)?;
    let threads = Threads { comm, engine, depth, notify_count: config.notify_count };
    acquire_on(inner, threads, &streams(config.count), caller)
}

/// Acquires a thread of the host, whose tasks are operations of stream `stream_id`.
pub(crate) fn acquire_with_stream(
    inner: &Inner,
    comm: u64,
    stream_id: u32,
    notify_count: u32,
    caller: Caller,
) -> Result<ThreadHandle, Error> {
    let engine = inner.options.product.engine_for(Acquire::WithStream, Engine::CPU_TS)?;
    inner.check_alive()?;
    if notify_count > MAX_NOTIFIES {
        return Err(Error::BadNotifyCount(notify_count));
    }
    Ok(acquire_on(inner, Threads { comm, engine, depth: 0, notify_count }, &[stream_id], caller)?[0])
}

/// What threads of one call have in common.
#[derive(Clone, Copy)]
struct Threads {
    comm: u64,
    engine: Engine,
    depth: u32,
    notify_count: u32,
}

/// Acquires a thread for each of `streams`: all of them, or none.
fn acquire_on(
    inner: &Inner,
    Threads { comm, engine, depth, notify_count }: Threads,
    streams: &[u32],
    caller: Caller,
) -> Result<Vec<ThreadHandle>, Error> {
    let _call = inner.shared.events.host_call();
    let mut table = table(inner);
    let wanted = streams.len();
    let slots: Vec<u32> = table.free_slots().take(wanted).collect();
    if slots.len() < wanted {
        return Err(Error::NoThreads { wanted: wanted as u32, free: slots.len() as u32 });
    }
    let notifies = u64::from(notify_count) * wanted as u64;
    let mut free_ids = table.notify_ids.take(notifies)?.into_iter();
    let mut acquired = Vec::new();
    for (&stream_id, slot) in streams.iter().zip(slots) {
        let notify_ids: Vec<u32> = free_ids.by_ref().take(notify_count as usize).collect();
        match allocate(inner, engine, depth, notify_count) {
            Ok((ring, notify_table)) => {
                acquired.push(Acquired { slot, comm, engine, stream_id, ring, depth, notify_table, notify_ids });
            }
            Err(error) => {
                // Those of this thread, and of the next ones.
                table.notify_ids.give_back(notify_ids.into_iter().chain(free_ids));
                for thread in &acquired {
                    free(inner, &mut table, thread);
                }
                return Err(error);
            }
        }
    }
    let slots: Vec<u32> = acquired.iter().map(|thread| thread.slot).collect();
    let handles: Result<Vec<_>, _> = acquired.into_iter().map(|thread| publish(inner, &mut table, thread)).collect();
    let handles = handles?;
    inner.shared.events.send(|| {
        let threads = handles.iter().zip(slots).zip(streams);
        let threads =
            threads.map(|((handle, sq_id), &stream_id)| AcquiredThread { handle: handle.0, stream_id, sq_id });
        What::ThreadsAcquired { host: HostThread::current(), threads: threads.collect(), caller }
    });
    Ok(handles)
}

/// Ring, if the engine has one, and notify table, if there are notifies.
fn allocate(inner: &Inner, engine: Engine, depth: u32, notifies: u32) -> Result<(DeviceAddr, DeviceAddr), Error> {
    let ring = match engine {
        Engine::AICPU_TS => inner.allocate(u64::from(depth) * SQE_SIZE as u64, Kind::Ring)?,
        _ => DeviceAddr(0),
    };
    let notify_table = match notifies {
        0 => DeviceAddr(0),
        count => inner.allocate(u64::from(count) * 4, Kind::Notify).inspect_err(|_| free_if_any(inner, ring))?,
    };
    Ok((ring, notify_table))
}

fn free_if_any(inner: &Inner, addr: DeviceAddr) {
    if !addr.is_null() {
        inner.free_own(addr);
    }
}

fn free(inner: &Inner, table: &mut ThreadTable, thread: &Acquired) {
    free_if_any(inner, thread.ring);
    free_if_any(inner, thread.notify_table);
    table.notify_ids.give_back(thread.notify_ids.iter().copied());
}

/// Makes a thread known to scheduler and device: queue first, then the descriptor, its tag last.
fn publish(inner: &Inner, table: &mut ThreadTable, thread: Acquired) -> Result<ThreadHandle, Error> {
    let (shared, memory) = (&inner.shared, &*inner.shared.memory);
    let registers = Registers::of(memory, thread.slot);
    registers.reset();
    let entry = shared.queues.get(thread.slot).expect("as many queues as thread slots");
    entry.doorbells.store(0, Ordering::Relaxed);
    entry.tasks.store(0, Ordering::Relaxed);
    entry.rung.store(0, Ordering::Relaxed);
    entry.noticed.store(false, Ordering::Relaxed);
    let Acquired { comm, engine, stream_id, slot: sq_id, ring, depth, notify_table, .. } = thread;
    let refuse_at = inner.options.faults.refused_doorbell(QueueName { stream_id: Some(stream_id), sq_id }).unwrap_or(0);
    entry.rings.store(0, Ordering::Relaxed);
    entry.refuse_at.store(refuse_at, Ordering::Relaxed);
    if engine == Engine::AICPU_TS {
        shared.inbox.send(Command::AddQueue(QueueConfig { stream_id, sq_id, base: ring.0, depth }));
        entry.depth.store(depth, Ordering::Release);
    }
    if !thread.notify_ids.is_empty() {
        memory.write(notify_table.0, thread.notify_ids.as_bytes())?;
        let owner = |index| Owner::Thread { stream_id, index };
        let owned = (0..).zip(&thread.notify_ids).map(|(index, id)| (*id, owner(index)));
        shared.inbox.send(Command::AddNotifies(owned.collect()));
    }
    let generation = &mut table.generations[thread.slot as usize];
    *generation = generation.checked_add(1).expect("a slot of `free_slots` has a generation left");
    if engine == Engine::AICPU_TS {
        registers.enable(*generation);
        // A doorbell that is a store can't be refused: the queue's status announces it.
        if refuse_at == 1 && inner.options.cpu == Cpu::Qemu {
            registers.set_state(QueueStatus::REFUSING);
            shared.inbox.send(Command::Refused(sq_id));
        }
    }
    let tag = DescriptorTag::live(*generation);
    let descriptor = ThreadDescriptor {
        tag,
        engine,
        stream_id,
        sq_id,
        depth,
        sq_base: ring,
        regs: regs_phys(sq_id),
        notifies: NotifyTable::new(notify_table, thread.notify_ids.len() as u16),
        comm,
        reserved: 0,
    };
    let addr = table.addr(thread.slot);
    let (before, after) = (offset_of!(ThreadDescriptor, notifies), offset_of!(ThreadDescriptor, comm));
    memory.write(addr.0 + 8, &descriptor.as_bytes()[8..before])?;
    memory.write(addr.0 + after as u64, &descriptor.as_bytes()[after..])?;
    // One word: a device that looks at the slot meanwhile sees the notifies of one thread.
    memory.hbm_word64(addr.0 + before as u64)?.store(descriptor.notifies.0, Ordering::Relaxed);
    // Release pairs with the device's acquire read of the tag: a device that sees it live sees the rest.
    memory.hbm_word64(addr.0)?.store(tag.to_bits(), Ordering::Release);
    table.live.insert(thread.slot, thread);
    Ok(ThreadHandle::new(addr, tag.generation))
}

/// Releases threads: none of their tasks runs after this.
pub(crate) fn release(inner: &Inner, handles: &[ThreadHandle]) {
    let _call = inner.shared.events.host_call();
    let mut table = table(inner);
    let (shared, memory) = (&inner.shared, &*inner.shared.memory);
    let mut released = Vec::new();
    for handle in handles {
        let slot = ((handle.addr().0 - table.base.0) / DESCRIPTOR_SIZE) as u32;
        let Some(thread) = table.live.remove(&slot) else { continue };
        clear_tag(memory, handle.addr());
        Registers::of(memory, slot).set_state(QueueStatus::FREE);
        shared.queues.get(slot).expect("as many queues as thread slots").depth.store(0, Ordering::Release);
        released.push(thread);
    }
    let (reply, answer) = sync_channel(1);
    let slots: Vec<u32> = released.iter().map(|thread| thread.slot).collect();
    shared.inbox.send(Command::RemoveQueues(slots, reply));
    if shared.receive(&answer, REMOVE_TIMEOUT).is_err() && !inner.scheduler_gone() {
        // An engine may still write: the rings stay allocated until the device closes.
        log::error!("the scheduler has not released {} queues within {REMOVE_TIMEOUT:?}", released.len());
        return;
    }
    inner.shared.events.send(|| {
        let threads = handles.iter().map(|handle| handle.0).collect();
        What::ThreadsReleased { host: HostThread::current(), threads }
    });
    let notify_ids = released.iter().flat_map(|thread| thread.notify_ids.iter().copied()).collect();
    shared.inbox.send(Command::RemoveNotifies(notify_ids));
    for thread in &released {
        free(inner, &mut table, thread);
    }
}

/// Numbers of the queues of live threads.
fn queues_of(inner: &Inner, handles: &[ThreadHandle]) -> Vec<u32> {
    let table = table(inner);
    let slot = |handle: &ThreadHandle| ((handle.addr().0 - table.base.0) / DESCRIPTOR_SIZE) as u32;
    handles.iter().map(slot).filter(|slot| table.live.contains_key(slot)).collect()
}

/// Stops the queues of threads.
pub(crate) fn suspend(inner: &Inner, handles: &[ThreadHandle]) -> Result<(), Error> {
    let (reply, answer) = sync_channel(1);
    inner.shared.inbox.send(Command::SuspendQueues(queues_of(inner, handles), reply));
    inner.shared.receive(&answer, RECOVERY_TIMEOUT).map_err(|_| Error::SchedulerGone)
}

/// Resets and enables the queues of threads.
pub(crate) fn resume(inner: &Inner, handles: &[ThreadHandle]) -> Result<(), Error> {
    let (reply, answer) = sync_channel(1);
    inner.shared.inbox.send(Command::Recover(Recovery::Resume(queues_of(inner, handles), reply)));
    match inner.shared.receive(&answer, RECOVERY_TIMEOUT) {
        Ok(()) => Ok(()),
        Err(_) if inner.scheduler_gone() => Err(Error::SchedulerGone),
        Err(_) => Err(Error::Resume(RECOVERY_TIMEOUT)),
    }
}

fn clear_tag(memory: &SharedMemory, addr: DeviceAddr) {
    let tag = memory.hbm_word64(addr.0).expect("the thread table is in hbm");
    tag.store(0, Ordering::SeqCst);
}

/// The live thread that a handle names.
fn find(table: &ThreadTable, handle: ThreadHandle) -> Option<&Acquired> {
    let offset = handle.addr().0.checked_sub(table.base.0).filter(|offset| offset.is_multiple_of(DESCRIPTOR_SIZE))?;
    let slot = u32::try_from(offset / DESCRIPTOR_SIZE).ok()?;
    let thread = table.live.get(&slot)?;
    (table.generations[slot as usize] == handle.generation()).then_some(thread)
}

/// What a thread is made of.
pub(crate) fn info(inner: &Inner, handle: ThreadHandle) -> Option<ThreadInfo> {
    let table = table(inner);
    let Acquired { stream_id, slot: sq_id, depth, .. } = *find(&table, handle)?;
    Some(ThreadInfo { stream_id, sq_id, depth })
}

/// Counts of a thread's queue.
pub(crate) fn statistics(inner: &Inner, handle: ThreadHandle) -> Option<QueueStatistics> {
    let table = table(inner);
    let entry = inner.shared.queues.get(find(&table, handle)?.slot)?;
    Some(QueueStatistics {
        tasks: entry.tasks.load(Ordering::Relaxed),
        doorbells: entry.doorbells.load(Ordering::Relaxed),
    })
}

/// Engine and stream of a live thread, and the id of its notify `index`.
///
/// # Errors
/// [`Error::BadThread`], [`Error::BadNotifyIndex`].
pub(crate) fn notify(inner: &Inner, handle: ThreadHandle, index: u32) -> Result<u32, Error> {
    let table = table(inner);
    let thread = find(&table, handle).ok_or(Error::BadThread { handle: handle.0, engine: None })?;
    let id = thread.notify_ids.get(index as usize).copied();
    id.ok_or(Error::BadNotifyIndex { index, count: thread.notify_ids.len() as u32 })
}

/// Stream of a live thread of the host.
///
/// # Errors
/// [`Error::BadThread`].
pub(crate) fn host_stream_id(inner: &Inner, handle: ThreadHandle) -> Result<u32, Error> {
    let table = table(inner);
    let thread = find(&table, handle).filter(|thread| thread.engine == Engine::CPU_TS);
    let engine = Some(Engine::CPU_TS.0);
    Ok(thread.ok_or(Error::BadThread { handle: handle.0, engine })?.stream_id)
}

/// Notifies of a live thread.
pub(crate) fn notify_count(inner: &Inner, handle: ThreadHandle) -> Option<usize> {
    Some(find(&table(inner), handle)?.notify_ids.len())
}

/// An id for a notify that belongs to no thread.
pub(crate) fn take_notify_id(inner: &Inner) -> Result<u32, Error> {
    Ok(table(inner).notify_ids.take(1)?[0])
}

pub(crate) fn give_back_notify_id(inner: &Inner, id: u32) {
    table(inner).notify_ids.give_back([id].into_iter());
}

/// Notify ids that are in use. Each id has one user at a time.
struct NotifyIds {
    max: u64,
    used: Vec<bool>,
    count: u64,
}

impl NotifyIds {
    /// `max` ids, from 0 on.
    fn new(max: u32) -> Self {
        Self { max: max.into(), used: Vec::new(), count: 0 }
    }

    /// The `count` lowest free ids.
    fn take(&mut self, count: u64) -> Result<Vec<u32>, Error> {
        let max = self.max;
        if count > max - self.count {
            return Err(Error::NoNotifies { wanted: count, free: max - self.count, max });
        }
        let mut ids = Vec::with_capacity(count as usize);
        let mut id = 0;
        while (ids.len() as u64) < count {
            if id == self.used.len() {
                self.used.push(false);
            }
            if !std::mem::replace(&mut self.used[id], true) {
                ids.push(id as u32);
            }
            id += 1;
        }
        self.count += count;
        Ok(ids)
    }

    fn give_back(&mut self, ids: impl Iterator<Item = u32>) {
        for id in ids {
            self.used[id as usize] = false;
            self.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_come_back() {
        let mut ids = NotifyIds::new(MAX_NOTIFY_IDS);
        assert_eq!(ids.take(3).unwrap(), [0, 1, 2]);
        ids.give_back([1].into_iter());
        assert_eq!(ids.take(2).unwrap(), [1, 3]);
        let rest = u64::from(MAX_NOTIFY_IDS) - 4;
        let error = ids.take(rest + 1).unwrap_err().to_string();
        assert_eq!(error, "131069 notifies: only 131068 of 131072 are free");
        assert_eq!(ids.take(rest).unwrap().last(), Some(&(MAX_NOTIFY_IDS - 1)));
    }
}
