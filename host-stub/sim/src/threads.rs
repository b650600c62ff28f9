//! Communication threads of a device: a hardware queue, its ring, and the descriptor that a handle names.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hcomm_aicpu::spec::map::regs_phys;
use hcomm_aicpu::spec::thread::{
    DESCRIPTOR_SIZE, DescriptorTag, Engine, MAX_THREADS, NotifyTable, ThreadDescriptor, ThreadHandle,
};
use hcomm_aicpu::spec::{DeviceAddr, SQE_SIZE};
use zerocopy::IntoBytes;

use super::alloc::{AllocError, Kind};
use super::event::{AcquiredThread, Caller, HostThread, What};
use super::fault::FaultPlan;
use super::inbox::Command;
use super::memory::Memory;
use super::message::debug_is_the_message;
use super::notify::Owner;
use super::notify_ids::{NotifyIds, TooFewIds};
use super::queue::QueueConfig;
use super::shared::Shared;

/// How long the scheduler may take to release a queue: longer than the largest task of an engine.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(60);

/// Why threads, or notifies of them, can't be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThreadError {
    /// Every slot of the thread table is in use.
    #[error("{wanted} threads: only {free} of {max} are free", max = MAX_THREADS)]
    NoThreads {
        /// Requested.
        wanted: u32,
        /// Free.
        free: u32,
    },
    /// Notifies of a communicator or of the device have run out.
    #[error("{wanted} notifies: only {free} of {max} are free")]
    NoNotifies {
        /// Requested.
        wanted: u64,
        /// Free.
        free: u64,
        /// Maximum.
        max: u64,
    },
    /// A handle that is not that of a live thread, or of a thread of the wrong engine.
    #[error("thread handle {handle:#x} names no live thread{}", engine_text(*.engine))]
    BadThread {
        /// The handle.
        handle: u64,
        /// Engine that the call needs.
        engine: Option<i32>,
    },
    /// The index of a notify is out of range.
    #[error("notify index {index} is out of range: the thread has {count} notifies")]
    BadNotifyIndex {
        /// Index.
        index: u32,
        /// Notifies of the thread.
        count: u32,
    },
    /// No room for a ring or a table of notifies.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}
debug_is_the_message!(ThreadError);

fn engine_text(engine: Option<i32>) -> String {
    engine.map_or(String::new(), |engine| format!(" of engine {engine}"))
}

/// What threads are made from.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSpec {
    /// Number of their communicator.
    pub comm: u64,
    /// Engine that queues their tasks: AICPU_TS, or CPU_TS for a thread of the host.
    pub engine: Engine,
    /// Entries of each ring; a thread of the host has none.
    pub depth: u32,
    /// Notifies of each thread.
    pub notify_count: u32,
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

/// How a kernel learns that a doorbell is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedDoorbell {
    /// The doorbell is a call, which answers.
    ByAnswer,
    /// The doorbell is a store, which has no answer: the status of the queue announces it.
    ByStatus,
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
struct Table {
    base: DeviceAddr,
    /// Generation of the last thread of each slot, 0 before the first.
    generations: Vec<u16>,
    live: HashMap<u32, Acquired>,
    notify_ids: NotifyIds,
}

impl Table {
    /// Slots for new threads. A slot whose last generation is used up is not handed out again: a handle or status word that
    /// returned could be taken for an earlier thread's.
    fn free_slots(&self) -> impl Iterator<Item = u32> {
        let is_free = |slot: &u32| !self.live.contains_key(slot) && self.generations[*slot as usize] < u16::MAX;
        (0..MAX_THREADS as u32).filter(is_free)
    }

    fn addr(&self, slot: u32) -> DeviceAddr {
        DeviceAddr(self.base.0 + u64::from(slot) * DESCRIPTOR_SIZE)
    }

    fn take_notify_ids(&mut self, wanted: u64) -> Result<Vec<u32>, ThreadError> {
        self.notify_ids.take(wanted).map_err(|TooFewIds { free, max }| ThreadError::NoNotifies { wanted, free, max })
    }

