//! Threads that the host has made known, and which of them running launches may use.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::card::{CARD_NOTIFIES, CARD_THREADS, CardInit, CardTask};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::{DESCRIPTOR_SIZE, DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use hcomm_hal::{Hal, Queue, QueueIds, Restore};
use spin::{Mutex, MutexGuard};
use zerocopy::transmute;

use crate::error::CardError;
use crate::platform::{DEVICE, QUEUES};

/// A thread descriptor as words: the device crate reads tag and notifies as one atomic word each.
#[repr(C, align(64))]
struct Descriptor([AtomicU64; DESCRIPTOR_SIZE as usize / 8]);

/// The table of threads, whose addresses are in the handles.
static TABLE: [Descriptor; CARD_THREADS] =
    [const { Descriptor([const { AtomicU64::new(0) }; DESCRIPTOR_SIZE as usize / 8]) }; CARD_THREADS];

/// Notify ids of each thread. A table stays when its thread goes: a core may still read it.
static NOTIFIES: [[AtomicU32; CARD_NOTIFIES]; CARD_THREADS] =
    [const { [const { AtomicU32::new(0) }; CARD_NOTIFIES] }; CARD_THREADS];

/// A slot of the table.
#[derive(Clone, Copy)]
struct Slot {
    /// Of the thread that it has, or had last; 0 before the first.
    generation: u16,
    thread: Option<Known>,
    /// Launches that may use the thread and have not ended.
    users: u32,
}

/// A thread.
#[derive(Clone, Copy)]
struct Known {
    engine: Engine,
    stream: u32,
    /// With a queue.
    ids: Option<QueueIds>,
}

/// All that the launches of the process share.
struct Threads {
    soc: Option<Soc>,
    slots: [Slot; CARD_THREADS],
}

static THREADS: Mutex<Threads> =
    Mutex::new(Threads { soc: None, slots: [Slot { generation: 0, thread: None, users: 0 }; CARD_THREADS] });

fn lock() -> MutexGuard<'static, Threads> {
    THREADS.lock()
}

fn handle(slot: usize, generation: u16) -> ThreadHandle {
    ThreadHandle::new(DeviceAddr::from(&raw const TABLE[slot]), generation)
}

/// What the host is told of a new thread.
pub struct New {
    /// Its handle.
    pub handle: u64,
    /// Its slot.
    pub slot: usize,
    /// Code of a restore that failed where that is no error, else 0.
    pub restore_code: i32,
}

/// Makes a thread known. A thread of the same queue, or of the same stream of the host, that is known is forgotten: the runtime has
/// given its number to another one. Without a free slot, threads whose queues the driver no longer has are forgotten.
///
/// # Errors
/// [`CardError`].
pub fn add(hal: &Hal, init: &CardInit) -> Result<New, CardError> {
    let soc = Soc::from_device_type(init.soc).ok_or(CardError::UnknownSoc(init.soc))?;
    let count = init.notify_count;
    if count as usize > CARD_NOTIFIES {
        return Err(CardError::Notifies(count));
    }
    let engine = Engine(init.engine);
    let ids = match engine {
        Engine::AICPU_TS => {
            let restore = if soc == Soc::Ascend950 { Restore::Tried } else { Restore::Required };
            let CardInit { host_device, stream, sq, logic_cq, .. } = *init;
            Some(QueueIds { restore, host_device, stream, sq, logic_cq })
        }
        Engine::CPU_TS => None,
        Engine(number) => return Err(CardError::Engine(number)),
    };
    let mut threads = lock();
    match threads.soc {
        Some(known) if known != soc => return Err(CardError::OtherSoc { known, wanted: soc }),
        Some(_) => {}
        None => begin(&mut threads, soc),
    }
    let known = Known { engine, stream: init.stream, ids };
    let index = threads.place(hal, &known)?;
    let slot = &mut threads.slots[index];
    slot.generation += 1;
    let generation = slot.generation;
    let (mut regs, mut base, mut depth, mut restore_code) = (u64::MAX, 0, 0, 0);
    if let Some(ids) = ids {
        let opened = QUEUES.open(hal, ids, generation)?;
        (regs, base, depth) = (opened.regs, opened.base, opened.depth);
        restore_code = opened.restore_code.unwrap_or(0);
    }
    let ids = ids.map(|ids| QueueIds { restore: Restore::Done, ..ids });
    slot.thread = Some(Known { ids, ..known });
    for (to, id) in NOTIFIES[index].iter().zip(init.notify_ids) {
        to.store(id, Ordering::Relaxed);
    }
    let descriptor = ThreadDescriptor {
        tag: DescriptorTag::live(generation),
        engine,
        stream_id: init.stream,
        sq_id: init.sq,
        depth,
        sq_base: DeviceAddr(base),
        regs,
        notifies: NotifyTable::new(DeviceAddr::from(&raw const NOTIFIES[index]), count as u16),
        comm: 0,
        reserved: 0,
    };
    let words: [u64; 8] = transmute!(descriptor);
    for (to, word) in TABLE[index].0.iter().zip(words).skip(1) {
        to.store(word, Ordering::Relaxed);
    }
    // Last: pairs with the acquire load of the device crate.
    TABLE[index].0[0].store(words[0], Ordering::Release);
    Ok(New { handle: handle(index, generation).0, slot: index, restore_code })
}

