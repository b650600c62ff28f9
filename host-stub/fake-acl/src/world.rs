//! The device, and the handles that were given.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::thread::ThreadHandle;
use host_stub::product::Product;
use host_stub::sim::scheduler::FailedTask;
use host_stub::{Checks, Comm, CommOptions, Cpu, Device, DeviceKind, DeviceOptions, Notify, Stream};

use crate::codes;
use crate::driver::Driver;
use crate::loader::{Function, Loader};

/// What the program has told the stand-in before it has chosen the device.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    pub cpu: Cpu,
    pub product: &'static Product,
    /// Folder of what `make card-package` has built.
    pub folder: PathBuf,
}

/// A stream.
pub enum AnyStream {
    /// Of the host, and the code of a launch that the loader of the AI CPU has refused.
    Host(Stream, Mutex<Option<i32>>),
    /// Whose queue belongs to the AI CPU.
    Queue(ThreadHandle),
}

/// What a handle stands for.
#[derive(Clone)]
pub enum Object {
    Stream(Arc<AnyStream>),
    Notify(Arc<Notify>),
    /// Kernels of a description, by name.
    Binary(Arc<BTreeMap<String, Function>>),
    Function(Arc<Function>),
    /// Parameters of a launch, and whether they are complete.
    Args(Arc<Mutex<(Vec<u8>, bool)>>),
}

/// An open device.
pub struct Open {
    pub objects: Mutex<BTreeMap<usize, Object>>,
    pub driver: Arc<Driver>,
    pub loader: Loader,
    pub comm: Comm,
    pub device: Device,
    /// Place among all openings, from 1.
    number: u64,
}

#[derive(Default)]
struct World {
    config: Option<Config>,
    open: Option<Arc<Open>>,
}

static WORLD: Mutex<World> = Mutex::new(World { config: None, open: None });
static IS_INITIALISED: AtomicBool = AtomicBool::new(false);
static OPENED: AtomicU64 = AtomicU64::new(0);
/// Handles are numbers that are given once.
static HANDLES: AtomicU64 = AtomicU64::new(0x1000);

