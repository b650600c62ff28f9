//! AI CPU that runs kernels on threads of this process.
//!
//! A launch has a current core, which a thread-local names while the kernel runs: the functions `hcomm_port_*` of the device
//! crate find the device by it.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use embedded_hal::delay::DelayNs;
use hcomm_aicpu::Device;
use hcomm_aicpu::port::hooks::CurrentCore;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::MAX_CHANNELS;
use hcomm_aicpu::spec::map::{RECORD_PHYS, regs_phys};
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::record::RECORD_STRIDE;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::MAX_THREADS;
use hcomm_kernel::KernelFn;

use super::Tables;
use super::log::TARGET;
use crate::log_place::{self, Running};
use hcomm_mapping::SharedMemory;
use hcomm_sim::KernelLaunch;
use hcomm_sim::cpu::{Cpu, CpuFault, KernelEntry, Refusals, RefusedCall, Returned};
use hcomm_sim::deterministic::{Gone, pause};
use hcomm_sim::event::{Object, Origin, SiteId, What};
use hcomm_sim::hosts::spawn_own;
use hcomm_sim::inbox::Command;
use hcomm_sim::panics::panic_text;
use hcomm_sim::queue::Registers;
use hcomm_sim::records::RecordReader;
use hcomm_sim::shared::Shared;

/// Cores that take launches.
pub const CORES: usize = 2;

/// Names and functions of the kernels that are linked into this program.
pub fn kernels() -> impl Iterator<Item = (&'static str, KernelFn)> {
    hcomm_kernel::kernels().iter().map(|kernel| {
        // SAFETY: the table of kernels holds what the macro `kernel!` put there: names that end with a zero byte.
        let name = unsafe { CStr::from_ptr(kernel.name) };
        (name.to_str().expect("the name of a Rust function"), kernel.function)
    })
}

/// What a kernel is started with.
struct Job {
    kernel: KernelFn,
    args: u64,
    origin: Origin,
    name: Arc<str>,
}

/// How the last kernel of a core ended; taken by the scheduler.
type Outcome = Arc<Mutex<Option<Result<Returned, CpuFault>>>>;

/// Refused calls of the kernel on a core; taken by the scheduler.
type Refused = Arc<Mutex<Refusals>>;

struct Worker {
    jobs: Sender<Job>,
    outcome: Outcome,
    thread: JoinHandle<()>,
}

/// The AI CPU.
pub struct NativeCpu {
    shared: Arc<Shared<SharedMemory>>,
    device: Arc<Device>,
    /// Calls are recorded.
    records: bool,
    /// A core's thread starts with its first launch.
    workers: [Option<Worker>; CORES],
    /// Of the last kernel of each core, also of one that was given up.
    refused: [Refused; CORES],
}

impl NativeCpu {
    /// A CPU of the device whose tables are at `tables`.
    /// `records`: calls are recorded.
    pub fn new(shared: &Arc<Shared<SharedMemory>>, tables: Tables, soc: Soc, records: bool) -> Self {
        let device = Box::new(Device::new());
        device.set_soc(soc);
        // SAFETY: the table was allocated in HBM with MAX_THREADS descriptors. Kernels run on threads that hold `shared`,
        // and with it the mapping; only `thread::ThreadTable` writes descriptors, with rings that stay allocated as long.
        unsafe { device.set_thread_table(tables.threads, MAX_THREADS) };
        // SAFETY: as above.
        unsafe { device.set_comm_table(tables.comms) };
        // SAFETY: as above: MAX_CHANNELS descriptors, which name rings that stay allocated as long as a kernel runs.
        unsafe { device.set_channel_table(tables.channels, MAX_CHANNELS) };
        if records {
            let rings = shared.memory.low_addr(RECORD_PHYS, CORES * RECORD_STRIDE as usize);
            // SAFETY: zeroed memory of the mapping, which lives as long as above; `RecordReader` alone reads it, and accesses
            // `tail` as an atomic word.
            unsafe { device.set_record_rings(DeviceAddr(rings)) };
        }
        Self {
            shared: Arc::clone(shared),
            device: device.into(),
            records,
            workers: [const { None }; CORES],
            refused: Default::default(),
        }
    }

