//! The runtime's libraries, `libascendcl.so` and `libruntime.so`, loaded while the program runs: no toolkit is needed to build.
//!
//! Signatures are those of the public headers. The two functions of `libruntime.so` are exported, but not public.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;

use libloading::Library;

use super::error::CardError;

/// `ACL_SUCCESS`.
const SUCCESS: i32 = 0;
/// `aclInit` was called before, by the program itself.
const REPEAT_INITIALIZE: i32 = 100_002;
/// A limit of `aclrtSynchronizeStreamWithTimeout` is over.
pub const SYNC_TIMEOUT: i32 = 507_046;

/// Flags of a stream: fast launch, fast synchronise.
const FAST: u32 = 1 | 2;
/// Flag of a stream whose queue belongs to the AI CPU.
const DEVICE_USE_ONLY: u32 = 0x20;
/// Flag of a notify that queues of the device use, too.
const NOTIFY_DEVICE_USE_ONLY: u64 = 1;
/// The option of a load that says where the kernels are; its value 0: on the device.
const CPU_KERNEL_MODE: u32 = 3;
/// The attribute of a launch with its limit in seconds.
const TIMEOUT: u32 = 7;
/// Directions of a copy.
const TO_DEVICE: i32 = 1;
const FROM_DEVICE: i32 = 2;
const IN_DEVICE: i32 = 3;

/// Handles of the runtime. The owner of one destroys it once, and does not use it afterwards.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(usize);

        impl $name {
            fn ptr(self) -> *mut c_void {
                std::ptr::with_exposed_provenance_mut(self.0)
            }
        }
    )+ };
}

handles! {
    /// `aclrtStream`.
    StreamHandle;
    /// `aclrtNotify`.
    NotifyHandle;
    /// `aclrtBinHandle`.
    BinaryHandle;
    /// `aclrtFuncHandle`.
    FunctionHandle;
}

/// An option of a load: kind, and a union of 16 bytes.
#[repr(C)]
struct LoadOption {
    kind: u32,
    value: [i32; 4],
}

#[repr(C)]
struct LoadOptions {
    options: *const LoadOption,
    count: usize,
}

/// An attribute of a launch: id, and a union of 16 bytes.
#[repr(C)]
struct LaunchAttribute {
    id: u32,
    value: [u16; 8],
}

#[repr(C)]
struct LaunchConfig {
    attributes: *const LaunchAttribute,
    count: usize,
}

const _: () = assert!(size_of::<LoadOption>() == 20 && size_of::<LoadOptions>() == 16);
const _: () = assert!(size_of::<LaunchAttribute>() == 20 && size_of::<LaunchConfig>() == 16);

type Ptr = *mut c_void;

/// The functions, by library.
macro_rules! functions {
    ($($library:ident { $($name:ident($($arg:ty),*) -> $result:ty;)+ })+) => {
        #[allow(non_snake_case, reason = "names of the runtime's functions")]
        struct Functions { $($($name: unsafe extern "C" fn($($arg),*) -> $result,)+)+ }

        impl Functions {
            /// # Errors
            /// [`CardError::MissingSymbol`].
            fn find(libraries: &Libraries) -> Result<Self, CardError> {
                Ok(Self { $($($name: {
                    let (library, path) = &libraries.$library;
                    let symbol = stringify!($name);
                    // SAFETY: the headers of the runtime give the function this type.
                    let found = unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> $result>(symbol.as_bytes()) };
                    *found.map_err(|_| CardError::MissingSymbol { library: path.clone(), symbol })?
                },)+)+ })
            }
        }
    };
}