thread_local! {
    /// The opening that this thread has chosen.
    static CHOSEN: Cell<u64> = const { Cell::new(0) };
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Text for a user who looks for a reason: in place of the runtime's log.
pub fn log(text: std::fmt::Arguments<'_>) {
    if std::env::var_os("HCOMM_FAKE_CARD_LOG").is_some() {
        eprintln!("[fake-card] {text}");
    }
}

/// `aclInit`.
pub fn initialise() -> i32 {
    if IS_INITIALISED.swap(true, Ordering::Relaxed) { codes::REPEAT_INITIALIZE } else { codes::SUCCESS }
}

/// # Errors
/// A device is open that is another one.
pub fn configure(config: Config) -> Result<(), i32> {
    let mut world = lock(&WORLD);
    if world.open.is_some() && world.config.as_ref() != Some(&config) {
        return Err(codes::INVALID_PARAM);
    }
    world.config = Some(config);
    Ok(())
}

/// Chooses the device for the calling thread; opens it for the first one.
///
/// # Errors
/// Not device 0, or it can't be opened.
pub fn set_device(number: i32) -> Result<(), i32> {
    if !IS_INITIALISED.load(Ordering::Relaxed) {
        return Err(codes::UNINITIALIZE);
    }
    if number != 0 {
        return Err(codes::INVALID_DEVICE);
    }
    let mut world = lock(&WORLD);
    let open = match &world.open {
        Some(open) => Arc::clone(open),
        None => {
            let config = world.config.clone().ok_or(codes::UNINITIALIZE)?;
            let open = Open::new(&config).map_err(|why| {
                eprintln!("[fake-card] the device can't be opened: {why}");
                codes::RT_FAILURE
            })?;
            Arc::clone(world.open.insert(Arc::new(open)))
        }
    };
    CHOSEN.set(open.number);
    Ok(())
}

/// Closes the device: its handles are gone.
///
/// # Errors
/// Not device 0.
pub fn reset_device(number: i32) -> Result<(), i32> {
    if number != 0 {
        return Err(codes::INVALID_DEVICE);
    }
    let open = lock(&WORLD).open.take();
    if let Some(open) = open {
        // A thread may be in a call: the device closes with the last of them.
        lock(&open.objects).clear();
    }
    Ok(())
}

/// The device of the calling thread.
///
/// # Errors
/// It has chosen none, or that has been reset.
pub fn current() -> Result<Arc<Open>, i32> {
    let open = lock(&WORLD).open.clone();
    open.filter(|open| open.number == CHOSEN.get()).ok_or(codes::CONTEXT_NULL)
}

impl Open {
    fn new(config: &Config) -> Result<Self, String> {
        let (failed, failures) = channel();
        let options = DeviceOptions {
            device: Some(DeviceKind::Sim),
            failed_tasks: Some(failed),
            cpu: config.cpu,
            product: config.product,
            // The checks of the simulator follow the calls of its own device library.
            checks: Some(Checks::NONE),
            ..DeviceOptions::default()
        };
        let device = Device::open(options).map_err(|error| error.to_string())?;
        let comm =
            Comm::with_options(&device, CommOptions { ccl_buffer: Some(1) }).map_err(|error| error.to_string())?;
        let loader = Loader::new(config)?;
        let driver = Arc::new(Driver::new(&device, config, &loader)?);
        report_failures(&driver, failures).map_err(|error| error.to_string())?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Self { objects: Mutex::default(), driver, loader, comm, device, number })
    }

    /// A handle for an object.
    pub fn add(&self, object: Object) -> *mut c_void {
        let handle = HANDLES.fetch_add(16, Ordering::Relaxed) as usize;
        lock(&self.objects).insert(handle, object);
        without_provenance_mut(handle)
    }

    /// # Errors
    /// Not a handle that was given, or one that was destroyed.
    pub fn get(&self, handle: *mut c_void) -> Result<Object, i32> {
        lock(&self.objects).get(&handle.addr()).cloned().ok_or(codes::INVALID_HANDLE)
    }

    /// # Errors
    /// As [`get`](Self::get).
    pub fn remove(&self, handle: *mut c_void) -> Result<Object, i32> {
        lock(&self.objects).remove(&handle.addr()).ok_or(codes::INVALID_HANDLE)
    }

    /// # Errors
    /// Not the handle of a stream.
    pub fn stream(&self, handle: *mut c_void) -> Result<Arc<AnyStream>, i32> {
        match self.get(handle)? {
            Object::Stream(stream) => Ok(stream),
            _ => Err(codes::INVALID_HANDLE),
        }
    }

    /// # Errors
    /// Not the handle of a notify.
    pub fn notify(&self, handle: *mut c_void) -> Result<Arc<Notify>, i32> {
        match self.get(handle)? {
            Object::Notify(notify) => Ok(notify),
            _ => Err(codes::INVALID_HANDLE),
        }
    }
}

/// Hands failed tasks on to the stand-in of the driver, as long as there is a device.
fn report_failures(driver: &Arc<Driver>, failures: Receiver<FailedTask>) -> std::io::Result<()> {
    let driver = Arc::downgrade(driver);
    let run = move || {
        for FailedTask { sq_id, task_id, error } in failures {
            log(format_args!("{error}"));
            let Some(driver) = driver.upgrade() else { continue };
            let words = [sq_id, task_id, FAILED, error.runtime_code() as u32, 0].map(u64::from);
            if let Err(code) = driver.tell("fake_hal_fail", &words) {
                log(format_args!("the failure is not reported: {code}"));
            }
        }
    };
    std::thread::Builder::new().name("failures".to_owned()).spawn(run).map(drop)
}

/// Kind of a report: an error.
const FAILED: u32 = 1;

/// What a function of the runtime gives for a result.
pub fn code(result: Result<(), i32>) -> i32 {
    result.err().unwrap_or(codes::SUCCESS)
}

/// What a failed call of the host API is for a caller of the runtime.
pub fn code_of(error: &host_stub::Error) -> i32 {
    log(format_args!("{error}"));
    match error {
        host_stub::Error::Device(error) | host_stub::Error::AlreadyFailed(error) => error.runtime_code(),
        host_stub::Error::Alloc(_) => codes::MEMORY_ALLOCATION,
        host_stub::Error::Thread(_) => codes::NO_NOTIFY,
        host_stub::Error::Access(_) | host_stub::Error::Free(_) => codes::INVALID_PARAM,
        host_stub::Error::Timeout { .. } => codes::SYNC_TIMEOUT,
        _ => codes::INTERNAL,
    }
}
