//! What QEMU calls: when it loads the plugin, translates code, and executes calls, loads and stores.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hcomm_aicpu::spec::mailbox::{HostMailbox, MAILBOX_STRIDE, MAX_CORES};
use hcomm_aicpu::spec::map::{HOST_MAILBOX_PHYS, LOW_SIZE, OWN_ACCESS_PHYS, RAM_PHYS, RECORD_PHYS};
use hcomm_aicpu::spec::own_access::{OWN_ACCESS_STRIDE, OWN_ACCESS_VERSION, OwnAccessRing};
use hcomm_aicpu::spec::record::{RECORD_STRIDE, RecordRing};

use crate::instruction::{Look, look};
use crate::interface::{
    Block, Info, LOADS_AND_STORES, MemInfo, NO_REGISTERS, PluginId, VERSION, qemu_plugin_insn_data,
    qemu_plugin_insn_size, qemu_plugin_insn_vaddr, qemu_plugin_mem_is_store, qemu_plugin_mem_size_shift,
    qemu_plugin_register_vcpu_insn_exec_cb, qemu_plugin_register_vcpu_mem_cb, qemu_plugin_register_vcpu_tb_trans_cb,
    qemu_plugin_tb_get_insn, qemu_plugin_tb_n_insns,
};
use crate::options::Options;
use crate::ring::{WORDS, Writer};

/// Version of the interface that this was made for: QEMU refuses a plugin whose version it does not have.
// SAFETY: no other symbol of a plugin has this name, which QEMU looks for in each of them.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that QEMU looks for")]
pub static qemu_plugin_version: c_int = VERSION;

/// State of a processor, which only the thread that emulates it uses.
struct Own(UnsafeCell<Writer<'static>>);

// SAFETY: a writer is used in the callbacks of its processor alone, and QEMU runs those of one processor one after the other.
unsafe impl Sync for Own {}

struct Plugin {
    hbm: Range<u64>,
    processors: [Own; MAX_CORES],
    blocks: &'static AtomicU64,
    has_unseen: &'static AtomicU64,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

/// The low part of the device's memory, mapped until the process ends.
struct Low(*mut u8);

impl Low {
    fn map(file: c_int) -> Result<Self, String> {
        // SAFETY: a new mapping at an address of the system's choice, of a file that the host made as long as this.
        let ptr = unsafe {
            libc::mmap(
                ptr::null_mut(),
                LOW_SIZE as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        };
        match ptr {
            libc::MAP_FAILED => Err(format!("mmap of file {file}: {}", std::io::Error::last_os_error())),
            ptr => Ok(Self(ptr.cast())),
        }
    }

    fn word(&self, phys: u64) -> &'static AtomicU64 {
        assert!(phys.is_multiple_of(8) && phys - RAM_PHYS <= LOW_SIZE - 8, "{phys:#x} is not in the low part");
        // SAFETY: inside the mapping and aligned, as checked; the mapping stays. Atomics may be shared.
        unsafe { AtomicU64::from_ptr(self.0.add((phys - RAM_PHYS) as usize).cast()) }
    }

    fn ring(&self, core: usize) -> &'static [AtomicU64; WORDS] {
        let first: *const AtomicU64 = self.word(OWN_ACCESS_PHYS + core as u64 * OWN_ACCESS_STRIDE);
        // SAFETY: all rings are inside the low part (asserted below), whose mapping stays. Atomics may be shared.
        unsafe { &*first.cast() }
    }
}
const _: () = assert!(OWN_ACCESS_PHYS + MAX_CORES as u64 * OWN_ACCESS_STRIDE <= RAM_PHYS + LOW_SIZE);

/// Called by QEMU when it loads the plugin. A result that is not 0 ends QEMU.
///
/// # Safety
/// `info` points to what QEMU tells, and `argv` to `argc` texts.
// SAFETY: no other symbol of a plugin has this name, which QEMU looks for in each of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let arguments: Vec<String> = (0..argc as usize)
        .map(|index| {
            // SAFETY: the caller's: `argv` has `argc` texts.
            let text = unsafe { CStr::from_ptr(*argv.add(index)) };
            text.to_string_lossy().into_owned()
        })
        .collect();
    // SAFETY: the caller's.
    let info = unsafe { &*info };
    match install(id, info, &arguments) {
        Ok(()) => 0,
        Err(text) => {
            eprintln!("hcomm core plugin: {text}");
            1
        }
    }
}

