//! Declaration of a kernel entry: what makes a Rust function one that the host can launch.

use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;

use hcomm_aicpu::Error;
use hcomm_aicpu::abi::refuse;
use hcomm_aicpu::spec::code::HCCL_SUCCESS;
#[cfg(feature = "card")]
use hcomm_aicpu::spec::params::ParamsError;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader, check};

/// C function of a kernel: takes its parameters, returns an `HcclResult`.
///
/// On the host's native CPU a panic unwinds out of it and is caught there; in the image it never returns.
pub type KernelFn = extern "C-unwind" fn(args: *const c_void) -> u32;

/// One entry of the table of kernels, section `.kernels` of the image. The loader on the host reads it as two 64-bit words.
#[derive(Debug)]
#[repr(C)]
pub struct KernelEntry {
    /// Name, ended by a zero byte.
    pub name: *const c_char,
    /// The function.
    pub function: KernelFn,
}
const _: () = assert!(cfg!(not(target_pointer_width = "64")) || size_of::<KernelEntry>() == 16);

// SAFETY: both fields point to constants of the program.
unsafe impl Sync for KernelEntry {}

/// Result of a kernel, as the code that its C function returns.
pub trait Answer {
    /// The `HcclResult`, or why the kernel was refused.
    ///
    /// # Errors
    /// The kernel's own.
    fn code(self) -> Result<i32, Error>;
}

impl Answer for Result<(), Error> {
    fn code(self) -> Result<i32, Error> {
        self.map(|()| HCCL_SUCCESS)
    }
}

/// For kernels that call C entry points, which return codes.
impl Answer for Result<i32, Error> {
    fn code(self) -> Result<i32, Error> {
        self
    }
}