functions! {
    acl {
        aclInit(*const c_char) -> i32;
        aclrtSetDevice(i32) -> i32;
        aclrtResetDevice(i32) -> i32;
        aclrtGetSocName() -> *const c_char;
        aclrtGetPhyDevIdByLogicDevId(i32, *mut i32) -> i32;
        aclrtMalloc(*mut Ptr, usize, i32) -> i32;
        aclrtFree(Ptr) -> i32;
        aclrtMemcpy(Ptr, usize, *const c_void, usize, i32) -> i32;
        aclrtMemset(Ptr, usize, i32, usize) -> i32;
        aclrtCreateStreamWithConfig(*mut Ptr, u32, u32) -> i32;
        aclrtDestroyStream(Ptr) -> i32;
        aclrtStreamStop(Ptr) -> i32;
        aclrtStreamAbort(Ptr) -> i32;
        aclrtStreamGetId(Ptr, *mut i32) -> i32;
        aclrtSynchronizeStreamWithTimeout(Ptr, i32) -> i32;
        aclrtCreateNotify(*mut Ptr, u64) -> i32;
        aclrtDestroyNotify(Ptr) -> i32;
        aclrtGetNotifyId(Ptr, *mut u32) -> i32;
        aclrtRecordNotify(Ptr, Ptr) -> i32;
        aclrtWaitAndResetNotify(Ptr, Ptr, u32) -> i32;
        aclrtBinaryLoadFromFile(*const c_char, *const LoadOptions, *mut Ptr) -> i32;
        aclrtBinaryGetFunction(Ptr, *const c_char, *mut Ptr) -> i32;
        aclrtKernelArgsInit(Ptr, *mut Ptr) -> i32;
        aclrtKernelArgsAppend(Ptr, *const c_void, usize, *mut Ptr) -> i32;
        aclrtKernelArgsFinalize(Ptr) -> i32;
        aclrtLaunchKernelWithConfig(Ptr, u32, Ptr, *const LaunchConfig, Ptr, Ptr) -> i32;
    }
    runtime {
        rtStreamGetSqid(Ptr, *mut u32) -> i32;
        rtStreamGetCqid(Ptr, *mut u32, *mut u32) -> i32;
    }
}

/// The two libraries, and what they were loaded by.
struct Libraries {
    acl: (Library, String),
    runtime: (Library, String),
}

/// Of the stand-in alone: number of the CPU, key of the product, folder of the packages.
type ConfigureFn = unsafe extern "C" fn(i32, *const c_char, *const c_char) -> i32;

/// The runtime. It stays loaded as long as the process lives: its threads do.
pub struct Acl(Functions, Option<ConfigureFn>);

/// What a function of the runtime has answered.
fn checked(call: &'static str, code: i32) -> Result<(), CardError> {
    if code == SUCCESS { Ok(()) } else { Err(CardError::Call { call, code }) }
}

/// Calls a function that gives nothing but its result.
macro_rules! call {
    ($self:ident.$name:ident($($arg:expr),*)) => {
        // SAFETY: handles come from this runtime and are alive (`handles`), addresses of the host are those of live values, and the
        // runtime checks addresses of the device.
        checked(stringify!($name), unsafe { ($self.0.$name)($($arg),*) })
    };
}

