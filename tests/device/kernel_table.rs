//! The table of kernels of a program that names no kernel of the crate: the linker must keep them all the same.

use core::ffi::CStr;

use hcomm_kernel::kernels;
use hcomm_testkit_platform::Rig;

#[test]
fn every_kernel_of_the_crate_is_in_the_table_once() {
    // The platform that the kernels are linked with.
    let _rig = Rig::new(2);
    // SAFETY: the macro ends every name by a zero byte.
    let names: Vec<_> = kernels().iter().map(|kernel| unsafe { CStr::from_ptr(kernel.name) }).collect();
    for kernel in [
        c"local_copy",
        c"copy_list",
        c"staged_copy",
        c"local_reduce",
        c"pingpong",
        c"call_list",
        c"misbehave",
        c"bench_ops",
        c"empty",
    ] {
        assert_eq!(names.iter().filter(|&&name| name == kernel).count(), 1, "{kernel:?} in {names:?}");
    }
}
