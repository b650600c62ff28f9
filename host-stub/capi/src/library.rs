//! Shared libraries of native kernels: checks before and after the dynamic linker loads one, and binding of its names.
//!
//! A kernel leaves every `Hcomm*` undefined, and they must be bound to those of this library, no matter how the program
//! has loaded it. Every other name must be bound to what the kernel was linked with, above all to its own functions.

use std::error::Error as _;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use object::elf::{
    DF_SYMBOLIC, DT_FLAGS, DT_SYMBOLIC, EM_AARCH64, EM_X86_64, ET_DYN, STB_GLOBAL, STT_FUNC, STT_OBJECT, STV_DEFAULT,
};
use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _};
use object::{LittleEndian, Object as _, ObjectSymbol as _, ReadCache};

use super::hcomm_primitives::exports;
use host_stub::loader;

/// `dlopen`: finds what is loaded, and loads nothing.
const RTLD_NOLOAD: c_int = 4;
/// `dlopen` of glibc: a name is looked for in the library itself, and what it is linked with, before the program.
const RTLD_DEEPBIND: c_int = 8;

/// Machine of this process, as ELF files have it.
pub const OWN_MACHINE: u16 = if cfg!(target_arch = "aarch64") { EM_AARCH64.0 } else { EM_X86_64.0 };

/// Runtimes that end the process when it loads a library with [`RTLD_DEEPBIND`].
const SANITIZERS: [&CStr; 4] = [c"__asan_init", c"__tsan_init", c"__msan_init", c"__hwasan_init"];

/// How to bind the names of a kernel's library when it is linked.
const BIND_BY_HAND: &str = "link the kernel's library with -Wl,-Bsymbolic";

/// Result of `dladdr`.
#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    addr: *mut c_void,
}

unsafe extern "C" {
    /// Of the C library: finds the file that `addr` was loaded from; 0 if there is none.
    fn dladdr(addr: *const c_void, info: *mut DlInfo) -> c_int;
}

/// Loads the library of a kernel. `path` is that of a regular file, and absolute, so that the dynamic linker does not
/// use its search path.
///
/// # Errors
/// Why not.
pub fn load(path: &Path) -> Result<Library, String> {
    let names = Names::read(path)?;
    publish_exports()?;
    let own_first = names.own_first(path)?;
    let flags = RTLD_NOW | RTLD_LOCAL | if own_first { RTLD_DEEPBIND } else { 0 };
    // SAFETY: constructors of the library run; the program that names the library accepts that.
    let library = unsafe { Library::open(Some(path), flags) };
    let library = library.map_err(|error| {
        // The linker's message is the source of the error.
        let source = error.source().map(ToString::to_string).unwrap_or_else(|| error.to_string());
        names.explain(&source)
    })?;
    check_bound(&library, path, own_first)?;
    if own_first {
        names.check_shared_objects(&library, path)?;
    }
    Ok(library)
}

/// Address of a name in a library and what it is linked with, or, for [`Library::this`], in the program and all that it exports.
fn find(library: &Library, name: &CStr) -> Option<*const c_void> {
    // SAFETY: only the address is taken.
    let found = unsafe { library.get::<*const c_void>(name) };
    found.ok().map(|symbol| symbol.into_raw().cast_const())
}

/// File that an address was loaded from.
fn file_of(addr: *const c_void) -> PathBuf {
    let mut info = DlInfo {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        name: std::ptr::null(),
        addr: std::ptr::null_mut(),
    };
    // SAFETY: `info` can be written; the address is only compared.
    let found = unsafe { dladdr(addr, &raw mut info) };
    if found == 0 || info.file.is_null() {
        return PathBuf::from("the program");
    }
    // SAFETY: the name of a file that stays loaded: this one, or one that was found a moment ago.
    let file = unsafe { CStr::from_ptr(info.file) };
    OsStr::from_bytes(file.to_bytes()).into()
}

/// Makes the `Hcomm*` of this library visible to those that are loaded later: a program that has loaded it with `RTLD_LOCAL`,
/// as `ctypes` of Python does, hides them. It also keeps all of them in a program that links the static library.
///
/// # Errors
/// Another library of the process has one of the names.
fn publish_exports() -> Result<(), String> {
    let process = Library::this();
    let mut is_hidden = false;
    for (name, ours) in exports() {
        match find(&process, name) {
            None => is_hidden = true,
            Some(found) if found == ours => {}
            Some(other) => {
                let (name, other) = (name.to_string_lossy(), file_of(other));
                return Err(format!("{name} is defined by another library of the process too: {}", other.display()));
            }
        }
    }
    if is_hidden && let Some((_, ours)) = exports().first() {
        // SAFETY: nothing is loaded and no constructor runs: the file is this library, or a program, which is not found so.
        let this = unsafe { Library::open(Some(file_of(*ours)), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) };
        // If it is still hidden, the dynamic linker reports it when a kernel needs it, and `explain` adds the reason.
        if let Ok(this) = this {
            // One count of it stays, so that it is not unmapped.
            let _ = this.into_raw();
        }
    }
    Ok(())
}

