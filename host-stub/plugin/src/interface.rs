//! QEMU's plugin interface, version 1 (QEMU 4.2 to 8.2), declared by hand: only what this plugin uses.
//!
//! Source: the documentation of the interface, "QEMU TCG Plugins", section API.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Version of the interface that these declarations have.
pub const VERSION: c_int = 1;

/// Id of a plugin.
pub type PluginId = u64;
/// Kind, size and byte order of an access.
pub type MemInfo = u32;

/// What QEMU tells about itself.
#[repr(C)]
pub struct Info {
    /// Name of the emulated architecture.
    pub target_name: *const c_char,
    /// Oldest version of the interface that it has.
    pub min_version: c_int,
    /// The newest one.
    pub version: c_int,
    /// It emulates a machine, not one process.
    pub is_system: bool,
    /// Processors of the machine.
    pub smp_vcpus: c_int,
    /// Most processors of the machine.
    pub max_vcpus: c_int,
}

/// A block of code that is being translated.
#[repr(C)]
pub struct Block {
    _opaque: [u8; 0],
}

/// An instruction of such a block.
#[repr(C)]
pub struct Instruction {
    _opaque: [u8; 0],
}

/// Called with each block that is translated.
pub type OnBlock = extern "C" fn(PluginId, *mut Block);
/// Called when an instruction is executed: by which processor, and with what was registered.
pub type OnInstruction = extern "C" fn(c_uint, *mut c_void);
/// Called after an access: by which processor, what it was, its address, and what was registered.
pub type OnAccess = extern "C" fn(c_uint, MemInfo, u64, *mut c_void);

/// The callback reads no register of the emulated processor.
pub const NO_REGISTERS: c_int = 0;
/// Loads and stores.
pub const LOADS_AND_STORES: c_int = 3;

unsafe extern "C" {
    /// Registers a callback for each block that is translated.
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: PluginId, on_block: OnBlock);
    /// Instructions of a block.
    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    /// Instruction `index` of a block; valid as long as the block is.
    pub fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    /// Its bytes.
    pub fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const c_void;
    /// Number of its bytes.
    pub fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    /// Its virtual address.
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    /// Registers a callback for its accesses.
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        on_access: OnAccess,
        flags: c_int,
        kinds: c_int,
        data: *mut c_void,
    );
    /// Registers a callback for its execution.
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        on_instruction: OnInstruction,
        flags: c_int,
        data: *mut c_void,
    );
    /// Binary logarithm of the bytes of an access.
    pub fn qemu_plugin_mem_size_shift(info: MemInfo) -> c_uint;
    /// Whether it is a store.
    pub fn qemu_plugin_mem_is_store(info: MemInfo) -> bool;
}
