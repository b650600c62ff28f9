//! What the C function of a kernel does with parameters, results and panics.

use core::ffi::{CStr, c_void};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::code::{HCCL_E_PARA, HCCL_E_PTR, HCCL_E_UNAVAIL};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_kernel::{Control, KernelFn, LocalCopyParams, kernel, kernels};
use hcomm_testkit_platform::Rig;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct AddParams {
    header: ParamsHeader,
    left: u64,
    right: u64,
}

impl KernelParams for AddParams {
    const MAGIC: u32 = 0x0011_2233;
    const VERSION: u32 = 4;
}

kernel! {
    /// Answers an error that carries the sum, so that the test sees that the parameters came through.
    fn add(params: &AddParams) -> Result<(), hcomm_aicpu::Error> {
        match params.left + params.right {
            0 => Ok(()),
            100 => panic!("the sum is 100"),
            len => Err(hcomm_aicpu::Error::TooLarge { len, limit: 0 }),
        }
    }
}

fn find(name: &CStr) -> KernelFn {
    let is_named = |kernel: &&hcomm_kernel::KernelEntry| {
        // SAFETY: the macro ends every name by a zero byte.
        let found = unsafe { CStr::from_ptr(kernel.name) };
        found == name
    };
    kernels().iter().find(is_named).unwrap_or_else(|| panic!("no kernel {name:?}")).function
}

fn launch<P>(kernel: KernelFn, params: &P) -> i32 {
    kernel((params as *const P).cast::<c_void>()) as i32
}

#[test]
fn null_parameters_are_refused() {
    assert_eq!(find(c"add")(core::ptr::null()) as i32, HCCL_E_PTR);
    assert_eq!(find(c"local_copy")(core::ptr::null()) as i32, HCCL_E_PTR);
}

#[test]
fn parameters_of_another_kernel_version_or_size_are_refused() {
    let good = AddParams { header: AddParams::HEADER, left: 0, right: 0 };
    assert_eq!(launch(find(c"add"), &good), 0);
    assert_eq!(launch(find(c"local_copy"), &good), HCCL_E_PARA);
    let ParamsHeader { magic, version, size } = AddParams::HEADER;
    for header in [
        ParamsHeader { magic: magic + 1, version, size },
        ParamsHeader { magic, version: version + 1, size },
        ParamsHeader { magic, version, size: size - 8 },
    ] {
        assert_eq!(launch(find(c"add"), &AddParams { header, ..good }), HCCL_E_PARA, "{header:?}");
    }
}

/// Case 57.
#[test]
fn parameters_may_be_unaligned() {
    let params = AddParams { header: AddParams::HEADER, left: 40, right: 2 };
    let mut bytes = [0; 1 + size_of::<AddParams>() + 8];
    for offset in 0..8 {
        bytes[offset..offset + size_of::<AddParams>()].copy_from_slice(params.as_bytes());
        assert_eq!(find(c"add")(bytes[offset..].as_ptr().cast()) as i32, HCCL_E_PARA, "offset {offset}");
    }
    assert_eq!(add(&params), Err(hcomm_aicpu::Error::TooLarge { len: 42, limit: 0 }));
}

#[test]
fn a_panic_can_be_caught_by_who_launched() {
    let params = AddParams { header: AddParams::HEADER, left: 99, right: 1 };
    let payload = std::panic::catch_unwind(|| launch(find(c"add"), &params)).unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the sum is 100"));
}

#[test]
fn local_copy_refuses_more_than_the_buffer_holds() {
    // A platform, and no launch on it.
    let _rig = Rig::new(2);
    let fits = LocalCopyParams {
        header: LocalCopyParams::HEADER,
        thread: 0x0001_12c0_0001_0000,
        user_in: DeviceAddr(0x12c0_0010_0000),
        ccl_buf: DeviceAddr(0x12c0_0020_0000),
        ccl_buf_size: 256,
        len: 256,
        control: Control::NONE,
    };
    // What fits goes on to the thread, which needs a core.
    assert_eq!(launch(find(c"local_copy"), &fits), HCCL_E_UNAVAIL);
    assert_eq!(launch(find(c"local_copy"), &LocalCopyParams { len: 257, ..fits }), HCCL_E_PARA);
    assert_eq!(
        hcomm_kernel::local_copy(&LocalCopyParams { len: 257, ..fits }).unwrap_err().to_string(),
        "257 bytes do not fit into a buffer of 256"
    );
}
