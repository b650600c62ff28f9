//! Page tables: 4 KiB granule, 48-bit addresses, four levels, all from TTBR0.
//!
//! | range | memory |
//! |---|---|
//! | UART, interrupt controller | device-nGnRE |
//! | image, page by page as `link.ld` lays it out | code read + run, constants read, the rest read + write |
//! | boot block, mailboxes, fault records, logs | normal write-back |
//! | queue registers | device-nGnRE |
//! | page tables | normal write-back |
//! | HBM, at the base that the boot block names, without its first page | normal write-back |
//!
//! Nothing else is mapped, and nothing that is writable can run.

use core::arch::asm;
use core::ops::Range;

use cortex_a::asm::barrier;
use cortex_a::registers::{ID_AA64MMFR0_EL1, MAIR_EL1, Readable, SCTLR_EL1, TCR_EL1, TTBR0_EL1, Writeable};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::map::{
    BOOT_BLOCK_PHYS, GIC_CPU_PHYS, GIC_DIST_PHYS, HBM_HOLE, HBM_PHYS, IMAGE_PHYS, IMAGE_SIZE, PAGE_TABLES_PHYS,
    PAGE_TABLES_SIZE, QUEUE_REGS_PHYS, QUEUE_REGS_SIZE, UART_PHYS,
};

use super::layout;

/// Bytes that one entry of a level-2 table maps.
pub const BLOCK: u64 = 2 << 20;
const PAGE: u64 = 4096;
const GIB: u64 = 1 << 30;
/// Bytes that one entry of the level-0 table covers.
const TOP: u64 = 1 << 39;
const ADDR_BITS: u32 = 48;
const ENTRIES: usize = 512;

/// SCTLR_EL1 with MMU, caches and checks off: the bits that are one in Armv8.0.
pub const SCTLR_OFF: u64 = 0x30d0_0800;

// Bits of a descriptor.
const TABLE: u64 = 0b11;
const LEAF_BLOCK: u64 = 0b01;
const LEAF_PAGE: u64 = 0b11;
const ATTR_NORMAL: u64 = 0 << 2;
const ATTR_DEVICE: u64 = 1 << 2;
const READ_ONLY: u64 = 1 << 7;
const INNER_SHAREABLE: u64 = 3 << 8;
const ACCESSED: u64 = 1 << 10;
const PXN: u64 = 1 << 53;
const UXN: u64 = 1 << 54;
const ADDR_MASK: u64 = 0x0000_ffff_ffff_f000;

const NORMAL: u64 = ATTR_NORMAL | INNER_SHAREABLE | ACCESSED | UXN;
const CODE: u64 = NORMAL | READ_ONLY;
const CONSTANTS: u64 = NORMAL | READ_ONLY | PXN;
const DATA: u64 = NORMAL | PXN;
const DEVICE: u64 = ATTR_DEVICE | ACCESSED | UXN | PXN;

// One level-2 entry each is enough for these.
const _: () = assert!(IMAGE_SIZE == BLOCK && IMAGE_PHYS.is_multiple_of(BLOCK));
const _: () = assert!(QUEUE_REGS_SIZE == BLOCK && QUEUE_REGS_PHYS.is_multiple_of(BLOCK));
const _: () = assert!(PAGE_TABLES_SIZE == BLOCK && PAGE_TABLES_PHYS.is_multiple_of(BLOCK));
const _: () = assert!(BOOT_BLOCK_PHYS.is_multiple_of(BLOCK));
const _: () = assert!(GIC_DIST_PHYS / BLOCK == GIC_CPU_PHYS / BLOCK);
const _: () = assert!(HBM_PHYS.is_multiple_of(BLOCK) && HBM_HOLE == PAGE);

/// A table: its physical address, which is also its virtual one.
#[derive(Clone, Copy)]
struct Table(u64);

impl Table {
    /// Entry `index`, which is below [`ENTRIES`].
    fn entry(self, index: usize) -> *mut u64 {
        debug_assert!(index < ENTRIES);
        (self.0 as *mut u64).wrapping_add(index)
    }

    fn get(self, index: usize) -> u64 {
        // SAFETY: a `Table` comes from `Tables::alloc` and is in use by this core alone.
        unsafe { self.entry(index).read_volatile() }
    }

    // Volatile keeps it one aligned store each: before the MMU is on, memory is of device type, where a library's memset
    // may not go.
    fn set(self, index: usize, value: u64) {
        // SAFETY: as in `get`; the table walker sees either the old entry or the new one.
        unsafe { self.entry(index).write_volatile(value) }
    }
}

/// The page tables of the image.
pub struct Tables {
    top: Table,
    next: u64,
}

/// Whether [`Tables::map_hbm`] can map such an HBM: it starts on a GiB, and has one level-0 entry to itself.
pub fn can_map_hbm(base: DeviceAddr, size: u64) -> bool {
    let Some(last) = base.0.checked_add(size).and_then(|end| end.checked_sub(1)) else { return false };
    base.0.is_multiple_of(GIB) && base.0 >= TOP && base.0 / TOP == last / TOP && last >> ADDR_BITS == 0
}