    fn worker(&mut self, core: usize) -> std::io::Result<&Worker> {
        let slot = &mut self.workers[core];
        if slot.is_none() {
            let (sender, receiver) = channel();
            let outcome = Outcome::default();
            let (shared, device, result) = (Arc::clone(&self.shared), Arc::clone(&self.device), Arc::clone(&outcome));
            let records = self.records;
            let refused = Refused::default();
            self.refused[core] = Arc::clone(&refused);
            let run = move || work(&receiver, &shared, &device, records, &result, &refused);
            let thread = spawn_own(format!("aicpu-{core}"), run)?;
            *slot = Some(Worker { jobs: sender, outcome, thread });
        }
        Ok(slot.as_ref().expect("set just now"))
    }
}

impl Cpu for NativeCpu {
    fn cores(&self) -> usize {
        CORES
    }

    fn start(&mut self, core: usize, launch: &KernelLaunch) -> Result<(), CpuFault> {
        let KernelEntry::Native(kernel) = launch.entry else {
            return Err(CpuFault::Cpu(format!("kernel {} is not a function of this program", launch.name)));
        };
        let worker = self.worker(core).map_err(|error| CpuFault::Cpu(format!("no thread for core {core}: {error}")))?;
        let job = Job {
            kernel,
            args: launch.args,
            origin: Origin { launch: launch.number, core },
            name: Arc::clone(&launch.name),
        };
        worker.jobs.send(job).map_err(|_| CpuFault::Cpu(format!("core {core} has ended")))?;
        self.shared.turn.add_core(core);
        Ok(())
    }

    fn poll(&mut self, core: usize) -> Result<Option<Returned>, CpuFault> {
        if let Some(limit) = self.shared.turn.take_stuck(core) {
            let text = format!("it has not called the device for {limit:?} of real time");
            self.abandon(core);
            return Err(CpuFault::Kernel(text));
        }
        let Some(worker) = &self.workers[core] else { return Ok(None) };
        lock(&worker.outcome).take().transpose()
    }

    fn has_ended(&self, core: usize) -> bool {
        let is_there = |worker: &Worker| lock(&worker.outcome).is_some();
        self.shared.turn.is_stuck(core) || self.workers[core].as_ref().is_some_and(is_there)
    }

    fn is_polled(&self) -> bool {
        false
    }

    fn take_refusals(&mut self, core: usize) -> Refusals {
        std::mem::take(&mut *lock(&self.refused[core]))
    }

    fn restart(&mut self) -> Result<(), CpuFault> {
        Err(CpuFault::Cpu("a kernel on a thread of this process can't be stopped; open another device".to_owned()))
    }

    fn abandon(&mut self, core: usize) {
        // The thread goes on with its kernel and holds the device's memory; it ends when the kernel returns.
        self.workers[core] = None;
        self.shared.turn.expel(core);
    }
}

impl Drop for NativeCpu {
    fn drop(&mut self) {
        for worker in self.workers.iter_mut().filter_map(Option::take) {
            drop(worker.jobs);
            // Panics of kernels are caught: the thread has nothing to report.
            let _ = worker.thread.join();
        }
    }
}

