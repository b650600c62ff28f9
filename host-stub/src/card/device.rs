//! A card: its memory, the package's kernels, and the library's own kernels, which the host runs for itself.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::card::{CardState, CardStatus};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::soc::Soc;
use zerocopy::{FromBytes, IntoBytes};

use super::acl::{Acl, BinaryHandle, FunctionHandle, NotifyHandle, StreamHandle};
use super::error::{CardError, FailedKernel};
use super::files::CardFiles;
use super::kind::DeviceKind;
use super::known_thread::KnownThread;

use crate::options::{Cpu, DeviceOptions};
use crate::product::PRODUCTS;

/// How long a kernel of the library itself may take.
const OWN_TIMEOUT: Duration = Duration::from_secs(120);

/// Runtimes that are loaded, by their folders: a process initialises each once.
static RUNTIMES: Mutex<Vec<(Option<PathBuf>, Arc<Acl>)>> = Mutex::new(Vec::new());
/// Devices that are open, by runtime and number: the last one that closes resets the device.
static OPEN: Mutex<BTreeMap<(usize, i32), usize>> = Mutex::new(BTreeMap::new());
/// Numbers the devices that were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The device that this thread has chosen last.
    static CHOSEN: Cell<u64> = const { Cell::new(0) };
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A card, or the stand-in of one.
pub struct CardDevice {
    pub(super) acl: Arc<Acl>,
    /// As the runtime counts.
    number: i32,
    /// As driver and AI CPU count on the host's side.
    pub(super) physical: u32,
    pub(super) soc: Soc,
    options: DeviceOptions,
    description: String,
    kernels: BTreeSet<String>,
    binary: BinaryHandle,
    functions: Mutex<BTreeMap<String, FunctionHandle>>,
    /// Live allocations: address and bytes.
    memory: Mutex<BTreeMap<u64, u64>>,
    /// By handle.
    pub(super) threads: Mutex<BTreeMap<u64, KnownThread>>,
    /// By id.
    pub(super) notifies: Mutex<BTreeMap<u32, NotifyHandle>>,
    /// Stream of the library's own kernels.
    control: Mutex<Option<StreamHandle>>,
    comms: Mutex<Comms>,
    /// Place among all devices that were opened, from 1.
    opened: u64,
    /// Id of the process that has opened it.
    owner: u32,
}

/// Communicators of a device.
#[derive(Default)]
struct Comms {
    count: u64,
    names: BTreeSet<String>,
}

impl CardDevice {
    /// Opens a device with complete options.
    ///
    /// # Errors
    /// A part that is missing, an option that a card does not have, an error of the runtime.
    pub fn open(kind: DeviceKind, options: DeviceOptions) -> Result<Self, CardError> {
        check_options(kind, &options)?;
        let files = CardFiles::find(kind)?;
        let acl = runtime(&files)?;
        let number = match kind {
            DeviceKind::Card(number) => i32::from(number),
            DeviceKind::FakeCard | DeviceKind::Sim => 0,
        };
        if let Some(built) = &files.built {
            let product = CString::new(options.product.key).expect("a key has no zero byte");
            let folder = CString::new(built.as_os_str().as_bytes()).expect("a path of the system has no zero byte");
            acl.configure(i32::from(options.cpu == Cpu::Linux), &product, &folder)?;
        }
        acl.set_device(number)?;
        let key = (Arc::as_ptr(&acl).addr(), number);
        *lock(&OPEN).entry(key).or_default() += 1;
        let opened = OPENED.fetch_add(1, Ordering::Relaxed) + 1;
        CHOSEN.set(opened);
        let found = Self::find(&acl, number, &files);
        let Found { physical, soc, kernels, binary } = found.inspect_err(|_| close(&acl, number))?;
        let product = match options.product.soc {
            Some(wanted) if wanted == soc => options.product,
            _ => PRODUCTS.iter().find(|product| product.soc == Some(soc)).unwrap_or(options.product),
        };
        Ok(Self {
            acl,
            number,
            physical,
            soc,
            options: DeviceOptions { product, device: Some(kind), ..options },
            description: files.description.display().to_string(),
            kernels,
            binary,
            functions: Mutex::default(),
            memory: Mutex::default(),
            threads: Mutex::default(),
            notifies: Mutex::default(),
            control: Mutex::default(),
            comms: Mutex::default(),
            opened,
            owner: std::process::id(),
        })
    }

    fn find(acl: &Acl, number: i32, files: &CardFiles) -> Result<Found, CardError> {
        let name = acl.soc_name();
        // The runtime's names continue after the chip: `Ascend910B3`.
        let soc = Soc::ALL.into_iter().find(|soc| name.starts_with(soc.name())).ok_or(CardError::UnknownChip(name))?;
        let physical = acl.physical_device(number)?;
        let path = files.description_path()?;
        let (kernels, binary) = (files.kernels()?, acl.load_description(&path)?);
        Ok(Found { physical, soc, kernels, binary })
    }

