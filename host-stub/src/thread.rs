//! Communication threads: a hardware queue, its ring, and the descriptor that a handle names.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use hcomm_aicpu::spec::queue::{MIN_DEPTH, QueueStatus};
use hcomm_aicpu::spec::thread::{DESCRIPTOR_SIZE, DescriptorTag, Engine, MAX_THREADS, ThreadDescriptor, ThreadHandle};
use hcomm_aicpu::spec::{DeviceAddr, SQE_SIZE};
use zerocopy::IntoBytes;

use crate::device::{Cpu, Inner, RECOVERY_TIMEOUT};
use crate::error::Error;
use crate::product::Acquire;
use crate::sim::alloc::Kind;
use crate::sim::error::QueueName;
use crate::sim::inbox::Command;
use crate::sim::memory::SharedMemory;
use crate::sim::queue::{QueueConfig, Registers, regs_phys};
use crate::sim::recovery::Recovery;

/// Most notifies of a thread.
pub const MAX_NOTIFIES: u32 = 65_535;
/// Most entries of a ring.
pub const MAX_DEPTH: u32 = 65_536;
/// How long the scheduler may take to give a queue back: longer than the largest task of an engine.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

/// What threads are acquired with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadConfig {
    /// Who queues their tasks; the device's product decides which there are.
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
    /// Entries of the ring.
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
#[derive(Clone, Copy, Debug)]
struct Acquired {
    engine: Engine,
    slot: u32,
    stream_id: u32,
    ring: DeviceAddr,
    depth: u32,
    /// Null without notifies.
    notify_table: DeviceAddr,
    notify_count: u32,
}

/// The table of thread descriptors, as the host keeps it. The slot of a thread is also the number of its queue.
pub(crate) struct ThreadTable {
    base: DeviceAddr,
    /// Generation of the last life of each slot.
    generations: Vec<u16>,
    live: HashMap<u32, Acquired>,
    next_notify_id: AtomicU32,
}

impl ThreadTable {
    /// An empty table at `base`.
    pub(crate) fn new(base: DeviceAddr) -> Self {
        Self { base, generations: vec![0; MAX_THREADS], live: HashMap::new(), next_notify_id: AtomicU32::new(0) }
    }

    fn addr(&self, slot: u32) -> DeviceAddr {
        DeviceAddr(self.base.0 + u64::from(slot) * DESCRIPTOR_SIZE)
    }
}

fn table(inner: &Inner) -> MutexGuard<'_, ThreadTable> {
    inner.threads.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Acquires threads: all of them, or none.
pub(crate) fn acquire(inner: &Inner, config: &ThreadConfig) -> Result<Vec<ThreadHandle>, Error> {
    let engine = inner.options.product.engine_for(Acquire::Threads, config.engine)?;
    let config = &ThreadConfig { engine, ..*config };
    inner.check_alive()?;
    config.check()?;
    let depth = config.depth.unwrap_or(inner.options.queue_depth);
    check_depth(depth)?;
    let mut table = table(inner);
    let slots: Vec<u32> =
        (0..MAX_THREADS as u32).filter(|slot| !table.live.contains_key(slot)).take(config.count as usize).collect();
    if slots.len() < config.count as usize {
        return Err(Error::NoThreads { wanted: config.count, free: slots.len() as u32 });
    }
    let first_stream_id = inner.stream_ids(config.count);
    let mut acquired = Vec::new();
    for (stream_id, slot) in (first_stream_id..).zip(slots) {
        match allocate(inner, slot, stream_id, depth, config) {
            Ok(thread) => acquired.push(thread),
            Err(error) => {
                for thread in &acquired {
                    free(inner, thread);
                }
                return Err(error);
            }
        }
    }
    acquired.into_iter().map(|thread| publish(inner, &mut table, thread)).collect()
}

