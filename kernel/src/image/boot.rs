//! Start code: from the reset state of the core to the launch loop.

use core::arch::global_asm;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::{CHANNEL_ALIGN, CHANNEL_SIZE, MAX_CHANNELS};
use hcomm_aicpu::spec::comm::{COMM_ENTRY_SIZE, MAX_COMMS};
use hcomm_aicpu::spec::mailbox::{BOOT_MAGIC, BootBlock, MAILBOX_VERSION};
use hcomm_aicpu::spec::map::{BOOT_BLOCK_PHYS, HBM_HOLE, HBM_MAX, RECORD_PHYS};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::{DESCRIPTOR_SIZE, MAX_THREADS};

use super::{cpu, fault, layout, mailbox, mmu, port, wake};

// Comes in at EL1, or at EL2 if the machine has it, with the MMU off and every register but the PC unknown. Leaves at EL1
// with interrupts masked, SP_EL0 as the stack, SP_EL1 as the stack of exceptions, FP/SIMD on and .bss zero. All stores are
// aligned: without the MMU, memory is of device type.
global_asm!(
    r#"
    .section .text.boot, "ax", %progbits
    .global _start
    .type _start, %function
_start:
    msr daifset, #0xf
    mrs x0, CurrentEL
    cmp x0, #(2 << 2)
    b.ne 1f

    // EL2: EL1 is AArch64, nothing traps, and EL1 may read the counters.
    mov x0, #(1 << 31)
    msr hcr_el2, x0
    mov x0, #0x33ff
    msr cptr_el2, x0
    mov x0, #3
    msr cnthctl_el2, x0
    msr cntvoff_el2, xzr
    mrs x0, midr_el1
    msr vpidr_el2, x0
    mrs x0, mpidr_el1
    msr vmpidr_el2, x0
    // EL1 with its own stack pointer, everything masked.
    mov x0, #0x3c5
    msr spsr_el2, x0
    adr x0, 1f
    msr elr_el2, x0
    // Where the other exception level starts must be known before it is entered.
    ldr x0, ={SCTLR_OFF}
    msr sctlr_el1, x0
    eret

1:  ldr x0, ={SCTLR_OFF}
    msr sctlr_el1, x0
    isb
    mrs x0, mpidr_el1
    and x0, x0, #0xff
    cbnz x0, 9f

    adrp x0, exception_vectors
    add x0, x0, :lo12:exception_vectors
    msr vbar_el1, x0
    mov x0, #(3 << 20)
    msr cpacr_el1, x0
    msr tpidr_el1, xzr
    isb

    msr spsel, #1
    adrp x0, __exception_stack_top
    add x0, x0, :lo12:__exception_stack_top
    mov sp, x0
    msr spsel, #0
    adrp x0, __stack_top
    add x0, x0, :lo12:__stack_top
    mov sp, x0

    adrp x0, __bss_start
    add x0, x0, :lo12:__bss_start
    adrp x1, __bss_end
    add x1, x1, :lo12:__bss_end
2:  cmp x0, x1
    b.hs 3f
    stp xzr, xzr, [x0], #16
    b 2b

    // A zero frame pointer ends every backtrace.
3:  mov x29, xzr
    mov x30, xzr
    b image_main

    // Any core but the first one.
9:  wfi
    b 9b
    .size _start, . - _start
    .ltorg
    "#,
    SCTLR_OFF = const mmu::SCTLR_OFF,
);

/// Why the boot block was refused.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum BootError {
    #[error("boot block has magic {0:#010x}, not {BOOT_MAGIC:#010x}")]
    Magic(u32),
    #[error("boot block has version {0}, not {MAILBOX_VERSION}")]
    Version(u32),
    #[error("HBM of {0:#x} bytes is not a multiple of {block:#x} in {block:#x}..={HBM_MAX:#x}", block = mmu::BLOCK)]
    HbmSize(u64),
    #[error("HBM at {base} with {size:#x} bytes is not one range of whole GiB above the image in 48 bits")]
    HbmBase { base: DeviceAddr, size: u64 },
    #[error("unknown SoC device type {0}")]
    Soc(u32),
    #[error("{0} thread slots, at most {MAX_THREADS}")]
    ThreadSlots(u32),
    #[error("thread table at {base} with {slots} slots is not an aligned range of HBM")]
    ThreadTable { base: DeviceAddr, slots: u32 },
    #[error("communicator table at {0} is not an aligned range of HBM")]
    CommTable(DeviceAddr),
    #[error("{0} channel slots, at most {MAX_CHANNELS}")]
    ChannelSlots(u32),
    #[error("channel table at {base} with {slots} slots is not an aligned range of HBM")]
    ChannelTable { base: DeviceAddr, slots: u32 },
}

