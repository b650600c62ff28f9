//! A card without a card: the library of a card's kernels, loaded as its loader loads it, over the stand-in of the driver's library
//! and the simulated device. Native, in this process; or AArch64, in the runner.
#![allow(dead_code, reason = "each test program uses a part")]

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::card::{CardInit, CardLaunch, CardStatus, CardThread};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadDescriptor, ThreadHandle};
use hcomm_kernel::KernelFn;
use hcomm_testkit::{Rig, target_dir};
use host_stub::library::Library;
use host_stub::{Checks, Cpu, DeviceBuffer, DeviceOptions, Error, Kernel, LaunchOptions, Stream, ThreadConfig};
use zerocopy::{FromBytes, IntoBytes};

/// The device as the host counts it, and as the AI CPU does: they must not be mixed up.
pub const HOST_DEVICE: u32 = 5;
pub const LOCAL_DEVICE: u32 = 2;

/// CPUs that the library runs on here.
pub const CPUS: [Cpu; 2] = [Cpu::Native, Cpu::Linux];

// What the program has for kernels that are linked into it: the stand-in reaches the registers by them.
unsafe extern "C" {
    fn hcomm_port_head(sq_id: u32, regs: u64, head: *mut u32) -> i32;
    fn hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32;
}

/// A process has one library of a card: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A file that `make card` has built.
pub fn built(name: &str) -> PathBuf {
    let path = target_dir().join("card").join(name);
    assert!(path.exists(), "{} is not there: build it with `make card`", path.display());
    path
}

enum Libraries {
    /// Handles of dlopen.
    Native {
        hal: usize,
        card: usize,
    },
    Linux {
        hal: Library,
        card: Library,
    },
}

/// Opens a library as the loader of a card does.
fn open(name: &str) -> usize {
    let path = CString::new(built(name).to_str().unwrap()).unwrap();
    // SAFETY: the library has no constructors that need anything.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    assert!(!handle.is_null(), "{path:?} can't be opened");
    handle as usize
}

/// A thread, as simulator and card's library know it.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The simulator's handle.
    pub sim: ThreadHandle,
    /// The library's.
    pub card: u64,
    pub slot: u32,
    pub sq: u32,
}

impl Known {
    /// Its bit in [`CardLaunch::threads`].
    pub fn bit(&self) -> u64 {
        1 << self.slot
    }
}

/// An open device whose AI CPU runs the card's library.
pub struct Card {
    pub rig: Rig,
    libraries: Libraries,
    _turn: MutexGuard<'static, ()>,
}

impl Card {
    /// With the stand-in of the driver in place.
    pub fn new(cpu: Cpu) -> Self {
        let card = Self::without_driver(cpu);
        let buffer = card.rig.device.malloc(64).unwrap();
        let (head, ring) = match cpu {
            Cpu::Native => (hcomm_port_head as *const () as u64, hcomm_port_ring as *const () as u64),
            _ => (0, 0),
        };
        card.hal("fake_hal_begin", &[HOST_DEVICE.into(), LOCAL_DEVICE.into(), 1, buffer.addr().0, head, ring]);
        card
    }