fn allocate(inner: &Inner, slot: u32, stream_id: u32, depth: u32, config: &ThreadConfig) -> Result<Acquired, Error> {
    let ThreadConfig { engine, notify_count, .. } = *config;
    let ring = inner.allocate(u64::from(depth) * SQE_SIZE as u64, Kind::Ring)?;
    let notify_table = match notify_count {
        0 => DeviceAddr(0),
        count => inner.allocate(u64::from(count) * 4, Kind::Notify).inspect_err(|_| inner.free_own(ring))?,
    };
    Ok(Acquired { engine, slot, stream_id, ring, depth, notify_table, notify_count })
}

fn free(inner: &Inner, thread: &Acquired) {
    inner.free_own(thread.ring);
    if !thread.notify_table.is_null() {
        inner.free_own(thread.notify_table);
    }
}

/// Makes a thread known to scheduler and device: queue first, then the descriptor, its tag last.
fn publish(inner: &Inner, table: &mut ThreadTable, thread: Acquired) -> Result<ThreadHandle, Error> {
    let (shared, memory) = (&inner.shared, &*inner.shared.memory);
    let registers = Registers::of(memory, thread.slot);
    registers.reset();
    let entry = shared.queues.get(thread.slot).expect("as many queues as thread slots");
    entry.doorbells.store(0, Ordering::Relaxed);
    entry.tasks.store(0, Ordering::Relaxed);
    entry.noticed.store(false, Ordering::Relaxed);
    let Acquired { stream_id, slot: sq_id, ring, depth, .. } = thread;
    shared.inbox.send(Command::AddQueue(QueueConfig { stream_id, sq_id, base: ring.0, depth }));
    entry.depth.store(depth, Ordering::Release);
    let name = QueueName { stream_id: Some(stream_id), sq_id };
    let refuse_at = inner.options.faults.refused_doorbell(name).unwrap_or(0);
    entry.rings.store(0, Ordering::Relaxed);
    entry.refuse_at.store(refuse_at, Ordering::Relaxed);
    if thread.notify_count != 0 {
        let first = table.next_notify_id.fetch_add(thread.notify_count, Ordering::Relaxed);
        let ids: Vec<u32> = (first..).take(thread.notify_count as usize).collect();
        memory.write(thread.notify_table.0, ids.as_bytes())?;
    }
    let generation = &mut table.generations[thread.slot as usize];
    *generation = generation.checked_add(1).unwrap_or(1);
    registers.enable(*generation);
    // A doorbell that is a store can't be refused: the queue says so before.
    if refuse_at == 1 && inner.options.cpu == Cpu::Qemu {
        registers.set_state(QueueStatus::REFUSING);
    }
    let tag = DescriptorTag::live(*generation);
    let descriptor = ThreadDescriptor {
        tag,
        engine: thread.engine,
        stream_id,
        sq_id,
        depth,
        sq_base: ring,
        regs: regs_phys(sq_id),
        notify_table: thread.notify_table,
        notify_count: thread.notify_count,
        reserved: [0; 3],
    };
    let addr = table.addr(thread.slot);
    memory.write(addr.0 + 8, &descriptor.as_bytes()[8..])?;
    // Release pairs with the device's acquire read of the tag: who sees it alive sees the rest.
    memory.hbm_word64(addr.0)?.store(tag.to_bits(), Ordering::Release);
    table.live.insert(thread.slot, thread);
    Ok(ThreadHandle::new(addr, tag.generation))
}

/// Gives threads back: nothing of them runs after this.
pub(crate) fn release(inner: &Inner, handles: &[ThreadHandle]) {
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
        log::error!("the scheduler has not given {} queues back within {REMOVE_TIMEOUT:?}", released.len());
        return;
    }
    for thread in &released {
        free(inner, thread);
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

/// Lets them start anew.
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
    let slot = (handle.addr().0.checked_sub(table.base.0)? / DESCRIPTOR_SIZE) as u32;
    let thread = table.live.get(&slot)?;
    (table.generations[slot as usize] == handle.generation()).then_some(thread)
}

/// What a thread is made of.
pub(crate) fn info(inner: &Inner, handle: ThreadHandle) -> Option<ThreadInfo> {
    let table = table(inner);
    let &Acquired { stream_id, slot: sq_id, depth, .. } = find(&table, handle)?;
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