fn check(boot: &BootBlock) -> Result<Soc, BootError> {
    if boot.magic != BOOT_MAGIC {
        return Err(BootError::Magic(boot.magic));
    }
    if boot.version != MAILBOX_VERSION {
        return Err(BootError::Version(boot.version));
    }
    let BootBlock { hbm_base: base, hbm_size: size, thread_table, thread_slots: slots, .. } = *boot;
    if size == 0 || size > HBM_MAX || !size.is_multiple_of(mmu::BLOCK) {
        return Err(BootError::HbmSize(size));
    }
    if !mmu::can_map_hbm(base, size) {
        return Err(BootError::HbmBase { base, size });
    }
    if slots as usize > MAX_THREADS {
        return Err(BootError::ThreadSlots(slots));
    }
    let hbm = base.0 + HBM_HOLE..base.0 + size;
    let table_end = thread_table.0.checked_add(u64::from(slots) * DESCRIPTOR_SIZE);
    let is_inside = hbm.contains(&thread_table.0) && table_end.is_some_and(|end| end <= hbm.end);
    if !is_inside || !thread_table.0.is_multiple_of(DESCRIPTOR_SIZE) {
        return Err(BootError::ThreadTable { base: thread_table, slots });
    }
    let comms = boot.comm_table;
    let comms_end = comms.0.checked_add(MAX_COMMS as u64 * COMM_ENTRY_SIZE);
    let is_inside = hbm.contains(&comms.0) && comms_end.is_some_and(|end| end <= hbm.end);
    if !is_inside || !comms.0.is_multiple_of(8) {
        return Err(BootError::CommTable(comms));
    }
    let BootBlock { channel_table: base, channel_slots: slots, .. } = *boot;
    if slots as usize > MAX_CHANNELS {
        return Err(BootError::ChannelSlots(slots));
    }
    let channels_end = base.0.checked_add(u64::from(slots) * CHANNEL_SIZE);
    let is_inside = hbm.contains(&base.0) && channels_end.is_some_and(|end| end <= hbm.end);
    if !is_inside || !base.0.is_multiple_of(CHANNEL_ALIGN) {
        return Err(BootError::ChannelTable { base, slots });
    }
    Soc::from_device_type(boot.soc).ok_or(BootError::Soc(boot.soc))
}

/// Runs the constructors of static objects, which kernels in C and C++ may have.
fn run_constructors() {
    for addr in layout::constructors().step_by(size_of::<u64>()) {
        // SAFETY: `link.ld` aligns the table to 8 bytes, and it holds addresses of functions only, which compilers put there.
        let constructor = unsafe { (addr as *const extern "C" fn()).read() };
        constructor();
    }
}

/// What the start code jumps to.
#[unsafe(no_mangle)]
extern "C" fn image_main() -> ! {
    // SAFETY: called once, by the start code, with the MMU off.
    let mut tables = unsafe { mmu::enable() };

    // SAFETY: mapped by `enable`; the host wrote it before it started the core and does not change it.
    let boot = unsafe { (BOOT_BLOCK_PHYS as *const BootBlock).read_volatile() };
    let soc = check(&boot).unwrap_or_else(|error| fault::report_boot(&error));
    tables.map_hbm(boot.hbm_base, boot.hbm_size);

    cpu::start_cycle_counter();
    wake::init();
    port::DEVICE.set_soc(soc);
    // SAFETY: `check` found the table aligned and inside HBM, which stays mapped; the host owes the rings.
    unsafe { port::DEVICE.set_thread_table(boot.thread_table, boot.thread_slots as usize) };
    // SAFETY: `check` found it aligned and inside HBM.
    unsafe { port::DEVICE.set_comm_table(boot.comm_table) };
    // SAFETY: `check` found it aligned and inside HBM, which stays mapped; the host owes the work rings.
    unsafe { port::DEVICE.set_channel_table(boot.channel_table, boot.channel_slots as usize) };
    if boot.records != 0 {
        // SAFETY: both rings stay mapped, like the boot block; the host reads them, and stores `tail` atomically.
        unsafe { port::DEVICE.set_record_rings(DeviceAddr(RECORD_PHYS)) };
    }
    run_constructors();
    defmt::info!("image ready, hbm {=u64:#x}, {=u64:#x} bytes", boot.hbm_base.0, boot.hbm_size);
    mailbox::run()
}