    /// Slot of the descriptor that a handle names, live or not.
    fn slot(&self, handle: ThreadHandle) -> Option<u32> {
        let offset =
            handle.addr().0.checked_sub(self.base.0).filter(|offset| offset.is_multiple_of(DESCRIPTOR_SIZE))?;
        u32::try_from(offset / DESCRIPTOR_SIZE).ok()
    }

    /// The live thread that a handle names.
    fn find(&self, handle: ThreadHandle) -> Option<&Acquired> {
        let slot = self.slot(handle)?;
        let thread = self.live.get(&slot)?;
        (self.generations[slot as usize] == handle.generation()).then_some(thread)
    }
}

/// The threads of a device.
pub struct Threads<M> {
    shared: Arc<Shared<M>>,
    faults: FaultPlan,
    refused_doorbell: RefusedDoorbell,
    table: Mutex<Table>,
}

impl<M: Memory> Threads<M> {
    /// No threads, in a table of [`MAX_THREADS`] descriptors at `base` of HBM.
    pub fn new(
        shared: &Arc<Shared<M>>,
        base: DeviceAddr,
        faults: FaultPlan,
        refused_doorbell: RefusedDoorbell,
    ) -> Self {
        let notify_ids = NotifyIds::new(shared.soc);
        let table = Table { base, generations: vec![0; MAX_THREADS], live: HashMap::new(), notify_ids };
        Self { shared: Arc::clone(shared), faults, refused_doorbell, table: Mutex::new(table) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a thread for each of `streams`: all of them, or none.
    ///
    /// # Errors
    /// No slot, no notify, no memory.
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn acquire(
        &self,
        spec: &ThreadSpec,
        streams: &[u32],
        caller: Caller,
    ) -> Result<Vec<ThreadHandle>, ThreadError> {
        let _call = self.shared.events.host_call();
        let mut table = self.table();
        let wanted = streams.len();
        let slots: Vec<u32> = table.free_slots().take(wanted).collect();
        if slots.len() < wanted {
            return Err(ThreadError::NoThreads { wanted: wanted as u32, free: slots.len() as u32 });
        }
        let notifies = u64::from(spec.notify_count) * wanted as u64;
        let mut free_ids = table.take_notify_ids(notifies)?.into_iter();
        let mut acquired = Vec::new();
        for (&stream_id, &slot) in streams.iter().zip(&slots) {
            let notify_ids: Vec<u32> = free_ids.by_ref().take(spec.notify_count as usize).collect();
            match self.allocate(spec) {
                Ok((ring, notify_table)) => {
                    let ThreadSpec { comm, engine, depth, .. } = *spec;
                    acquired.push(Acquired { comm, slot, engine, stream_id, ring, depth, notify_table, notify_ids });
                }
                Err(error) => {
                    // Those of this thread, and of the next ones.
                    table.notify_ids.give_back(notify_ids.into_iter().chain(free_ids));
                    for thread in &acquired {
                        self.free(&mut table, thread);
                    }
                    return Err(error);
                }
            }
        }
        let handles: Vec<_> = acquired.into_iter().map(|thread| self.publish(&mut table, thread)).collect();
        let threads = handles.iter().zip(slots).zip(streams);
        let threads =
            threads.map(|((handle, sq_id), &stream_id)| AcquiredThread { handle: handle.0, stream_id, sq_id });
        self.shared.events.threads_acquired(threads, caller);
        Ok(handles)
    }

    /// Ring, if the engine has one, and notify table, if there are notifies.
    fn allocate(&self, spec: &ThreadSpec) -> Result<(DeviceAddr, DeviceAddr), ThreadError> {
        let allocate = |len, kind| self.shared.allocate(len, kind).map(DeviceAddr);
        let ring = match spec.engine {
            Engine::AICPU_TS => allocate(u64::from(spec.depth) * SQE_SIZE as u64, Kind::Ring)?,
            _ => DeviceAddr(0),
        };
        let notify_table = match spec.notify_count {
            0 => DeviceAddr(0),
            count => allocate(u64::from(count) * 4, Kind::Notify).inspect_err(|_| self.free_if_any(ring))?,
        };
        Ok((ring, notify_table))
    }

    fn free_if_any(&self, addr: DeviceAddr) {
        if !addr.is_null() {
            self.shared.free_own(addr.0, Some(HostThread::current()));
        }
    }

    fn free(&self, table: &mut Table, thread: &Acquired) {
        self.free_if_any(thread.ring);
        self.free_if_any(thread.notify_table);
        table.notify_ids.give_back(thread.notify_ids.iter().copied());
    }

    /// Makes a thread known to scheduler and device: queue first, then the descriptor, its tag last.
    fn publish(&self, table: &mut Table, thread: Acquired) -> ThreadHandle {
        let (shared, memory) = (&self.shared, &*self.shared.memory);
        let Acquired { comm, engine, stream_id, slot: sq_id, ring, depth, notify_table, .. } = thread;
        let generation = &mut table.generations[sq_id as usize];
        *generation = generation.checked_add(1).expect("a slot of `free_slots` has a generation left");
        let generation = *generation;
        if engine == Engine::AICPU_TS {
            let config = QueueConfig { stream_id, sq_id, base: ring.0, depth };
            let refuse_at = self.faults.refused_doorbell(config.name()).unwrap_or(0);
            shared.add_queue(config, generation, refuse_at);
            if refuse_at == 1 && self.refused_doorbell == RefusedDoorbell::ByStatus {
                shared.announce_refused_doorbell(sq_id);
            }
        } else {
            shared.queue_entry(sq_id).clear();
        }
        if !thread.notify_ids.is_empty() {
            memory.write_hbm(notify_table.0, thread.notify_ids.as_bytes()).expect("allocated in hbm");
            let owner = |index| Owner::Thread { stream_id, index };
            let owned = (0..).zip(&thread.notify_ids).map(|(index, id)| (*id, owner(index)));
            shared.inbox.send(Command::AddNotifies(owned.collect()));
        }
        let tag = DescriptorTag::live(generation);
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
        let addr = table.addr(sq_id);
        let (before, after) = (offset_of!(ThreadDescriptor, notifies), offset_of!(ThreadDescriptor, comm));
        let write = |offset: usize, bytes| memory.write_hbm(addr.0 + offset as u64, bytes);
        let publish = |offset: usize, word| memory.publish_hbm_word(addr.0 + offset as u64, word);
        write(8, &descriptor.as_bytes()[8..before]).expect("the table is in hbm");
        write(after, &descriptor.as_bytes()[after..]).expect("the table is in hbm");
        // One word: a device that looks at the slot meanwhile sees the notifies of one thread.
        publish(before, descriptor.notifies.0).expect("the table is in hbm");
        // Pairs with the device's acquire read of the tag: a device that sees it live sees the rest.
        publish(0, tag.to_bits()).expect("the table is in hbm");
        table.live.insert(sq_id, thread);
        ThreadHandle::new(addr, tag.generation)
    }

    /// Releases threads: none of their tasks runs after this. `is_gone` says whether the scheduler has ended.
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn release(&self, handles: &[ThreadHandle], is_gone: impl FnOnce() -> bool) {
        let _call = self.shared.events.host_call();
        let mut table = self.table();
        let shared = &self.shared;
        let mut released = Vec::new();
        for handle in handles {
            let Some(thread) = table.slot(*handle).and_then(|slot| table.live.remove(&slot)) else { continue };
            shared.memory.publish_hbm_word(handle.addr().0, 0).expect("the table is in hbm");
            shared.free_queue(thread.slot);
            released.push(thread);
        }
        let (reply, answer) = sync_channel(1);
        let slots: Vec<u32> = released.iter().map(|thread| thread.slot).collect();
        shared.inbox.send(Command::RemoveQueues(slots, reply));
        if shared.receive(&answer, REMOVE_TIMEOUT).is_err() && !is_gone() {
            // An engine may still write: the rings stay allocated until the device closes.
            log::error!("the scheduler has not released {} queues within {REMOVE_TIMEOUT:?}", released.len());
            return;
        }
        shared.events.send(|| {
            let threads = handles.iter().map(|handle| handle.0).collect();
            What::ThreadsReleased { host: HostThread::current(), threads }
        });
        let notify_ids = released.iter().flat_map(|thread| thread.notify_ids.iter().copied()).collect();
        shared.inbox.send(Command::RemoveNotifies(notify_ids));
        for thread in &released {
            self.free(&mut table, thread);
        }
    }

    /// Numbers of the queues of those threads that are live.
    pub fn queues(&self, handles: &[ThreadHandle]) -> Vec<u32> {
        let table = self.table();
        handles.iter().filter_map(|handle| table.find(*handle)).map(|thread| thread.slot).collect()
    }

    /// What a thread is made of; `None`: it is not live.
    pub fn info(&self, handle: ThreadHandle) -> Option<ThreadInfo> {
        let Acquired { stream_id, slot: sq_id, depth, .. } = *self.table().find(handle)?;
        Some(ThreadInfo { stream_id, sq_id, depth })
    }

    /// Counts of a thread's queue; `None`: the thread is not live.
    pub fn statistics(&self, handle: ThreadHandle) -> Option<QueueStatistics> {
        let sq_id = self.table().find(handle)?.slot;
        let (tasks, doorbells) = self.shared.queue_entry(sq_id).counts();
        Some(QueueStatistics { tasks, doorbells })
    }

    /// Id of notify `index` of a live thread.
    ///
    /// # Errors
    /// [`ThreadError::BadThread`], [`ThreadError::BadNotifyIndex`].
    pub fn notify_id(&self, handle: ThreadHandle, index: u32) -> Result<u32, ThreadError> {
        let table = self.table();
        let thread = table.find(handle).ok_or(ThreadError::BadThread { handle: handle.0, engine: None })?;
        let id = thread.notify_ids.get(index as usize).copied();
        id.ok_or(ThreadError::BadNotifyIndex { index, count: thread.notify_ids.len() as u32 })
    }

    /// Stream of a live thread of the host.
    ///
    /// # Errors
    /// [`ThreadError::BadThread`].
    pub fn host_stream_id(&self, handle: ThreadHandle) -> Result<u32, ThreadError> {
        let table = self.table();
        let thread = table.find(handle).filter(|thread| thread.engine == Engine::CPU_TS);
        let engine = Some(Engine::CPU_TS.0);
        Ok(thread.ok_or(ThreadError::BadThread { handle: handle.0, engine })?.stream_id)
    }

    /// Notifies of a live thread.
    pub fn notify_count(&self, handle: ThreadHandle) -> Option<usize> {
        Some(self.table().find(handle)?.notify_ids.len())
    }

    /// Allocates a notify that belongs to no thread. Gives its id.
    ///
    /// # Errors
    /// [`ThreadError::NoNotifies`].
    pub fn add_notify(&self) -> Result<u32, ThreadError> {
        let id = self.table().take_notify_ids(1)?[0];
        self.shared.inbox.send(Command::AddNotifies(vec![(id, Owner::Host)]));
        Ok(id)
    }

    /// Allocates notifies of an end of a channel, whose ids follow each other. Gives the lowest.
    ///
    /// # Errors
    /// [`ThreadError::NoNotifies`].
    pub fn add_channel_notifies(&self, count: u32, owner: impl Fn(u32) -> Owner) -> Result<u32, ThreadError> {
        let first = self.table().notify_ids.take_run(count.into());
        let first =
            first.map_err(|TooFewIds { free, max }| ThreadError::NoNotifies { wanted: count.into(), free, max })?;
        let owned = (0..count).map(|index| (first + index, owner(index)));
        self.shared.inbox.send(Command::AddNotifies(owned.collect()));
        Ok(first)
    }

    /// Frees notifies of an end of a channel.
    pub fn remove_channel_notifies(&self, first: u32, count: u32) {
        self.shared.inbox.send(Command::RemoveNotifies((first..first + count).collect()));
        self.table().notify_ids.give_back(first..first + count);
    }

    /// Frees a notify that belongs to no thread.
    pub fn remove_notify(&self, id: u32) {
        self.shared.inbox.send(Command::RemoveNotifies(vec![id]));
        self.table().notify_ids.give_back([id].into_iter());
    }
}