fn install(id: PluginId, info: &Info, arguments: &[String]) -> Result<(), String> {
    // SAFETY: QEMU's own text.
    let target = unsafe { CStr::from_ptr(info.target_name) };
    if target != c"aarch64" {
        return Err(format!("for aarch64 alone, and this emulates {}", target.to_string_lossy()));
    }
    let Options { memory, hbm } = Options::read(arguments.iter().map(String::as_str))?;
    let low = Low::map(memory)?;
    let processors = std::array::from_fn(|core| {
        let records = RECORD_PHYS + core as u64 * RECORD_STRIDE + offset_of!(RecordRing, head) as u64;
        let launches = HOST_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE + offset_of!(HostMailbox, seq) as u64;
        Own(UnsafeCell::new(Writer::new(low.ring(core), low.word(records), low.word(launches))))
    });
    let header = |offset: usize| low.word(OWN_ACCESS_PHYS + offset as u64);
    let (blocks, has_unseen) =
        (header(offset_of!(OwnAccessRing, blocks)), header(offset_of!(OwnAccessRing, has_unseen)));
    let plugin = Plugin { hbm, processors, blocks, has_unseen };
    PLUGIN.set(plugin).map_err(|_| "it is loaded twice".to_owned())?;
    // SAFETY: `id` is what QEMU has given, and the callback stays as long as the library, which QEMU does not unload.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, on_block) };
    header(offset_of!(OwnAccessRing, version)).store(OWN_ACCESS_VERSION.into(), Ordering::Release);
    Ok(())
}

/// A block is translated: registers what has to be seen of it.
extern "C" fn on_block(_id: PluginId, block: *mut Block) {
    let Some(plugin) = PLUGIN.get() else { return };
    plugin.blocks.fetch_add(1, Ordering::Relaxed);
    // SAFETY: QEMU's block, valid during this call.
    let count = unsafe { qemu_plugin_tb_n_insns(block) };
    for index in 0..count {
        // SAFETY: the index is below the number of instructions; the instruction is valid as long as the block, and its bytes are.
        let (instruction, word, addr) = unsafe {
            let instruction = qemu_plugin_tb_get_insn(block, index);
            if qemu_plugin_insn_size(instruction) != 4 {
                continue;
            }
            let word = qemu_plugin_insn_data(instruction).cast::<u32>().read_unaligned();
            (instruction, word, qemu_plugin_insn_vaddr(instruction))
        };
        let data = ptr::without_provenance_mut(addr as usize);
        match look(word) {
            Look::None => {}
            // SAFETY: a valid instruction; the callback stays.
            Look::Access => unsafe {
                qemu_plugin_register_vcpu_mem_cb(instruction, on_access, NO_REGISTERS, LOADS_AND_STORES, data);
            },
            // SAFETY: as above.
            Look::Call => unsafe {
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_call, NO_REGISTERS, data);
            },
            Look::Unseen => plugin.has_unseen.store(1, Ordering::Relaxed),
        }
    }
}

impl Plugin {
    /// Calls `write` with the writer of a processor, if that runs kernels.
    fn with_writer(&self, processor: c_uint, write: impl FnOnce(&mut Writer<'static>)) {
        if let Some(own) = self.processors.get(processor as usize) {
            // SAFETY: called in the callbacks of this processor alone, which QEMU runs one after the other; the reference ends here.
            write(unsafe { &mut *own.0.get() });
        }
    }
}

/// A processor executes a call.
extern "C" fn on_call(processor: c_uint, pc: *mut c_void) {
    if let Some(plugin) = PLUGIN.get() {
        plugin.with_writer(processor, |writer| writer.call(pc.addr() as u64));
    }
}

/// A processor has made an access.
extern "C" fn on_access(processor: c_uint, info: MemInfo, addr: u64, pc: *mut c_void) {
    let Some(plugin) = PLUGIN.get().filter(|plugin| plugin.hbm.contains(&addr)) else { return };
    // SAFETY: `info` is what QEMU has given to this call.
    let (len, is_store) = unsafe { (1 << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info)) };
    plugin.with_writer(processor, |writer| writer.access(addr, len, pc.addr() as u64, is_store));
}