/// A core's thread.
fn work(
    jobs: &Receiver<Job>,
    shared: &Arc<Shared<SharedMemory>>,
    device: &Device,
    records: bool,
    outcome: &Outcome,
    refused: &Refused,
) {
    for job in jobs {
        let Job { origin, ref name, .. } = job;
        if shared.turn.begin_core(origin.core).is_err() {
            return;
        }
        let records = Cell::new(records.then(|| RecordReader::resume(&*shared.memory, origin.core)));
        let (shared_again, refused) = (Arc::clone(shared), Arc::clone(refused));
        CURRENT.set(Some(Current { shared: shared_again, origin, rung: RefCell::default(), records, refused }));
        let running = Running { kernel: Arc::clone(name), launch: origin.launch };
        log_place::begin(running, origin.core, &shared.turn);
        let args = std::ptr::with_exposed_provenance::<c_void>(job.args as usize);
        let result = device.run(origin.core, || catch_unwind(AssertUnwindSafe(|| (job.kernel)(args))));
        log_place::end();
        with_current((), Current::send_records);
        let rung = CURRENT.take().map(|current| current.rung.into_inner());
        let result = match result {
            Ok((Ok(code), end)) => Ok(Returned { code, instructions: 0, batch_left_open: end.batch_left_open, rung }),
            Err(busy) => Err(CpuFault::Cpu(busy.to_string())),
            Ok((Err(payload), _)) => Err(CpuFault::Kernel(format!("panic: {}", panic_text(&*payload)))),
        };
        *lock(outcome) = Some(result);
        shared.inbox.send(Command::CoreEnded);
        shared.turn.end_core(origin.core);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread of a running kernel belongs to.
struct Current {
    shared: Arc<Shared<SharedMemory>>,
    origin: Origin,
    /// Queues that the kernel rang, and the entries rung since each was made.
    rung: RefCell<Vec<(u32, u64)>>,
    /// Of the calls that the kernel makes, if they are recorded.
    records: Cell<Option<RecordReader>>,
    refused: Refused,
}

impl Current {
    /// Sends what the kernel's calls have left in the ring of records. The kernel's own thread does that, before anybody else
    /// can see what a call has done.
    fn send_records(&self) {
        let Some(mut reader) = self.records.get() else { return };
        let Shared { memory, queues, events, .. } = &*self.shared;
        while let Some(record) = reader.next(&**memory) {
            let depth = queues.get(record.sq_id).map_or(0, |entry| entry.depth.load(Ordering::Acquire));
            events.call(self.origin, &record, depth, SiteId::from_bits(record.frames[0]));
        }
        self.records.set(Some(reader));
    }

    /// In deterministic mode others may go first. `Err`: the device has given this kernel up.
    fn turn(&self) -> Result<(), Gone> {
        self.shared.turn.yield_core(self.origin.core)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Whether the calling thread runs a kernel.
pub fn in_kernel() -> bool {
    with_current(false, |_| true)
}

/// Asks the current core; `otherwise` outside a launch, also when the thread ends and its thread-local values are gone.
fn with_current<R>(otherwise: R, ask: impl FnOnce(&Current) -> R) -> R {
    let current = |current: &RefCell<Option<Current>>| current.borrow().as_ref().map(ask);
    CURRENT.try_with(current).ok().flatten().unwrap_or(otherwise)
}

/// Asks the registers of a queue of the current core's device; `otherwise` if there is no such queue, or the device has
/// given the kernel up.
fn with_registers<R>(sq_id: u32, otherwise: R, ask: impl FnOnce(Registers<'_, SharedMemory>) -> R) -> R {
    let ask = |current: &Current| {
        let is_there = current.shared.queues.get(sq_id).is_some() && current.turn().is_ok();
        is_there.then(|| ask(Registers::of(&*current.shared.memory, sq_id)))
    };
    with_current(None, ask).unwrap_or(otherwise)
}

/// The kernel looks at head or status of a queue.
fn look_at(queue: QueueId, object: Object) {
    with_current((), |current| current.shared.turn.core_looks(current.origin.core, queue.sq_id(), object));
}

/// The platform of a host process: each thread's running kernel says which device it is of.
struct NativePlatform;

static PLATFORM: NativePlatform = NativePlatform;
hcomm_aicpu::export_platform!(PLATFORM, CurrentKernel);

/// The core of the kernel that the thread runs.
struct CurrentKernel;

thread_local! {
    static CORE: Cell<*const c_void> = const { Cell::new(std::ptr::null()) };
}

// SAFETY: a thread-local cell that is null at first and that `set` alone writes.
unsafe impl CurrentCore for CurrentKernel {
    fn get() -> *const c_void {
        // In deterministic mode others may go first. A kernel that was given up keeps its core: what it asks of the queues is
        // refused.
        let _ = with_current(Ok(()), |current| current.shared.turn.enter_call(current.origin.core));
        CORE.get()
    }

    fn set(core: *const c_void) {
        CORE.set(core);
    }
}

impl Platform for NativePlatform {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        with_current(false, |current| current.shared.queues.get(sq_id).is_some() && regs == regs_phys(sq_id))
    }

    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        look_at(queue, Object::Head(queue.sq_id()));
        with_registers(queue.sq_id(), Err(GIVEN_UP), |registers| Ok(registers.head()))
    }

    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        look_at(queue, Object::Status(queue.sq_id()));
        // A kernel that was given up finds its threads freed.
        with_registers(queue.sq_id(), Ok(QueueStatus::FREE), |registers| Ok(registers.status()))
    }

    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        let sq_id = queue.sq_id();
        with_current(Err(DoorbellRefused), |current| {
            if current.shared.turn.ring(current.origin.core).is_err() {
                return Err(DoorbellRefused);
            }
            let total = current.shared.ring(sq_id, tail, current.origin).map_err(|_| DoorbellRefused)?;
            let mut rung = current.rung.borrow_mut();
            match rung.iter_mut().find(|(queue, _)| *queue == sq_id) {
                Some((_, entries)) => *entries = total,
                None => rung.push((sq_id, total)),
            }
            // The device may run the tasks before the kernel goes on. If it is given up meanwhile, its next call says so.
            let _ = current.turn();
            Ok(())
        })
    }

    fn store_barrier(&self) {
        // The scheduler is another thread: a release fence before the doorbell's store is what it needs.
        std::sync::atomic::fence(Ordering::Release);
        with_current((), Current::send_records);
        // Slots that are written and not rung for: no other thread may see a difference.
        let _ = with_current(Ok(()), Current::turn);
    }

    fn now_us(&self) -> u64 {
        // Given up: every wait of the kernel is over.
        let now = |current: &Current| {
            current.shared.turn.clock(current.origin.core).map_or(u64::MAX, |now| now.as_micros() as u64)
        };
        with_current(0, now)
    }

    fn delay(&self) -> impl DelayNs {
        NativeDelay
    }

    #[inline(never)]
    fn return_addresses(&self, addrs: &mut [u64]) {
        // More of them than a record has room for: it gets the number under which they are kept.
        addrs.fill(0);
        if let Some(first) = addrs.first_mut() {
            *first = with_current(SiteId::UNKNOWN, |current| current.shared.events.site()).to_bits();
        }
    }

    fn refused(&self, who: &'static str, error: &hcomm_aicpu::Error) {
        let text = format!("{who}: {error}");
        log::warn!(target: TARGET, "{text}");
        with_current((), |current| {
            let (origin, code, events) = (Some(current.origin), error.code(), &current.shared.events);
            let site = events.site();
            lock(&current.refused).add(RefusedCall { code, text: text.clone(), place: events.place(site) });
            events.send(|| What::CallRefused { origin, code, text: text.as_str().into(), site });
        });
    }
}

/// Code of a read by a kernel that the device has given up.
const GIVEN_UP: ReadFailed = ReadFailed(-1);

struct NativeDelay;

impl DelayNs for NativeDelay {
    fn delay_ns(&mut self, ns: u32) {
        // What it waits for may be room in the ring of records.
        with_current((), Current::send_records);
        let wait = |current: &Current| Some(current.shared.turn.delay(current.origin.core, ns));
        match with_current(None, wait) {
            None => pause(ns),
            Some(Ok(())) => {}
            // Given up: it must not burn the processor.
            Some(Err(Gone)) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
