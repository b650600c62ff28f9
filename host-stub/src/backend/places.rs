//! File and line of places in programs: of this process with its libraries, and of the image.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hcomm_mapping::SharedMemory;
use hcomm_sim::event::{Places, Program, Site};

use super::modules;
use super::symbols::{Locate, Place, Symbols};
use crate::loader::Image;

/// Largest file that is read for its symbols.
const FILE_MAX: u64 = 1 << 30;

/// A file as it was when it was read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct File {
    path: PathBuf,
    len: u64,
    modified: Option<SystemTime>,
}

/// Bytes and symbols of the files that a report has named so far. They stay: the next report names the same.
static SYMBOLS: Mutex<BTreeMap<File, (&[u8], Symbols<'static>)>> = Mutex::new(BTreeMap::new());

/// Places of a device's programs.
#[derive(Clone)]
pub struct ProgramPlaces {
    /// The image that kernels are in.
    pub image: Option<Arc<Image>>,
    /// Memory in which the runner tells what it has loaded. Without image and runner kernels run in this process.
    pub runner: Option<Arc<SharedMemory>>,
}

impl Places for ProgramPlaces {
    fn text(&self, site: &Site) -> String {
        let mut last = None;
        for frame in &site.frames {
            // The address behind a call: the call itself is before it.
            let addr = frame.wrapping_sub(1);
            for found in self.places(site.program, addr) {
                if !found.is_library() && !found.moves_memory() {
                    return found.text();
                }
                last = Some(found);
            }
        }
        last.map_or_else(|| "an unknown place".to_owned(), |found| found.text())
    }
}

impl ProgramPlaces {
    /// Whether an instruction is this library's: its code, or what that was inlined into. One without a line counts as such, because
    /// nothing tells what was inlined there.
    pub fn is_library(&self, site: &Site) -> bool {
        let innermost = |frame: &u64| self.places(site.program, frame.wrapping_sub(1)).into_iter().next();
        for found in site.frames.iter().map_while(innermost) {
            // A function that moves memory works for its caller.
            if !found.moves_memory() {
                return found.place.line.is_none() || found.is_library();
            }
        }
        true
    }

    fn places(&self, program: Program, addr: u64) -> Vec<Found> {
        let module = match (program, &self.image) {
            (Program::Process, _) => module_of(addr),
            (Program::Image, Some(image)) => Some(Module { path: image.path.clone(), addr, is_own: false }),
            (Program::Image, None) => self.runner.as_ref().and_then(|memory| {
                let modules::Located { path, addr, is_own } = modules::locate(memory, addr)?;
                Some(Module { path, addr, is_own })
            }),
        };
        let Some(Module { path, addr, is_own }) = module else { return Vec::new() };
        let is_own_library = is_own && path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let places = with_symbols(&path, |symbols| symbols.places(addr));
        let places = places.unwrap_or_else(|| vec![Place::default()]);
        places.into_iter().map(|place| Found { place, addr, module: name.clone(), is_own_library }).collect()
    }
}

/// A place with the module that it is in.
struct Found {
    place: Place,
    /// In the module's own addresses.
    addr: u64,
    module: String,
    /// The module is this library and nothing else.
    is_own_library: bool,
}

/// Crates whose functions are not the caller's, and Rust's own.
const CRATES: [&str; 9] =
    ["hcomm_aicpu", "hcomm_sim", "host_stub", "hcomm_capi", "hcomm_mapping", "core", "std", "alloc", "hcomm_hal"];
/// What the names of the exported functions in C begin with.
const EXPORTED: [&str; 5] = ["Hcomm", "Hccl", "aclrt", "acl", "hcomm_"];

impl Found {
    fn is_library(&self) -> bool {
        let name = self.place.function.as_str();
        // `a::b`, or `<a::B as c::D>::e`, which is the caller's if one of the two is.
        let mut paths = name.trim_start_matches(['<', '&']).split(" as ");
        let starts_with = |path: &str, part: &str| path.strip_prefix(part).is_some_and(|rest| rest.starts_with("::"));
        let is_crate = |path: &str| CRATES.iter().any(|part| starts_with(path, part)) || !path.contains("::");
        let is_of_crates = name.contains("::") && paths.all(is_crate);
        let is_rust = self.place.line.as_ref().is_none_or(|(file, _)| file.ends_with(".rs"));
        let is_exported = is_rust && EXPORTED.iter().any(|prefix| name.starts_with(prefix)) && !name.contains("::");
        let is_in_crates = self.place.crate_name.as_ref().is_some_and(|name| CRATES.contains(&name.as_str()));
        self.is_own_library || is_in_crates || is_of_crates || is_exported || self.place.is_library()
    }

    /// Whether it is one of the functions that compilers call for copies.
    fn moves_memory(&self) -> bool {
        let name = self.place.function.rsplit("::").next().unwrap_or_default();
        ["memcpy", "memmove", "memset", "memcmp"].contains(&name)
            || self.place.crate_name.as_deref() == Some("compiler_builtins")
            || self.place.function.starts_with("compiler_builtins::")
    }

    fn text(&self) -> String {
        let Self { place: Place { function, line, symbol, .. }, addr, module, .. } = self;
        match (line, function.is_empty()) {
            (Some((file, line)), false) => format!("{file}:{line} ({function})"),
            (Some((file, line)), true) => format!("{file}:{line}"),
            (None, false) => {
                format!("{function}+{:#x} in {module} (build it with -g to see the line)", addr + 1 - symbol)
            }
            (None, true) => format!("{:#x} in {module} (build it with -g to see the line)", addr + 1),
        }
    }
}

/// A file that is mapped into this process.
struct Module {
    path: PathBuf,
    /// The address as the file has it.
    addr: u64,
    /// It contains this function.
    is_own: bool,
}

fn module_of(addr: u64) -> Option<Module> {
    let info = module_info(addr)?;
    let own = module_info(module_of as fn(u64) -> Option<Module> as *const c_void as u64)?;
    let is_own = info.dli_fbase == own.dli_fbase;
    // SAFETY: the loader's name of the module, which stays as long as that is loaded: the address is of it.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let name = Path::new(OsStr::from_bytes(name.to_bytes()));
    let base = info.dli_fbase.addr() as u64;
    let path = match is_program(base) {
        true => std::env::current_exe().ok()?,
        false => name.to_owned(),
    };
    // A program that is not position independent has its addresses in the file.
    let start = with_symbols(&path, |symbols| symbols.start())?;
    Some(Module { path, addr: addr - base + start, is_own })
}

/// Whether the module at `base` is the program itself.
fn is_program(base: u64) -> bool {
    // SAFETY: it only reads the auxiliary vector.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    module_info(headers).is_some_and(|info| info.dli_fbase.addr() as u64 == base)
}

fn module_info(addr: u64) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let addr = std::ptr::without_provenance::<c_void>(addr as usize);
    // SAFETY: any address may be asked for; the structure is filled in if the result is not 0.
    let found = unsafe { libc::dladdr(addr, info.as_mut_ptr()) } != 0;
    // SAFETY: filled in just now.
    found.then(|| unsafe { info.assume_init() }).filter(|info| !info.dli_fname.is_null())
}