    /// How it was opened.
    pub fn options(&self) -> &DeviceOptions {
        &self.options
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.number as usize
    }

    /// Whether this is a copy in a forked child, which has none of the runtime's threads.
    pub fn is_forked(&self) -> bool {
        std::process::id() != self.owner
    }

    /// Id of the process that has opened it.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Makes it the device of the calling thread.
    ///
    /// # Errors
    /// An error of the runtime.
    pub fn choose(&self) -> Result<&Acl, CardError> {
        if CHOSEN.get() != self.opened {
            self.acl.set_device(self.number)?;
            CHOSEN.set(self.opened);
        }
        Ok(&self.acl)
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// The description has no such kernel; an error of the runtime.
    pub fn function(&self, name: &str) -> Result<FunctionHandle, CardError> {
        if !self.kernels.contains(name) {
            let (name, description) = (name.to_owned(), self.description.clone());
            return Err(CardError::NoKernel { name, description });
        }
        let acl = self.choose()?;
        let mut functions = lock(&self.functions);
        if let Some(found) = functions.get(name) {
            return Ok(*found);
        }
        let found = acl.function(self.binary, name)?;
        functions.insert(name.to_owned(), found);
        Ok(found)
    }

    /// # Errors
    /// An error of the runtime.
    pub fn allocate(&self, len: u64) -> Result<u64, CardError> {
        let addr = self.choose()?.malloc(len)?;
        lock(&self.memory).insert(addr, len);
        Ok(addr)
    }

    /// # Errors
    /// Not the start of a live allocation; an error of the runtime.
    pub fn free(&self, addr: u64) -> Result<(), CardError> {
        let acl = self.choose()?;
        lock(&self.memory).remove(&addr).ok_or(CardError::Range { addr, len: 1 })?;
        acl.free(addr)
    }

    /// # Errors
    /// The range is not inside one live allocation.
    pub fn check_range(&self, addr: u64, len: u64) -> Result<(), CardError> {
        let memory = lock(&self.memory);
        let is_inside = |(start, size): (&u64, &u64)| {
            let offset = addr - start;
            offset <= *size && len <= size - offset
        };
        match memory.range(..=addr).next_back().is_some_and(is_inside) {
            true => Ok(()),
            false => Err(CardError::Range { addr, len }),
        }
    }

    /// # Errors
    /// As [`check_range`](Self::check_range); an error of the runtime.
    pub fn copy_in(&self, addr: u64, bytes: &[u8]) -> Result<(), CardError> {
        self.check_range(addr, bytes.len() as u64)?;
        self.choose()?.copy_in(addr, bytes)
    }

    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub fn copy_out(&self, addr: u64, out: &mut [u8]) -> Result<(), CardError> {
        self.check_range(addr, out.len() as u64)?;
        self.choose()?.copy_out(addr, out)
    }

    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub fn copy_within(&self, dst: u64, src: u64, len: u64) -> Result<(), CardError> {
        self.check_range(dst, len)?;
        self.check_range(src, len)?;
        self.choose()?.copy_within(dst, src, len)
    }

    /// # Errors
    /// As [`copy_in`](Self::copy_in).
    pub fn clear(&self, addr: u64, len: u64) -> Result<(), CardError> {
        self.check_range(addr, len)?;
        self.choose()?.clear(addr, len)
    }

    /// Memory for a status, which says that its kernel has not returned.
    ///
    /// # Errors
    /// An error of the runtime.
    pub(super) fn new_status(&self) -> Result<u64, CardError> {
        let acl = self.choose()?;
        let addr = acl.malloc(size_of::<CardStatus>() as u64)?;
        match acl.copy_in(addr, CardStatus::NEW.as_bytes()) {
            Ok(()) => Ok(addr),
            Err(error) => {
                self.drop_status(addr);
                Err(error)
            }
        }
    }

    /// # Errors
    /// An error of the runtime.
    pub(super) fn read_status(&self, addr: u64) -> Result<CardStatus, CardError> {
        let mut bytes = [0; size_of::<CardStatus>()];
        self.choose()?.copy_out(addr, &mut bytes)?;
        Ok(CardStatus::read_from_bytes(&bytes).expect("any bytes are a status"))
    }

    /// Frees the status of a kernel that has returned.
    pub(super) fn drop_status(&self, addr: u64) {
        if let Err(error) = self.choose().and_then(|acl| acl.free(addr)) {
            log::warn!("status at {addr:#x}: {error}");
        }
    }

    /// Runs a kernel of the library itself and waits for it. `params` gets the address of the status.
    ///
    /// # Errors
    /// It has failed; an error of the runtime.
    pub(super) fn run<P: KernelParams>(
        &self,
        kernel: &str,
        params: impl FnOnce(DeviceAddr) -> P,
    ) -> Result<CardStatus, CardError> {
        let function = self.function(kernel)?;
        let acl = self.choose()?;
        let mut control = lock(&self.control);
        let stream = match *control {
            Some(stream) => stream,
            None => *control.insert(acl.create_stream(false)?),
        };
        let addr = self.new_status()?;
        let launched = acl.launch(function, stream, params(DeviceAddr(addr)).as_bytes(), OWN_TIMEOUT.as_secs() as u16);
        if let Err(error) = launched {
            self.drop_status(addr);
            return Err(error);
        }
        // Longer than the limit of the kernel, which the runtime sees first.
        let code = acl.synchronize(stream, (2 * OWN_TIMEOUT).as_millis() as i32);
        let status = self.read_status(addr)?;
        if code != 0 {
            *control = None;
            if let Err(error) = acl.destroy_stream(stream, true) {
                log::warn!("stream of {kernel}: {error}");
            }
        }
        if status.state == CardState::PENDING {
            // The status stays: the kernel may still write it.
            return Err(CardError::Call { call: "aclrtSynchronizeStreamWithTimeout", code });
        }
        self.drop_status(addr);
        match status.state {
            CardState::DONE => Ok(status),
            _ => Err(CardError::Kernel(Box::new(FailedKernel::new(kernel, &status)))),
        }
    }

    /// Number and name of a new communicator; `None`: the name is empty or taken.
    pub fn add_comm(&self, name: Option<&str>) -> Option<(u64, String)> {
        let mut comms = lock(&self.comms);
        let number = comms.count + 1;
        let name = name.map_or_else(|| format!("hcomm_card_{}_{number}", self.number), ToOwned::to_owned);
        if name.is_empty() || !comms.names.insert(name.clone()) {
            return None;
        }
        comms.count = number;
        Some((number, name))
    }

    /// The name may be used again.
    pub fn remove_comm(&self, name: &str) {
        lock(&self.comms).names.remove(name);
    }
}

impl Drop for CardDevice {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        let control = lock(&self.control).take();
        let destroyed =
            self.choose().and_then(|acl| control.map_or(Ok(()), |stream| acl.destroy_stream(stream, false)));
        if let Err(error) = destroyed {
            log::warn!("card {}: {error}", self.number);
        }
        close(&self.acl, self.number);
    }
}