/// Checks that the `Hcomm*` of a kernel that was loaded are those of this library.
///
/// # Errors
/// They are of another library.
fn check_bound(library: &Library, path: &Path, own_first: bool) -> Result<(), String> {
    let process = Library::this();
    let order = if own_first { [library, &process] } else { [&process, library] };
    for (name, ours) in exports() {
        let bound = order.iter().find_map(|place| find(place, name));
        let Some(other) = bound.filter(|bound| *bound != ours) else { continue };
        let (name, other) = (name.to_string_lossy(), file_of(other));
        if other == path {
            return Err(format!("it defines {name} itself: link it without libhcomm_aicpu.a"));
        }
        let (ours, other) = (file_of(ours), other.display());
        let ours = ours.display();
        return Err(format!(
            "two copies of the library are loaded: the program uses the one in {ours}, and the kernel is bound to {name} of \
             {other}: link the kernel without libhcomm_sim, and a program with libhcomm_sim.a with -rdynamic"
        ));
    }
    Ok(())
}

/// Checks the first bytes of a file.
///
/// # Errors
/// It is not a shared library for this machine.
fn check_head(head: &[u8]) -> Result<(), String> {
    const CLASS_64: u8 = 2;
    const LITTLE_ENDIAN: u8 = 1;
    let half = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let (Some(kind), Some(machine), true) = (half(16), half(18), head.starts_with(b"\x7fELF")) else {
        return Err("it is not an ELF file".to_owned());
    };
    if head[4] != CLASS_64 || head[5] != LITTLE_ENDIAN || machine != OWN_MACHINE {
        if machine == EM_AARCH64.0 && head[4] == CLASS_64 {
            return Err("made for AArch64: use --cpu linux (HCOMM_SIM_CPU=linux), or make an image of it (`make image`, HCOMM_SIM_CPU=qemu)".to_owned());
        }
        let bits = if head[4] == CLASS_64 { "64" } else { "32" };
        let (machine, this) = (loader::machine(machine), loader::machine(OWN_MACHINE));
        return Err(format!(
            "it is for machine {machine} with {bits} bits, and this process runs on {this} with 64 bits: compile it for \
             {this}, or make an image of it (`make image`, HCOMM_SIM_CPU=qemu)"
        ));
    }
    if kind != ET_DYN.0 {
        return Err("it is an ELF file, but not a shared library: link it with -shared".to_owned());
    }
    Ok(())
}

/// Dynamic symbols of a library.
struct Names {
    /// Functions and objects that it defines and that other libraries may override.
    own: Vec<CString>,
    /// Names that it needs from others.
    needed: Vec<CString>,
    /// Objects (no functions) among [`Self::needed`].
    needed_objects: Vec<CString>,
    /// It was linked with `-Bsymbolic`: its own names can't be overridden.
    is_symbolic: bool,
}

impl Names {
    /// # Errors
    /// The file can't be read, or is no shared library for this machine.
    fn read(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let cache = ReadCache::new(file);
        let broken = |error: object::Error| format!("it is a damaged ELF file: {error}");
        let len = object::ReadRef::len(&cache).map_err(|()| "it can't be read".to_owned())?;
        let head =
            object::ReadRef::read_bytes_at(&cache, 0, len.min(20)).map_err(|()| "it can't be read".to_owned())?;
        check_head(head)?;
        let elf = ElfFile64::<LittleEndian, _>::parse(&cache).map_err(broken)?;
        let mut names = Self { own: Vec::new(), needed: Vec::new(), needed_objects: Vec::new(), is_symbolic: false };
        for symbol in elf.dynamic_symbols() {
            let raw = symbol.elf_symbol();
            let name = symbol.name_bytes().map_err(broken)?;
            let Ok(name) = CString::new(name) else { continue };
            match (symbol.is_undefined(), raw.st_bind()) {
                (true, STB_GLOBAL) => {
                    if raw.st_type() == STT_OBJECT {
                        names.needed_objects.push(name.clone());
                    }
                    names.needed.push(name);
                }
                // A weak definition is code that several files contain, such as that of a template, and is meant to be
                // shared; a protected one is bound already. Two names are the linker's.
                (false, STB_GLOBAL) if raw.st_visibility() == STV_DEFAULT => {
                    let is_linkers = matches!(name.to_bytes(), b"_init" | b"_fini");
                    if matches!(raw.st_type(), STT_FUNC | STT_OBJECT) && !is_linkers {
                        names.own.push(name);
                    }
                }
                _ => {}
            }
        }
        for segment in elf.elf_program_headers() {
            let Some(entries) = segment.dynamic(LittleEndian, &cache).map_err(broken)? else { continue };
            names.is_symbolic |= entries.iter().any(|entry| match entry.tag(LittleEndian) {
                DT_SYMBOLIC => true,
                DT_FLAGS => entry.val(LittleEndian) & DF_SYMBOLIC.0 != 0,
                _ => false,
            });
        }
        Ok(names)
    }