/// Asks the symbols of a file; `None` if it can't be read.
fn with_symbols<R>(path: &Path, ask: impl FnOnce(&Symbols<'static>) -> R) -> Option<R> {
    let data = std::fs::metadata(path).ok().filter(|data| data.is_file() && data.len() <= FILE_MAX)?;
    let file = File { path: path.to_owned(), len: data.len(), modified: data.modified().ok() };
    let mut symbols = SYMBOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if !symbols.contains_key(&file) {
        let bytes: &'static [u8] = Box::leak(std::fs::read(path).ok()?.into_boxed_slice());
        symbols.insert(file.clone(), (bytes, Symbols::new(bytes)));
    }
    symbols.get(&file).map(|(_, symbols)| ask(symbols))
}

#[cfg(test)]
mod tests {
    use super::super::callers::return_addresses;
    use super::*;

    #[inline(never)]
    fn here() -> Vec<u64> {
        let mut frames = [0; 12];
        return_addresses(&mut frames);
        frames.to_vec()
    }

    #[test]
    fn place_of_a_return_address_is_the_line_of_its_call() {
        let line = line!() + 1;
        let frames = here();
        let places = ProgramPlaces { image: None, runner: None };
        // The first ones lie in `return_addresses` and in `here`; how many there are depends on inlining.
        let found = frames.iter().take(4).flat_map(|addr| places.places(Program::Process, addr.saturating_sub(1)));
        let expected = Some(("host-stub/src/backend/places.rs".to_owned(), line));
        let found: Vec<_> = found.filter(|found| found.place.line == expected).collect();
        let [found] = &found[..] else { panic!("{} places at line {line}", found.len()) };
        assert!(found.is_library());
        assert!(found.text().starts_with(&format!("host-stub/src/backend/places.rs:{line} (host_stub::")));
    }

    #[test]
    fn function_and_offset_are_named_where_there_is_no_line() {
        let place = Place { function: "copy_all".to_owned(), line: None, symbol: 0x100, crate_name: None };
        let found = Found { place, addr: 0x11f, module: "libk.so".to_owned(), is_own_library: false };
        assert_eq!(found.text(), "copy_all+0x20 in libk.so (build it with -g to see the line)");
        assert!(!found.is_library());
    }

    #[test]
    fn functions_of_the_library_are_told_from_those_of_programs() {
        let is_library = |function: &str, file: &str| {
            let line = (!file.is_empty()).then(|| (file.to_owned(), 1));
            let place = Place { function: function.to_owned(), line, symbol: 0, crate_name: None };
            Found { place, addr: 0, module: String::new(), is_own_library: false }.is_library()
        };
        for (function, file) in [
            ("hcomm_aicpu::sq::submit_slow", "src/sq/mod.rs"),
            ("<host_stub::buffer::DeviceBuffer as core::ops::drop::Drop>::drop", "host-stub/src/buffer.rs"),
            ("<F as hcomm_aicpu::context::OnCore>::run", "src/context.rs"),
            ("HcommLocalCopyOnThread", "src/abi.rs"),
            ("aclrtMalloc", ""),
            ("core::ops::function::FnOnce::call_once", "/rustc/1/library/core/src/ops/function.rs"),
        ] {
            assert!(is_library(function, file), "{function}");
        }
        for (function, file) in [
            ("HcclAllGatherMine", "all_gather.c"),
            ("hcomm_kernel::call_list::run", "kernel/src/call_list.rs"),
            ("coreutils::copy", "src/lib.rs"),
            ("<mine::Buffer as core::ops::drop::Drop>::drop", "src/lib.rs"),
            ("all_gather", ""),
        ] {
            assert!(!is_library(function, file), "{function}");
        }
    }
}