    /// Without it; native, another test may have loaded it.
    pub fn without_driver(cpu: Cpu) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // The checks of the simulator follow the calls of its own device library.
        let rig = Rig::with_options(DeviceOptions { cpu, checks: Some(Checks::NONE), ..DeviceOptions::default() });
        let libraries = match cpu {
            Cpu::Native => {
                let hal = open("fake/host/libascend_hal.so");
                Libraries::Native { hal, card: open("host/libhcomm_card.so") }
            }
            _ => {
                let read = |name: &str| Library::read(&built(name)).unwrap();
                Libraries::Linux { hal: read("fake/libascend_hal.so"), card: read("libhcomm_card.so") }
            }
        };
        Self { rig, libraries, _turn: turn }
    }

    fn function(&self, name: &str, of_hal: bool) -> Kernel {
        match &self.libraries {
            Libraries::Native { hal, card } => {
                let symbol = CString::new(name).unwrap();
                let library = if of_hal { *hal } else { *card } as *mut c_void;
                // SAFETY: a handle of dlopen, and a text that ends with a zero byte.
                let found = unsafe { libc::dlsym(library, symbol.as_ptr()) };
                assert!(!found.is_null(), "no function {name}");
                // SAFETY: both libraries export functions of this type alone, the driver's own names apart.
                Kernel::native(name, unsafe { std::mem::transmute::<*mut c_void, KernelFn>(found) })
            }
            Libraries::Linux { hal, card } => {
                self.rig.device.library_kernel(if of_hal { hal } else { card }, name).unwrap()
            }
        }
    }

    /// A kernel of the card's library.
    pub fn kernel(&self, name: &str) -> Kernel {
        self.function(name, false)
    }

    /// Tells the stand-in of the driver something, where the kernels run.
    pub fn hal(&self, name: &str, words: &[u64]) {
        let stream = Stream::new(&self.rig.device);
        stream.launch_bytes(&self.function(name, true), words.as_bytes()).unwrap();
        stream.synchronize().unwrap_or_else(|error| panic!("{name} {words:?}: {error}"));
    }

    /// Calls of the driver: queries, tails, reports, restores.
    pub fn calls(&self) -> [u64; 4] {
        let buffer = self.rig.buffer(&[0; 32]);
        self.hal("fake_hal_calls", &[buffer.addr().0]);
        <[u64; 4]>::read_from_bytes(&self.rig.read(&buffer)).unwrap()
    }

    pub fn status_buffer(&self) -> DeviceBuffer {
        self.rig.buffer(CardStatus::NEW.as_bytes())
    }

    pub fn read_status(&self, buffer: &DeviceBuffer) -> CardStatus {
        CardStatus::read_from_bytes(&self.rig.read(buffer)).unwrap()
    }

    /// Calls a kernel and waits for it; gives its status, and what the host's stream says.
    pub fn run(
        &self,
        kernel: &str,
        params: impl FnOnce(hcomm_aicpu::spec::DeviceAddr) -> Vec<u8>,
    ) -> (CardStatus, Result<(), Error>) {
        let status = self.status_buffer();
        self.submit(&self.rig.stream, kernel, &params(status.addr()));
        let ended = self.rig.stream.synchronize();
        (self.read_status(&status), ended)
    }

    /// Launches without waiting.
    pub fn submit(&self, stream: &Stream, kernel: &str, params: &[u8]) {
        let options = LaunchOptions { expects_refusals: true, ..LaunchOptions::default() };
        stream.launch_bytes_with(&self.kernel(kernel), params, options).unwrap();
    }

    /// A thread with a queue, known to driver and library.
    pub fn thread(&self, depth: u32, notify_count: u32) -> Known {
        let config = ThreadConfig::new(1).depth(depth).notifies(notify_count);
        let sim = self.rig.comm.acquire_threads_with(&config).unwrap()[0];
        let descriptor = self.announce(sim);
        let mut init = self.init(descriptor.stream_id, descriptor.sq_id, Engine::AICPU_TS);
        self.set_notifies(&mut init, sim, notify_count);
        self.add(sim, &init)
    }

    /// Makes the queue of a thread known to the driver, and gives what the simulator says of it.
    pub fn announce(&self, sim: ThreadHandle) -> ThreadDescriptor {
        let address = std::ptr::with_exposed_provenance::<ThreadDescriptor>(sim.addr().0 as usize);
        // SAFETY: the table of threads is mapped at its device address, and the thread lives.
        let descriptor = unsafe { address.read_volatile() };
        let ThreadDescriptor { sq_id, stream_id, sq_base, depth, regs, .. } = descriptor;
        self.hal(
            "fake_hal_queue",
            &[sq_id.into(), stream_id.into(), logic_cq(sq_id), sq_base.0, depth.into(), regs, 0],
        );
        descriptor
    }

    /// The thread of the host's stream, with notifies.
    pub fn host_thread(&self, stream: &Stream, notify_count: u32) -> Known {
        let sim = self.rig.comm.acquire_thread_with_stream(stream, notify_count).unwrap();
        let mut init = self.init(stream.id(), 0, Engine::CPU_TS);
        self.set_notifies(&mut init, sim, notify_count);
        self.add(sim, &init)
    }

    pub fn init(&self, stream: u32, sq: u32, engine: Engine) -> CardInit {
        let (logic_cq, soc) = (logic_cq(sq) as u32, 6);
        let status = hcomm_aicpu::spec::DeviceAddr(0);
        let (host_device, engine, header) = (HOST_DEVICE, engine.0, CardInit::HEADER);
        let notify_ids = [0; hcomm_aicpu::spec::card::CARD_NOTIFIES];
        CardInit { header, status, soc, host_device, engine, stream, sq, cq: 1, logic_cq, notify_count: 0, notify_ids }
    }

    fn set_notifies(&self, init: &mut CardInit, sim: ThreadHandle, count: u32) {
        init.notify_count = count;
        for (index, id) in init.notify_ids.iter_mut().take(count as usize).enumerate() {
            *id = self.rig.comm.notify_id(sim, index as u32).unwrap();
        }
    }

    fn add(&self, sim: ThreadHandle, init: &CardInit) -> Known {
        let (status, ended) = self.try_add(init);
        ended.unwrap_or_else(|error| panic!("{error}: {}", status.reason()));
        Known { sim, card: status.thread, slot: status.slot, sq: init.sq }
    }

    /// Calls `hcomm_card_init`.
    pub fn try_add(&self, init: &CardInit) -> (CardStatus, Result<(), Error>) {
        self.run("hcomm_card_init", |status| CardInit { status, ..*init }.as_bytes().to_vec())
    }

    /// Calls `hcomm_card_report` or `hcomm_card_release`.
    pub fn ask(&self, kernel: &str, thread: u64) -> (CardStatus, Result<(), Error>) {
        self.run(kernel, |status| CardThread { header: CardThread::HEADER, status, thread }.as_bytes().to_vec())
    }

    /// Launches a kernel with `params` behind the head of a card, and waits for it.
    pub fn launch<P: KernelParams>(
        &self,
        kernel: &str,
        head: &CardLaunch,
        params: &P,
    ) -> (CardStatus, Result<(), Error>) {
        self.run(kernel, |status| with_head(head, status, params))
    }
}

/// Logic completion queue of a queue.
fn logic_cq(sq: u32) -> u64 {
    u64::from(sq) + 100
}

/// Head of a launch that may use `threads`.
pub fn head(threads: &[&Known]) -> CardLaunch {
    CardLaunch {
        header: CardLaunch::HEADER,
        status: hcomm_aicpu::spec::DeviceAddr(0),
        params_size: 0,
        threads: threads.iter().fold(0, |bits, thread| bits | thread.bit()),
        end_thread: 0,
        end_peer: 0,
        end_notify: 0,
        timeout_ms: 1000,
    }
}

/// The parameters of a launch.
pub fn with_head<P: KernelParams>(head: &CardLaunch, status: hcomm_aicpu::spec::DeviceAddr, params: &P) -> Vec<u8> {
    let head = CardLaunch { status, params_size: size_of::<P>() as u64, ..*head };
    [head.as_bytes(), params.as_bytes()].concat()
}
