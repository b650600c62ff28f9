//! Libraries that the runner has loaded, and function and line of an address in one of them.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::runner::{MODULES_PHYS, MODULES_SIZE, ModuleTable};
use hcomm_mapping::SharedMemory;
use hcomm_sim::memory::Memory;

use super::symbols::{Locate, Place, Symbols};
use crate::file;

/// The library that kernels' calls go to, beside the runner.
pub const DEVICE_LIBRARY: &str = "libccl_kernel.so";
/// Largest library that is read for its symbols, in bytes.
const FILE_MAX: u64 = 200 << 20;

/// A part of a library that holds code.
#[derive(Debug, PartialEq, Eq)]
struct Module {
    base: u64,
    code: Range<u64>,
    path: PathBuf,
    /// Not a kernel's: of the C or C++ runtime, or of the runner.
    is_system: bool,
}

/// What the table in `memory` lists. `is_system` tells libraries of kernels from others.
fn read(memory: &SharedMemory, is_system: impl Fn(&Path) -> bool) -> Vec<Module> {
    // Acquire pairs with the runner's release store: the text is there.
    let len = memory.word64(MODULES_PHYS).load(Ordering::Acquire);
    let head = size_of::<ModuleTable>() as u64;
    let mut text = vec![0; len.min(MODULES_SIZE - head) as usize];
    memory.read_low(MODULES_PHYS + head, &mut text);
    String::from_utf8_lossy(&text).lines().filter_map(|line| parse(line, &is_system)).collect()
}

/// Where an address of the runner is.
pub struct Located {
    /// Library, or the runner's program.
    pub path: PathBuf,
    /// The address as the file has it.
    pub addr: u64,
    /// The file is a part of the runner.
    pub is_own: bool,
}

/// Whether a file is the runner's program, or the library that kernels' calls go to.
pub fn is_runner(path: &Path) -> bool {
    path.file_name().is_some_and(|name| ["hcomm-runner", DEVICE_LIBRARY].iter().any(|own| name == *own))
}

/// The library that has code at `addr`.
pub fn locate(memory: &SharedMemory, addr: u64) -> Option<Located> {
    let Module { base, path, is_system, .. } =
        read(memory, is_runner).into_iter().find(|module| module.code.contains(&addr))?;
    Some(Located { path, addr: addr - base, is_own: is_system })
}

/// What the runner has loaded, with the bytes of all files.
pub struct Modules {
    modules: Vec<(Module, Vec<u8>)>,
}

impl Modules {
    /// What the table in `memory` lists. `is_system` tells libraries of kernels from others.
    pub fn read(memory: &SharedMemory, is_system: impl Fn(&Path) -> bool) -> Self {
        // A library that can't be read any more has numbers only.
        let with_bytes = |module: Module| {
            let bytes = file::read(&module.path, FILE_MAX).unwrap_or_default();
            (module, bytes)
        };
        Self { modules: read(memory, is_system).into_iter().map(with_bytes).collect() }
    }

    /// The symbols of all.
    pub fn symbols(&self) -> ModuleSymbols<'_> {
        ModuleSymbols { modules: self.modules.iter().map(|(module, bytes)| (module, Symbols::new(bytes))).collect() }
    }
}

/// One line of the table.
fn parse(line: &str, is_system: impl Fn(&Path) -> bool) -> Option<Module> {
    let mut parts = line.splitn(4, ' ');
    let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
    let (base, start, end) = (number()?, number()?, number()?);
    let path = PathBuf::from(parts.next()?);
    Some(Module { base, code: start..end, is_system: is_system(&path), path })
}

/// Symbols of all libraries of the runner.
pub struct ModuleSymbols<'m> {
    modules: Vec<(&'m Module, Symbols<'m>)>,
}

impl<'m> ModuleSymbols<'m> {
    fn find(&self, addr: u64) -> Option<&(&'m Module, Symbols<'m>)> {
        self.modules.iter().find(|(module, _)| module.code.contains(&addr))
    }

    /// Whether the code at `addr` is a kernel's.
    pub fn is_kernel(&self, addr: u64) -> bool {
        self.find(addr).is_some_and(|(module, _)| !module.is_system)
    }
}

impl Locate for ModuleSymbols<'_> {
    fn places(&self, addr: u64) -> Vec<Place> {
        let Some((module, symbols)) = self.find(addr) else { return vec![Place::default()] };
        let mut places = symbols.places(addr - module.base);
        for place in &mut places {
            if place.symbol != 0 {
                place.symbol += module.base;
            }
            if place.function.is_empty() {
                place.function = format!("{} + {:#x}", module.path.display(), addr - module.base);
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_table_are_read_and_others_are_not() {
        let is_system = |path: &Path| path.starts_with("/lib");
        let module = |base, code, path: &str, is_system| Some(Module { base, code, path: path.into(), is_system });
        assert_eq!(parse("1000 1200 1300 /a b/k.so", is_system), module(0x1000, 0x1200..0x1300, "/a b/k.so", false));
        assert_eq!(parse("0 10 20 /lib/libc.so.6", is_system), module(0, 0x10..0x20, "/lib/libc.so.6", true));
        for line in ["", "1 2 3", "x 1 2 /k.so", "1 2 /k.so"] {
            assert_eq!(parse(line, is_system), None, "{line}");
        }
    }
}
