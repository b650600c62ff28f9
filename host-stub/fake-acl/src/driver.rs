//! What the stand-in of the driver's library is told: by its own functions, which have the type of a kernel.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;

use hcomm_aicpu::spec::thread::{ThreadDescriptor, ThreadHandle};
use hcomm_kernel::KernelFn;
use host_stub::{Cpu, Device, DeviceBuffer, Kernel, Stream};
use zerocopy::IntoBytes;

use crate::codes;
use crate::loader::{Loader, native};
use crate::world::Config;

/// The device as the host counts it, and as the AI CPU does: they must not be mixed up.
pub const HOST_DEVICE: u32 = 5;
const LOCAL_DEVICE: u32 = 2;

// What the native CPU has for kernels: the stand-in of the driver reaches the registers by them.
unsafe extern "C" {
    fn hcomm_port_head(sq_id: u32, regs: u64, head: *mut u32) -> i32;
    fn hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32;
}

/// The stand-in of the driver.
pub struct Driver {
    device: Device,
    place: Place,
    /// By its address the stand-in finds the registers of the device.
    _hbm: DeviceBuffer,
}

enum Place {
    Native(PathBuf),
    /// The stand-in's functions that are called, by name.
    Linux(BTreeMap<String, Kernel>),
}

/// Logic completion queue of a queue.
pub fn logic_cq(sq: u32) -> u32 {
    sq + 100
}

impl Driver {
    pub fn new(device: &Device, config: &Config, loader: &Loader) -> Result<Self, String> {
        let hbm = device.malloc(64).map_err(|error| error.to_string())?;
        let is_native = config.cpu == Cpu::Native;
        let place = if is_native {
            Place::Native(config.folder.join("fake/host/libascend_hal.so"))
        } else {
            let path = config.folder.join("fake/libascend_hal.so");
            let names = ["fake_hal_begin", "fake_hal_queue", "fake_hal_remove", "fake_hal_fail"];
            let find = |name: &str| loader.aarch64(device, &path, name).map(|kernel| (name.to_owned(), kernel));
            let kernels = names.into_iter().map(find).collect::<Result<_, _>>();
            Place::Linux(kernels.map_err(|code| format!("{}: {code}", path.display()))?)
        };
        let (head, ring) = match is_native {
            true => (hcomm_port_head as *const () as u64, hcomm_port_ring as *const () as u64),
            false => (0, 0),
        };
        let is_950 = config.product.soc == Some(hcomm_aicpu::spec::soc::Soc::Ascend950);
        let driver = Self { device: device.clone(), place, _hbm: hbm };
        let words = [HOST_DEVICE.into(), LOCAL_DEVICE.into(), is_950.into(), driver._hbm.addr().0, head, ring];
        driver.tell("fake_hal_begin", &words).map_err(|code| format!("the stand-in of the driver: {code}"))?;
        Ok(driver)
    }

    /// Calls a function of the stand-in where the kernels run.
    ///
    /// # Errors
    /// It is not there, or it fails.
    pub fn tell(&self, name: &str, words: &[u64]) -> Result<(), i32> {
        match &self.place {
            Place::Native(path) => {
                let address = native(path, name)?;
                // SAFETY: the stand-in's functions for tests have this type.
                let function = unsafe { std::mem::transmute::<*mut c_void, KernelFn>(address) };
                if function(words.as_ptr().cast()) == 0 { Ok(()) } else { Err(codes::INTERNAL) }
            }
            Place::Linux(kernels) => {
                let kernel = kernels.get(name).ok_or(codes::FUNCTION_MISSING)?;
                let stream = Stream::new(&self.device);
                stream.launch_bytes(kernel, words.as_bytes()).map_err(|_| codes::INTERNAL)?;
                stream.synchronize().map_err(|_| codes::INTERNAL)
            }
        }
    }

    /// Makes the queue of a thread known to the driver, and gives its numbers: stream and queue.
    ///
    /// # Errors
    /// As [`tell`](Self::tell).
    pub fn announce(&self, thread: ThreadHandle) -> Result<(u32, u32), i32> {
        let ThreadDescriptor { sq_id, stream_id, sq_base, depth, regs, .. } = descriptor(thread);
        let words = [sq_id.into(), stream_id.into(), logic_cq(sq_id).into(), sq_base.0, depth.into(), regs, 0];
        self.tell("fake_hal_queue", &words)?;
        Ok((stream_id, sq_id))
    }

    /// The driver no longer has the queue of a thread.
    ///
    /// # Errors
    /// As [`tell`](Self::tell).
    pub fn forget(&self, thread: ThreadHandle) -> Result<(), i32> {
        self.tell("fake_hal_remove", &[descriptor(thread).sq_id.into()])
    }
}

/// What the simulator says of a thread that lives.
pub fn descriptor(thread: ThreadHandle) -> ThreadDescriptor {
    let address = std::ptr::with_exposed_provenance::<ThreadDescriptor>(thread.addr().0 as usize);
    // SAFETY: the table of threads is mapped at its device address, and the caller has the thread.
    unsafe { address.read_volatile() }
}