/// Declares a kernel: a safe function that takes a reference to its parameters (any
/// [`KernelParams`]) and returns `Result<(), hcomm_aicpu::Error>`, or `Result<i32, hcomm_aicpu::Error>` with a code.
///
/// Besides the function itself it makes the C symbol of the same name, of type [`KernelFn`], and the entry in the table of
/// kernels. The C function returns 2 (`HCCL_E_PTR`) for null parameters and 1 (`HCCL_E_PARA`) for those of another kernel
/// or version; else it runs the kernel on a copy of the parameters and returns 0 or the code of its error.
///
/// ```no_run
/// use hcomm_aicpu::spec::{DeviceAddr, params::{KernelParams, ParamsHeader}, thread::ThreadHandle};
/// use hcomm_aicpu::{Error, Thread};
/// use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// /// Parameters of [`swap_halves`].
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[repr(C)]
/// pub struct SwapHalvesParams { header: ParamsHeader, thread: u64, src: DeviceAddr, dst: DeviceAddr, half: u64 }
///
/// impl KernelParams for SwapHalvesParams {
///     const MAGIC: u32 = u32::from_le_bytes(*b"SWAP");
///     const VERSION: u32 = 1;
/// }
///
/// hcomm_kernel::kernel! {
///     /// Copies two halves of `half` bytes, each to the place of the other.
///     pub fn swap_halves(params: &SwapHalvesParams) -> Result<(), Error> {
///         let thread = Thread::from_handle(ThreadHandle(params.thread))?;
///         let (src, dst, half) = (params.src.0, params.dst.0, params.half);
///         thread.local_copy(DeviceAddr(dst + half), DeviceAddr(src), half)?;
///         thread.local_copy(DeviceAddr(dst), DeviceAddr(src + half), half)
///     }
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! kernel {
    (
        $(#[$attr:meta])*
        $vis:vis fn $name:ident($params:ident: &$type:ty) -> $result:ty $body:block
    ) => {
        $(#[$attr])*
        $vis fn $name($params: &$type) -> $result $body

        const _: () = {
            #[unsafe(export_name = stringify!($name))]
            extern "C-unwind" fn entry(args: *const ::core::ffi::c_void) -> u32 {
                // SAFETY: who launches a kernel owes null or parameters; `run_kernel` checks whose.
                unsafe { $crate::run_kernel(concat!("kernel ", stringify!($name)), args, $name) }
            }

            // Nothing refers to the entry: the linker gathers those of the whole program in one section.
            #[used]
            #[cfg_attr(target_os = "none", unsafe(link_section = ".kernels"))]
            #[cfg_attr(target_os = "linux", unsafe(link_section = "hcomm_kernels"))]
            static ENTRY: $crate::KernelEntry =
                $crate::KernelEntry { name: concat!(stringify!($name), "\0").as_ptr().cast(), function: entry };
        };
    };
}

/// The kernels of this program.
pub fn kernels() -> &'static [KernelEntry] {
    // Both ends of the section: `link.ld` defines them for the image, the linker itself on Linux.
    unsafe extern "C" {
        #[cfg_attr(target_os = "none", link_name = "__kernels_start")]
        #[cfg_attr(target_os = "linux", link_name = "__start_hcomm_kernels")]
        static START: KernelEntry;
        #[cfg_attr(target_os = "none", link_name = "__kernels_end")]
        #[cfg_attr(target_os = "linux", link_name = "__stop_hcomm_kernels")]
        static END: KernelEntry;
    }
    let (start, end) = (&raw const START, &raw const END);
    let count = (end as usize - start as usize) / size_of::<KernelEntry>();
    // SAFETY: the section holds entries and nothing else, each 16 bytes, constant while the program runs.
    unsafe { core::slice::from_raw_parts(start, count) }
}

/// What the C function of a kernel does.
///
/// # Safety
/// `args` is null, or a [`ParamsHeader`] can be read there, and if that is the one of `P`, a `P`.
#[doc(hidden)]
#[cfg(not(feature = "card"))]
pub unsafe fn run_kernel<P: KernelParams, A: Answer>(
    name: &'static str,
    args: *const c_void,
    run: impl FnOnce(&P) -> A,
) -> u32 {
    // SAFETY: passed on.
    let result = unsafe { read_params::<P>(args) }.and_then(|params| run(&params).code());
    match result {
        Ok(code) => code as u32,
        Err(error) => refuse(name, &error) as u32,
    }
}

/// What the C function of a kernel does on a card: its own parameters follow the head of the launch, and it returns 0 or 1.
///
/// # Safety
/// As for [`hcomm_card::launch()`].
#[doc(hidden)]
#[cfg(feature = "card")]
pub unsafe fn run_kernel<P: KernelParams, A: Answer>(
    name: &'static str,
    args: *const c_void,
    run: impl FnOnce(&P) -> A,
) -> u32 {
    let kernel = |own: *const c_void, size: u64| {
        let expected = size_of::<P>() as u64;
        if size != expected {
            return Err(ParamsError::BadSize { found: size, expected }.into());
        }
        // SAFETY: the launch has so many bytes of parameters.
        let result = unsafe { read_params::<P>(own) }.and_then(|params| run(&params).code());
        result.inspect_err(|error| {
            refuse(name, error);
        })
    };
    // SAFETY: passed on.
    unsafe { hcomm_card::launch(name, args, kernel) }
}

/// A copy of the parameters at `args`, whatever their alignment.
///
/// # Safety
/// As for [`run_kernel`].
unsafe fn read_params<P: KernelParams>(args: *const c_void) -> Result<P, Error> {
    if args.is_null() {
        return Err(Error::NullParams);
    }
    let mut header = MaybeUninit::<ParamsHeader>::uninit();
    // SAFETY: not null, so the caller owes a readable head.
    unsafe { copy_bytes(args, header.as_mut_ptr().cast(), size_of::<ParamsHeader>()) };
    // SAFETY: all of its bytes have just been written, and any bytes are a head.
    check::<P>(unsafe { header.assume_init_ref() })?;
    let mut params = MaybeUninit::<P>::uninit();
    // SAFETY: the head is that of a `P`, so the caller owes a whole one.
    unsafe { copy_bytes(args, params.as_mut_ptr().cast(), size_of::<P>()) };
    // SAFETY: all of its bytes have just been written, and any bytes are a `P`, since it is `FromBytes`.
    Ok(unsafe { params.assume_init() })
}

/// Copies parameters of any alignment. One function for all kernels: the image must not load words that are not aligned,
/// and the compiler would unroll a load of each byte into every kernel.
///
/// # Safety
/// `len` bytes can be read at `from` and written at `to`.
#[inline(never)]
unsafe fn copy_bytes(from: *const c_void, to: *mut u8, len: usize) {
    // SAFETY: passed on; the one is the host's, the other a variable of the caller.
    unsafe { from.cast::<u8>().copy_to_nonoverlapping(to, len) };
}
