//! Images that can't be used: each has its own error, none a panic.

use std::path::PathBuf;

use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_kernel::{LocalCopyParams, MisbehaveParams, Misbehaviour};
use hcomm_testkit::{CPUS, Rig};
use host_stub::loader::{Image, find};
use host_stub::{Cpu, Device, DeviceOptions, Error};
use zerocopy::IntoBytes;

fn image() -> Vec<u8> {
    std::fs::read(find().unwrap()).unwrap()
}

fn message(data: Vec<u8>) -> String {
    Image::parse("x.elf".into(), data).map(|_| ()).unwrap_err().to_string()
}

/// A file of its own for each test.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, data: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("hcomm-{}-{name}", std::process::id()));
        std::fs::write(&path, data).unwrap();
        Self(path)
    }

    fn open_error(&self) -> String {
        let options = DeviceOptions { cpu: Cpu::Qemu, image: Some(self.0.clone()), ..DeviceOptions::default() };
        Device::open(options).map(|_| ()).unwrap_err().to_string()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // A file that stays in the temporary folder does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn image_that_is_cut_anywhere_is_refused_without_a_panic() {
    let image = image();
    let all = [0..4096, image.len() - 4096..image.len()];
    let lens = all.into_iter().flatten().chain((4096..image.len()).step_by(13));
    for len in lens {
        assert!(
            Image::parse("cut".into(), image[..len].to_vec()).is_err(),
            "{len} bytes of {} are enough",
            image.len()
        );
    }
    assert!(Image::parse("whole".into(), image).is_ok());
}

#[test]
fn image_with_one_wrong_byte_in_a_header_does_not_panic() {
    let image = image();
    let section_headers = u64::from_le_bytes(image[40..48].try_into().unwrap()) as usize;
    for at in (0..64 + 4 * 56).chain(section_headers..image.len()) {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut image = image.clone();
            image[at] = value;
            // Many bytes do not matter.
            let _ = Image::parse("damaged".into(), image);
        }
    }
}

/// Case 60.
#[test]
fn each_wrong_file_and_name_has_its_own_error() {
    let missing = TempFile(std::env::temp_dir().join("hcomm-no-such-image"));
    let error = missing.open_error();
    assert!(error.contains("hcomm-no-such-image: No such file"), "{error}");
    assert!(TempFile::new("empty", b"").open_error().ends_with("is empty"));
    assert!(TempFile::new("text", b"#!/bin/sh\n").open_error().ends_with("is not an elf file"));
    let half = image();
    let error = TempFile::new("half", &half[..half.len() / 2]).open_error();
    assert!(error.contains("is truncated or damaged: "), "{error}");
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let error = rig.device.load_kernel("local_copi").map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("no kernel local_copi: there are "), "{error}");
        for kernel in ["local_copy", "copy_list", "misbehave"] {
            assert!(error.contains(kernel), "{error}");
        }
        // Freed twice.
        let addr = rig.device.allocate(64).unwrap();
        rig.device.free(addr).unwrap();
        let error = rig.device.free(addr).unwrap_err().to_string();
        assert!(error.ends_with("has been freed already"), "{error}");
    }
}

/// Case 63.
#[test]
fn wrong_machine_class_or_abi_is_refused_with_both_names() {
    let program = TempFile::new("program", &std::fs::read("/proc/self/exe").unwrap());
    let error = program.open_error();
    assert!(
        cfg!(not(target_arch = "x86_64")) || error.ends_with("is for machine x86-64 (62), not for aarch64 (183)"),
        "{error}"
    );
    let change = |at: usize, value: u8| {
        let mut image = image();
        image[at] = value;
        message(image)
    };
    assert_eq!(change(4, 1), "device image x.elf is a 32-bit elf file, not a 64-bit one");
    assert_eq!(change(5, 2), "device image x.elf is a big-endian elf file, not a little-endian one");
    assert_eq!(change(18, 40), "device image x.elf is for machine arm (40), not for aarch64 (183)");
    assert_eq!(
        change(16, 3),
        "device image x.elf has elf type 3, not 2 (executable): a library made for AArch64 Linux: use --cpu linux"
    );
    assert_eq!(change(48, 4), "device image x.elf has elf flags 0x4, not 0");
}

fn params() -> LocalCopyParams {
    let (header, addr) = (LocalCopyParams::HEADER, hcomm_aicpu::spec::DeviceAddr(0));
    LocalCopyParams {
        header,
        thread: 0,
        user_in: addr,
        ccl_buf: addr,
        ccl_buf_size: 0,
        len: 0,
        control: hcomm_kernel::Control::NONE,
    }
}

/// Case 55.
#[test]
fn parameters_of_the_wrong_size_or_version_are_refused_by_host_and_kernel() {
    let good = LocalCopyParams::HEADER;
    let heads = [
        (ParamsHeader { version: 1, ..good }, "kernel parameters have version 1, not 2"),
        (ParamsHeader { size: 48, ..good }, "kernel parameters have 48 bytes, not 72"),
        (ParamsHeader { magic: 1, ..good }, "kernel parameters have magic 0x00000001, not 0x5950434c"),
    ];
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        for (header, text) in heads {
            let params = LocalCopyParams { header, ..params() };
            let error = rig.stream.launch_and_drain(&kernel, &params).unwrap_err();
            assert!(matches!(error, Error::BadParams(_)) && error.to_string() == text, "{error}");
            // The kernel's own answer, to bytes that no type vouches for.
            rig.stream.launch_bytes(&kernel, params.as_bytes()).unwrap();
            let error = rig.stream.synchronize().unwrap_err().to_string();
            assert!(error.contains("kernel local_copy returned 1 (HCCL_E_PARA)"), "{error}");
        }
        // Those of another kernel, and none.
        let others = MisbehaveParams { header: MisbehaveParams::HEADER, kind: Misbehaviour(9) };
        rig.stream.launch_and_drain(&kernel, &others).unwrap();
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(error.contains("returned 1 (HCCL_E_PARA)"), "{error}");
        rig.stream.launch_bytes(&kernel, &[]).unwrap();
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(error.contains("returned 2 (HCCL_E_PTR)"), "{error}");
    }
}

/// Case 231. A kernel is a C symbol of the program: with the name of a function of the C library it would take its place.
#[test]
fn no_kernel_has_the_name_of_a_function_of_the_c_library() {
    // SAFETY: the name is a C string; the library is loaded already, and stays.
    let library = unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    assert!(!library.is_null(), "the program runs with a C library");
    // SAFETY: `library` was just opened, and the name is a C string.
    let finds = |name: &std::ffi::CStr| unsafe { !libc::dlsym(library, name.as_ptr()).is_null() };
    assert!(finds(c"recv"), "a name that it has");
    for kernel in hcomm_kernel::kernels() {
        // SAFETY: the macro ends every name by a zero byte.
        let name = unsafe { std::ffi::CStr::from_ptr(kernel.name) };
        assert!(!finds(name), "kernel {name:?}");
    }
}