/// What the runtime has.
struct Found {
    physical: u32,
    soc: Soc,
    kernels: BTreeSet<String>,
    binary: BinaryHandle,
}

/// A device is closed: the last one of its number resets it.
fn close(acl: &Arc<Acl>, number: i32) {
    let mut open = lock(&OPEN);
    let key = (Arc::as_ptr(acl).addr(), number);
    let left = open.get_mut(&key).map_or(0, |count| {
        *count -= 1;
        *count
    });
    if left == 0 {
        open.remove(&key);
        if let Err(error) = acl.reset_device(number) {
            log::warn!("card {number}: {error}");
        }
    }
}

/// The runtime in a folder, loaded once.
fn runtime(files: &CardFiles) -> Result<Arc<Acl>, CardError> {
    let mut runtimes = lock(&RUNTIMES);
    if let Some((_, found)) = runtimes.iter().find(|(folder, _)| *folder == files.runtime) {
        return Ok(Arc::clone(found));
    }
    let acl = Arc::new(Acl::load(files.runtime.as_deref())?);
    runtimes.push((files.runtime.clone(), Arc::clone(&acl)));
    Ok(acl)
}

/// # Errors
/// [`CardError::NotOnCard`]: an option of the simulated device.
fn check_options(kind: DeviceKind, options: &DeviceOptions) -> Result<(), CardError> {
    let refused = [
        (kind == DeviceKind::FakeCard && options.cpu == Cpu::Qemu, "cpu qemu (fake-card: --cpu native or linux)"),
        (!options.faults.rules.is_empty(), "fault injection"),
        (options.deterministic.is_some() || options.model.is_some(), "deterministic mode"),
        (options.trace.is_some() || options.record, "a trace"),
        (options.gdb.is_some(), "the port of a debugger"),
        (options.icount, "an instruction count"),
    ];
    match refused.into_iter().find(|(is_set, _)| *is_set) {
        Some((_, what)) => Err(CardError::NotOnCard(what)),
        None => Ok(()),
    }
}