/// Before the first thread, and so before the first launch.
fn begin(threads: &mut Threads, soc: Soc) {
    DEVICE.set_soc(soc);
    (&raw const NOTIFIES).expose_provenance();
    let table = DeviceAddr((&raw const TABLE).expose_provenance() as u64);
    // SAFETY: the table and the tables of notify ids are statics, and stay. Rings come from the driver, which has checked them, and are
    // used by launches that have entered their threads, whose queues stay open (`enter`). Generations only grow.
    unsafe { DEVICE.set_thread_table(table, CARD_THREADS) };
    threads.soc = Some(soc);
}

impl Threads {
    /// A slot for a new thread, free and with a generation left.
    fn place(&mut self, hal: &Hal, new: &Known) -> Result<usize, CardError> {
        let is_same = |known: &Known| match (known.ids, new.ids) {
            (Some(known), Some(new)) => known.sq == new.sq,
            (None, None) => known.stream == new.stream && known.engine == new.engine,
            _ => false,
        };
        if let Some(index) = self.slots.iter().position(|slot| slot.thread.as_ref().is_some_and(is_same)) {
            self.forget(index)?;
        }
        if let Some(index) = self.free() {
            return Ok(index);
        }
        for index in 0..CARD_THREADS {
            let ids = self.slots[index].thread.and_then(|known| known.ids);
            if ids.is_some_and(|ids| Queue::open(hal, ids).is_err()) {
                // One that a launch uses stays.
                let _ = self.forget(index);
            }
        }
        self.free().ok_or(CardError::Full)
    }

    fn free(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.thread.is_none() && slot.generation < u16::MAX)
    }

    /// # Errors
    /// [`CardError::InUse`].
    fn forget(&mut self, index: usize) -> Result<(), CardError> {
        let slot = &mut self.slots[index];
        if slot.users != 0 {
            return Err(CardError::InUse(handle(index, slot.generation).0));
        }
        // First: a caller that still has the handle finds it stale, whatever follows.
        TABLE[index].0[0].store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if let Some(ids) = slot.thread.take().and_then(|known| known.ids) {
            QUEUES.close(ids.sq);
        }
        Ok(())
    }

    /// Slot of the live thread of a handle.
    fn find(&self, number: u64) -> Result<usize, CardError> {
        let is_its =
            |(index, slot): (usize, &Slot)| slot.thread.is_some() && handle(index, slot.generation).0 == number;
        let mut slots = self.slots.iter().enumerate();
        slots.position(is_its).ok_or(CardError::BadThread(number))
    }
}

/// Forgets a thread.
///
/// # Errors
/// No thread has the handle, or a launch uses it.
pub fn remove(number: u64) -> Result<(), CardError> {
    let mut threads = lock();
    let index = threads.find(number)?;
    threads.forget(index)
}

/// The first failed task of a thread, and whether it has a queue.
///
/// # Errors
/// No thread has the handle, or the driver refuses.
pub fn failed_task(number: u64) -> Result<Option<CardTask>, CardError> {
    let ids = {
        let threads = lock();
        threads.slots[threads.find(number)?].thread.and_then(|known| known.ids)
    };
    let Some(ids) = ids else { return Ok(None) };
    let failure = QUEUES.failed_task(ids.sq)?;
    Ok(failure.map(|failure| CardTask {
        thread: number,
        task: failure.task.into(),
        kind: failure.kind.into(),
        code: failure.code,
        sqe_type: failure.sqe_type.into(),
    }))
}

/// Threads that a launch may use, until the value is dropped.
pub struct Entered {
    bits: u64,
}

/// Opens the queues of a launch's threads: `bits` has one for each slot. A queue that another launch uses is open.
///
/// # Errors
/// A slot without a thread, or a queue that can't be opened: none is entered.
pub fn enter(hal: &Hal, bits: u64) -> Result<Entered, CardError> {
    let mut threads = lock();
    // Grows with each thread: an error gives back those before it. Declared after the lock, and so dropped before it.
    let mut entered = Counted { threads: &mut threads, bits: 0 };
    for index in slots_of(bits) {
        let slot = &mut entered.threads.slots[index];
        let known = slot.thread.ok_or(CardError::EmptySlot(index))?;
        if slot.users == 0
            && let Some(ids) = known.ids
        {
            QUEUES.open(hal, ids, slot.generation)?;
        }
        slot.users += 1;
        entered.bits |= 1 << index;
    }
    entered.bits = 0;
    Ok(Entered { bits })
}

/// Counts that are taken back when it is dropped.
struct Counted<'t> {
    threads: &'t mut Threads,
    bits: u64,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        for index in slots_of(self.bits) {
            self.threads.slots[index].users -= 1;
        }
    }
}

impl Entered {
    /// Handles of the threads.
    pub fn handles(&self) -> impl Iterator<Item = u64> {
        slots_of(self.bits).map(|index| handle(index, lock().slots[index].generation).0)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        drop(Counted { threads: &mut lock(), bits: self.bits });
    }
}

fn slots_of(bits: u64) -> impl Iterator<Item = usize> {
    (0..CARD_THREADS).filter(move |index| bits & 1 << index != 0)
}
