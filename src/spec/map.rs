//! Memory map. Guest RAM is one shared file: its offset 0 is [`RAM_PHYS`]; the first [`LOW_SIZE`] bytes hold the image,
//! its mailbox, logs and the queue registers, the rest is HBM.
//!
//! The image maps the low part at its physical address (identity) and HBM at its device virtual address.

use super::queue::SQ_REGS_STRIDE;

/// Physical address of the start of RAM.
pub const RAM_PHYS: u64 = 0x4000_0000;
/// Bytes of the low part.
pub const LOW_SIZE: u64 = 256 << 20;
/// Physical address of HBM.
pub const HBM_PHYS: u64 = RAM_PHYS + LOW_SIZE;
/// Device virtual address of HBM in device slot 0, unless the process has something else there.
pub const HBM_BASE: u64 = 0x12c0_0000_0000;
/// Distance of the HBM of two device slots, unless the base of the process is below it.
pub const HBM_STRIDE: u64 = 1 << 40;
/// Largest HBM: its page tables fit into their area, and one top-level entry covers it.
pub const HBM_MAX: u64 = 128 << 30;
/// Bytes at the start of HBM that are never mapped.
pub const HBM_HOLE: u64 = 4096;

/// End of the addresses that the image maps as they are: the first entry of its top-level page table. HBM lies above.
pub const IDENTITY_END: u64 = 1 << 39;

/// Image: code, data and stacks. `link.ld` places it here.
pub const IMAGE_PHYS: u64 = 0x4020_0000;
/// Bytes that the image may take, bss and stacks included.
pub const IMAGE_SIZE: u64 = 2 << 20;
/// [`BootBlock`](super::mailbox::BootBlock).
pub const BOOT_BLOCK_PHYS: u64 = 0x4100_0000;
/// [`HostMailbox`](super::mailbox::HostMailbox), one for each core.
pub const HOST_MAILBOX_PHYS: u64 = 0x4100_1000;
/// [`DeviceMailbox`](super::mailbox::DeviceMailbox), one for each core.
pub const DEVICE_MAILBOX_PHYS: u64 = 0x4100_2000;
/// [`FaultRecord`](super::mailbox::FaultRecord), one for each core.
pub const FAULT_PHYS: u64 = 0x4100_4000;
/// [`RefusalRing`](super::mailbox::RefusalRing), one for each core.
pub const REFUSAL_PHYS: u64 = 0x4100_8000;
/// [`LogRing`](super::mailbox::LogRing) of each core.
pub const LOG_PHYS: u64 = 0x4110_0000;
/// [`RecordRing`](super::record::RecordRing) of each core.
pub const RECORD_PHYS: u64 = 0x4114_0000;
/// Register blocks of the queues, block *n* at *n* times the stride.
pub const QUEUE_REGS_PHYS: u64 = 0x4120_0000;
/// Bytes of the register blocks.
pub const QUEUE_REGS_SIZE: u64 = 2 << 20;
/// Page tables, built by the image at boot.
pub const PAGE_TABLES_PHYS: u64 = 0x4200_0000;
/// Bytes for page tables: one table for each GiB of HBM, and room for the others.
pub const PAGE_TABLES_SIZE: u64 = 2 << 20;
/// [`OwnAccessRing`](super::own_access::OwnAccessRing) of each processor. No program maps it: the plugin of the emulator writes it.
pub const OWN_ACCESS_PHYS: u64 = 0x4400_0000;

/// UART (PL011) whose received bytes wake the image.
pub const UART_PHYS: u64 = 0x0900_0000;
/// Interrupt of the UART.
pub const UART_IRQ: u32 = 33;
/// Distributor of the interrupt controller (GICv2).
pub const GIC_DIST_PHYS: u64 = 0x0800_0000;
/// CPU interface of the interrupt controller.
pub const GIC_CPU_PHYS: u64 = 0x0801_0000;

/// Physical address of the register block of queue `sq_id`: `regs` of the thread descriptor.
pub const fn regs_phys(sq_id: u32) -> u64 {
    QUEUE_REGS_PHYS + sq_id as u64 * SQ_REGS_STRIDE
}

/// Whether `regs` is the register block of queue `sq_id`, and lies among the blocks.
pub const fn is_regs_of(sq_id: u32, regs: u64) -> bool {
    regs == regs_phys(sq_id) && regs < QUEUE_REGS_PHYS + QUEUE_REGS_SIZE
}