    /// Whether names have to be looked for in the library first, because the program has functions or objects of the same name
    /// as the library's own, and the dynamic linker would take those.
    ///
    /// # Errors
    /// They have to, and can't be.
    fn own_first(&self, path: &Path) -> Result<bool, String> {
        if self.is_symbolic {
            return Ok(false);
        }
        let Some((name, other)) = self.taken(path) else { return Ok(false) };
        let process = Library::this();
        if cfg!(target_env = "gnu") && SANITIZERS.iter().all(|name| find(&process, name).is_none()) {
            return Ok(true);
        }
        Err(self.not_apart(name, &other, "the dynamic linker, or the sanitizer of the program, can't keep them apart"))
    }

    /// The first of its own names that the process has too, and the file that the other one is in.
    fn taken(&self, path: &Path) -> Option<(&CStr, PathBuf)> {
        let process = Library::this();
        let taken = |name: &&CString| {
            let is_export = exports().iter().any(|(export, _)| *export == name.as_c_str());
            let file = file_of(find(&process, name).filter(|_| !is_export)?);
            // A library that the program is linked with, or has loaded with `RTLD_GLOBAL`, is the same library.
            let is_itself = file.canonicalize().is_ok_and(|real| real == path);
            (!is_itself).then_some(file)
        };
        self.own.iter().find_map(|name| Some((name.as_c_str(), taken(&name)?)))
    }

    fn not_apart(&self, name: &CStr, other: &Path, why: &str) -> String {
        let (name, other) = (name.to_string_lossy(), other.display());
        format!("its {name} is also defined by {other}, and {why}: {BIND_BY_HAND}")
    }

    /// Checks that a library whose names were looked for in itself first has no object twice that the program has, too:
    /// for example `std::cout`, of which a program in C++ has its own copy, and the original is never initialised.
    ///
    /// # Errors
    /// It has.
    fn check_shared_objects(&self, library: &Library, path: &Path) -> Result<(), String> {
        let process = Library::this();
        for name in &self.needed_objects {
            let (Some(in_process), Some(in_library)) = (find(&process, name), find(library, name)) else { continue };
            if in_process != in_library {
                let object = name.to_string_lossy();
                let why = format!("the two can't be kept apart, because both use the object {object}");
                let (own, other) = self.taken(path).unwrap_or((name, file_of(in_process)));
                return Err(self.not_apart(own, &other, &why));
            }
        }
        Ok(())
    }

    /// The dynamic linker's message, with the reason.
    fn explain(&self, error: &str) -> String {
        let process = Library::this();
        // The message depends on the language of the program; the name of the symbol does not.
        let words: Vec<&str> = error.split(|c: char| !(c.is_ascii_alphanumeric() || "_.$@".contains(c))).collect();
        let is_missing =
            |name: &&CString| name.to_str().is_ok_and(|text| words.contains(&text)) && find(&process, name).is_none();
        let Some(missing) = self.needed.iter().find(is_missing) else { return error.to_owned() };
        let name = missing.to_string_lossy();
        let is_export = exports().iter().any(|(export, _)| **export == **missing);
        let why = if is_export {
            "the program does not export it: one that links libhcomm_sim.a needs -rdynamic".to_owned()
        } else if ["Hcomm", "Hccl", "aclrt"].iter().any(|prefix| name.starts_with(prefix)) {
            format!("kernels have no function {name} here: docs/c-api.md lists those that they have")
        } else if name.starts_with("hcomm_port_") {
            "it has entry points of its own, which ask for a platform: link it without libhcomm_aicpu.a".to_owned()
        } else {
            format!("nothing that is loaded defines {name}: link the kernel's library with what does")
        };
        format!("{error} ({why})")
    }
}