impl Tables {
    /// Tables that map nothing, in the memory set aside for them.
    fn new() -> Self {
        let mut tables = Self { top: Table(0), next: PAGE_TABLES_PHYS };
        tables.top = tables.alloc();
        tables
    }

    fn alloc(&mut self) -> Table {
        let table = Table(self.next);
        self.next += PAGE;
        assert!(self.next <= PAGE_TABLES_PHYS + PAGE_TABLES_SIZE, "page tables are above {PAGE_TABLES_SIZE:#x} bytes");
        for index in 0..ENTRIES {
            table.set(index, 0);
        }
        table
    }

    /// The table that entry `index` of `parent` points to, made if there is none.
    fn child(&mut self, parent: Table, index: usize) -> Table {
        let entry = parent.get(index);
        if entry != 0 {
            return Table(entry & ADDR_MASK);
        }
        let table = self.alloc();
        // A walker that sees the entry must not see what was in the memory before.
        barrier::dsb(barrier::ISHST);
        parent.set(index, table.0 | TABLE);
        table
    }

    /// The level-2 table that covers `virt`.
    fn level2(&mut self, virt: u64) -> Table {
        let level1 = self.child(self.top, (virt / TOP) as usize % ENTRIES);
        self.child(level1, (virt / GIB) as usize % ENTRIES)
    }

    fn map_block(&mut self, virt: u64, phys: u64, attrs: u64) {
        self.level2(virt).set((virt / BLOCK) as usize % ENTRIES, phys | attrs | LEAF_BLOCK);
    }

    fn map_pages(&mut self, virt: Range<u64>, phys: u64, attrs: u64) {
        let level2 = self.level2(virt.start);
        let level3 = self.child(level2, (virt.start / BLOCK) as usize % ENTRIES);
        let mut offset = 0;
        while virt.start + offset < virt.end {
            let index = ((virt.start + offset) / PAGE) as usize % ENTRIES;
            level3.set(index, (phys + offset) | attrs | LEAF_PAGE);
            offset += PAGE;
        }
    }

    /// Maps `size` bytes of HBM at `base`, but for the first page. [`can_map_hbm`] must have said yes, and `size` is a
    /// multiple of [`BLOCK`].
    pub fn map_hbm(&mut self, base: DeviceAddr, size: u64) {
        self.map_pages(base.0 + HBM_HOLE..base.0 + BLOCK, HBM_PHYS + HBM_HOLE, DATA);
        let mut offset = BLOCK;
        while offset < size {
            self.map_block(base.0 + offset, HBM_PHYS + offset, DATA);
            offset += BLOCK;
        }
        // The new entries were invalid before, so no TLB holds them; the walker must see them before the next access.
        barrier::dsb(barrier::ISHST);
        barrier::isb(barrier::SY);
    }
}

/// Maps all but HBM and turns MMU and caches on.
///
/// # Safety
/// To be called once, with the MMU off, by the only running core.
pub unsafe fn enable() -> Tables {
    let mut tables = Tables::new();
    for device in [GIC_DIST_PHYS, UART_PHYS] {
        let block = device / BLOCK * BLOCK;
        tables.map_block(block, block, DEVICE);
    }
    let parts = [
        (layout::text(), CODE),
        (layout::rodata(), CONSTANTS),
        (layout::data(), DATA),
        (layout::stack(), DATA),
        (layout::exception_stack(), DATA),
    ];
    for (range, attrs) in parts {
        let start = range.start;
        tables.map_pages(range, start, attrs);
    }
    tables.map_block(BOOT_BLOCK_PHYS, BOOT_BLOCK_PHYS, DATA);
    tables.map_block(QUEUE_REGS_PHYS, QUEUE_REGS_PHYS, DEVICE);
    tables.map_block(PAGE_TABLES_PHYS, PAGE_TABLES_PHYS, DATA);

    MAIR_EL1.write(
        MAIR_EL1::Attr0_Normal_Outer::WriteBack_NonTransient_ReadWriteAlloc
            + MAIR_EL1::Attr0_Normal_Inner::WriteBack_NonTransient_ReadWriteAlloc
            + MAIR_EL1::Attr1_Device::nonGathering_nonReordering_EarlyWriteAck,
    );
    TCR_EL1.write(
        TCR_EL1::T0SZ.val(u64::from(64 - ADDR_BITS))
            + TCR_EL1::TG0::KiB_4
            + TCR_EL1::SH0::Inner
            + TCR_EL1::ORGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::IRGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::EPD1::DisableTTBR1Walks
            + TCR_EL1::IPS.val(ID_AA64MMFR0_EL1.read(ID_AA64MMFR0_EL1::PARange)),
    );
    TTBR0_EL1.set(tables.top.0);
    // SAFETY: only drops what the core has cached of an earlier life.
    unsafe {
        asm!("dsb ishst", "tlbi vmalle1", "ic iallu", "dsb ish", "isb", options(nostack, preserves_flags));
    }
    let on = SCTLR_EL1::M::Enable + SCTLR_EL1::C::Cacheable + SCTLR_EL1::I::Cacheable + SCTLR_EL1::WXN::Enable;
    SCTLR_EL1.set(SCTLR_OFF | on.value | SCTLR_EL1::SA.val(1).value);
    barrier::isb(barrier::SY);
    tables
}
