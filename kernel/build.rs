//! Hands the linker scripts to the link of the bare-metal image. A build for a host needs none.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_bare_metal = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none");
    if !is_bare_metal || env::var_os("CARGO_FEATURE_IMAGE").is_none() {
        return;
    }

    // Absolute, because the linker runs in the folder of the workspace or of the package, as cargo decides.
    let manifest_dir = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let script = Path::new(&manifest_dir).parent().expect("the package is a folder of the workspace").join("link.ld");
    println!("cargo::rerun-if-changed={}", script.display());
    println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    // Written by the build script of defmt into a folder that is on the linker's search path.
    println!("cargo::rustc-link-arg-bins=-Tdefmt.x");
    // Objects of kernels that are written in C: they go into the image beside those of this crate.
    println!("cargo::rerun-if-env-changed=HCOMM_KERNEL_OBJECTS");
    let objects = env::var_os("HCOMM_KERNEL_OBJECTS").unwrap_or_default();
    // An empty list has one part, which is empty.
    for object in env::split_paths(&objects).filter(|object| !object.as_os_str().is_empty()) {
        assert!(object.is_absolute(), "HCOMM_KERNEL_OBJECTS: {} is not an absolute path", object.display());
        println!("cargo::rerun-if-changed={}", object.display());
        println!("cargo::rustc-link-arg-bins={}", object.display());
    }
    // Segments on 4 KiB pages: the default of AArch64, 64 KiB, would only pad the file.
    println!("cargo::rustc-link-arg-bins=-zmax-page-size=4096");
}