impl Acl {
    /// Loads the runtime from `folder`, or from where the loader of programs looks, and initialises it.
    ///
    /// # Errors
    /// Which library or function is missing; the result of `aclInit`.
    pub fn load(folder: Option<&Path>) -> Result<Self, CardError> {
        let open = |name: &str| {
            let path = folder.map_or_else(|| name.into(), |folder| folder.join(name));
            let shown = path.display().to_string();
            // SAFETY: the user has chosen the runtime; its constructors need nothing from this program.
            match unsafe { Library::new(&path) } {
                Ok(library) => Ok((library, shown)),
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    Err(CardError::MissingLibrary { name: shown, reason: cause.unwrap_or_else(|| error.to_string()) })
                }
            }
        };
        let libraries = Libraries { acl: open("libascendcl.so")?, runtime: open("libruntime.so")? };
        let functions = Functions::find(&libraries)?;
        // SAFETY: the stand-in alone has this name, with this type.
        let configure = unsafe { libraries.acl.0.get::<ConfigureFn>(b"hcomm_fake_card") }.ok().map(|found| *found);
        std::mem::forget(libraries);
        let acl = Self(functions, configure);
        match call!(acl.aclInit(std::ptr::null())) {
            Ok(()) | Err(CardError::Call { code: REPEAT_INITIALIZE, .. }) => Ok(acl),
            Err(error) => Err(error),
        }
    }

    /// Tells the stand-in which AI CPU and which product it is, before the device is chosen.
    ///
    /// # Errors
    /// This is not the stand-in; it has a device that is another one.
    pub fn configure(&self, cpu: i32, product: &CStr, folder: &CStr) -> Result<(), CardError> {
        let Some(configure) = self.1 else {
            return Err(CardError::MissingSymbol { library: "libascendcl.so".to_owned(), symbol: "hcomm_fake_card" });
        };
        // SAFETY: two texts that end with a zero byte.
        checked("hcomm_fake_card", unsafe { configure(cpu, product.as_ptr(), folder.as_ptr()) })
    }

    /// Chooses the device of the calling thread.
    pub fn set_device(&self, number: i32) -> Result<(), CardError> {
        call!(self.aclrtSetDevice(number))
    }

    /// Closes a device for this process.
    pub fn reset_device(&self, number: i32) -> Result<(), CardError> {
        call!(self.aclrtResetDevice(number))
    }

    /// Name of the chip.
    pub fn soc_name(&self) -> String {
        // SAFETY: takes nothing.
        let name = unsafe { (self.0.aclrtGetSocName)() };
        if name.is_null() {
            return String::new();
        }
        // SAFETY: not null, so a text that ends with a zero byte and stays.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }

    /// Number of a device as driver and AI CPU count on the host's side.
    pub fn physical_device(&self, number: i32) -> Result<u32, CardError> {
        let mut physical = 0;
        call!(self.aclrtGetPhyDevIdByLogicDevId(number, &raw mut physical))?;
        u32::try_from(physical).map_err(|_| CardError::BadId {
            what: "physical device",
            value: physical as u64,
            max: i32::MAX as u64,
        })
    }

    /// Memory of the device. Policy 0: huge pages where there are.
    pub fn malloc(&self, len: u64) -> Result<u64, CardError> {
        let mut addr = null_mut();
        call!(self.aclrtMalloc(&raw mut addr, len as usize, 0))?;
        Ok(addr.expose_provenance() as u64)
    }

    /// Frees it.
    pub fn free(&self, addr: u64) -> Result<(), CardError> {
        call!(self.aclrtFree(device(addr)))
    }

    /// Copies bytes of the host.
    pub fn copy_in(&self, addr: u64, bytes: &[u8]) -> Result<(), CardError> {
        call!(self.aclrtMemcpy(device(addr), bytes.len(), bytes.as_ptr().cast(), bytes.len(), TO_DEVICE))
    }

    /// Copies bytes to the host.
    pub fn copy_out(&self, addr: u64, out: &mut [u8]) -> Result<(), CardError> {
        call!(self.aclrtMemcpy(out.as_mut_ptr().cast(), out.len(), device(addr), out.len(), FROM_DEVICE))
    }

    /// Copies bytes of the device.
    pub fn copy_within(&self, dst: u64, src: u64, len: u64) -> Result<(), CardError> {
        call!(self.aclrtMemcpy(device(dst), len as usize, device(src), len as usize, IN_DEVICE))
    }

    /// Sets bytes of the device to zero.
    pub fn clear(&self, addr: u64, len: u64) -> Result<(), CardError> {
        call!(self.aclrtMemset(device(addr), len as usize, 0, len as usize))
    }

    /// A stream of the host; `for_device`: one whose queue belongs to the AI CPU.
    pub fn create_stream(&self, for_device: bool) -> Result<StreamHandle, CardError> {
        let mut stream = null_mut();
        let flags = if for_device { DEVICE_USE_ONLY } else { FAST };
        call!(self.aclrtCreateStreamWithConfig(&raw mut stream, 0, flags))?;
        Ok(StreamHandle(stream.expose_provenance()))
    }

    /// Destroys a stream of the host. `abort`: with what is left on it.
    pub fn destroy_stream(&self, stream: StreamHandle, abort: bool) -> Result<(), CardError> {
        if abort {
            call!(self.aclrtStreamAbort(stream.ptr()))?;
        }
        call!(self.aclrtDestroyStream(stream.ptr()))
    }

    /// Stops and destroys a stream whose queue belongs to the AI CPU.
    pub fn destroy_queue(&self, stream: StreamHandle) -> Result<(), CardError> {
        call!(self.aclrtStreamStop(stream.ptr()))?;
        call!(self.aclrtDestroyStream(stream.ptr()))
    }

    /// Number of a stream.
    pub fn stream_id(&self, stream: StreamHandle) -> Result<u32, CardError> {
        let mut id = 0;
        call!(self.aclrtStreamGetId(stream.ptr(), &raw mut id))?;
        small("stream id", u64::try_from(id).unwrap_or(u64::MAX))
    }

    /// Number of a stream's submission queue.
    pub fn sq_id(&self, stream: StreamHandle) -> Result<u32, CardError> {
        let mut id = 0;
        call!(self.rtStreamGetSqid(stream.ptr(), &raw mut id))?;
        small("submission queue", id.into())
    }

    /// Numbers of a stream's completion queue and logic completion queue.
    pub fn cq_ids(&self, stream: StreamHandle) -> Result<(u32, u32), CardError> {
        let (mut cq, mut logic) = (0, 0);
        call!(self.rtStreamGetCqid(stream.ptr(), &raw mut cq, &raw mut logic))?;
        Ok((cq, logic))
    }

    /// Waits for a stream for `ms` milliseconds; -1: without limit. Gives the runtime's code.
    pub fn synchronize(&self, stream: StreamHandle, ms: i32) -> i32 {
        // SAFETY: the stream is alive (`handles`).
        unsafe { (self.0.aclrtSynchronizeStreamWithTimeout)(stream.ptr(), ms) }
    }

    /// A notify, and its id.
    pub fn create_notify(&self) -> Result<(NotifyHandle, u32), CardError> {
        let mut notify = null_mut();
        call!(self.aclrtCreateNotify(&raw mut notify, NOTIFY_DEVICE_USE_ONLY))?;
        let handle = NotifyHandle(notify.expose_provenance());
        // One header of the vendor's examples passes 64 bits.
        let mut id = [0_u32; 2];
        match call!(self.aclrtGetNotifyId(notify, id.as_mut_ptr())) {
            Ok(()) => Ok((handle, id[0])),
            Err(error) => {
                // The first error is the one to tell.
                let _ = self.destroy_notify(handle);
                Err(error)
            }
        }
    }

    /// Destroys a notify.
    pub fn destroy_notify(&self, notify: NotifyHandle) -> Result<(), CardError> {
        call!(self.aclrtDestroyNotify(notify.ptr()))
    }

    /// Records a notify after the operations of a stream.
    pub fn record(&self, notify: NotifyHandle, stream: StreamHandle) -> Result<(), CardError> {
        call!(self.aclrtRecordNotify(notify.ptr(), stream.ptr()))
    }

    /// Makes a stream wait for a notify, for so many seconds (0: without limit).
    pub fn wait_and_reset(&self, notify: NotifyHandle, stream: StreamHandle, seconds: u32) -> Result<(), CardError> {
        call!(self.aclrtWaitAndResetNotify(notify.ptr(), stream.ptr(), seconds))
    }

    /// Loads the description of a package whose library is on the device.
    pub fn load_description(&self, path: &CStr) -> Result<BinaryHandle, CardError> {
        let option = LoadOption { kind: CPU_KERNEL_MODE, value: [0; 4] };
        let options = LoadOptions { options: &raw const option, count: 1 };
        let mut binary = null_mut();
        call!(self.aclrtBinaryLoadFromFile(path.as_ptr(), &raw const options, &raw mut binary))?;
        Ok(BinaryHandle(binary.expose_provenance()))
    }

    /// A kernel of it.
    pub fn function(&self, binary: BinaryHandle, name: &str) -> Result<FunctionHandle, CardError> {
        let call = "aclrtBinaryGetFunction";
        let name = CString::new(name)
            .map_err(|_| CardError::NoKernel { name: name.to_owned(), description: call.to_owned() })?;
        let mut function = null_mut();
        call!(self.aclrtBinaryGetFunction(binary.ptr(), name.as_ptr(), &raw mut function))?;
        Ok(FunctionHandle(function.expose_provenance()))
    }

    /// Launches a kernel with parameters by value. `seconds`: its limit.
    pub fn launch(
        &self,
        function: FunctionHandle,
        stream: StreamHandle,
        params: &[u8],
        seconds: u16,
    ) -> Result<(), CardError> {
        let (mut args, mut param) = (null_mut(), null_mut());
        call!(self.aclrtKernelArgsInit(function.ptr(), &raw mut args))?;
        call!(self.aclrtKernelArgsAppend(args, params.as_ptr().cast(), params.len(), &raw mut param))?;
        call!(self.aclrtKernelArgsFinalize(args))?;
        let mut value = [0; 8];
        value[0] = seconds;
        let attribute = LaunchAttribute { id: TIMEOUT, value };
        let config = LaunchConfig { attributes: &raw const attribute, count: 1 };
        call!(self.aclrtLaunchKernelWithConfig(function.ptr(), 1, stream.ptr(), &raw const config, args, null_mut()))
    }
}

/// A pointer of the runtime's for an address of the device: never read here.
fn device(addr: u64) -> Ptr {
    std::ptr::with_exposed_provenance_mut(addr as usize)
}

/// A number that descriptors have 16 bits for.
fn small(what: &'static str, value: u64) -> Result<u32, CardError> {
    let max = u16::MAX.into();
    if value <= max { Ok(value as u32) } else { Err(CardError::BadId { what, value, max }) }
}
