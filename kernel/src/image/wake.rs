//! Sleep and wake-up of an idle core: a byte on the UART wakes it, and a timer as the net.
//!
//! Interrupts stay masked in PSTATE. A pending one ends `wfi` all the same, so there is no handler: the sleeper takes
//! the reasons for waking up back afterwards.

use core::mem::offset_of;

use cortex_a::asm::{barrier, wfi};
use cortex_a::registers::{CNTV_CTL_EL0, CNTV_TVAL_EL0, Writeable};
use hcomm_aicpu::spec::map::{GIC_CPU_PHYS, GIC_DIST_PHYS, UART_IRQ, UART_PHYS};
use volatile_register::{RO, RW, WO};

use super::cpu;

/// Part of a second after which a sleeping core looks at its mailbox, whether or not it was woken: 10 ms.
const NET_PER_SECOND: u64 = 100;
/// Interrupt of the core's virtual timer.
const TIMER_IRQ: u32 = 27;

/// Interrupts that a distributor of this machine has room for, in the registers below.
const IRQS: usize = 1024;

/// Distributor of the interrupt controller (GICv2), as far as it is used.
#[repr(C)]
struct Distributor {
    /// Bit 0: forwards interrupts.
    ctlr: RW<u32>,
    _reserved: [u32; 63],
    /// A bit for each interrupt; writing 1 enables it.
    isenabler: [RW<u32>; IRQS / 32],
    _reserved2: [u32; 160],
    /// A byte for each interrupt, 0 = highest priority.
    ipriorityr: [RW<u8>; IRQS],
    /// A byte for each interrupt: the cores that it goes to, a bit for each.
    itargetsr: [RW<u8>; IRQS],
}
const _: () = assert!(offset_of!(Distributor, isenabler) == 0x100);
const _: () = assert!(offset_of!(Distributor, ipriorityr) == 0x400);
const _: () = assert!(offset_of!(Distributor, itargetsr) == 0x800);

/// CPU interface of the interrupt controller (GICv2), as far as it is used.
#[repr(C)]
struct CpuInterface {
    /// Bit 0: signals interrupts to the core.
    ctlr: RW<u32>,
    /// Interrupts of a lower priority than this are not signalled.
    pmr: RW<u32>,
}
const _: () = assert!(offset_of!(CpuInterface, pmr) == 4);

/// The UART (PL011), as far as it is used.
#[repr(C)]
struct Uart {
    /// Data. Reading it takes a received byte.
    dr: RW<u32>,
    _reserved: [u32; 5],
    /// Flags.
    fr: RO<u32>,
    _reserved2: [u32; 4],
    /// Line control.
    lcrh: RW<u32>,
    /// Control.
    cr: RW<u32>,
    _reserved3: [u32; 1],
    /// Interrupts that are raised.
    imsc: RW<u32>,
    _reserved4: [u32; 2],
    /// Writing 1 takes an interrupt back.
    icr: WO<u32>,
}
const _: () = assert!(offset_of!(Uart, fr) == 0x18);
const _: () = assert!(offset_of!(Uart, lcrh) == 0x2c);
const _: () = assert!(offset_of!(Uart, cr) == 0x30);
const _: () = assert!(offset_of!(Uart, imsc) == 0x38);
const _: () = assert!(offset_of!(Uart, icr) == 0x44);

/// Bits of the UART's registers.
mod bits {
    pub const FR_RX_EMPTY: u32 = 1 << 4;
    pub const LCRH_8_BITS: u32 = 3 << 5;
    pub const CR_ENABLE: u32 = 1 << 0;
    pub const CR_RX_ENABLE: u32 = 1 << 9;
    pub const INT_RX: u32 = 1 << 4;
    pub const INT_ALL: u32 = 0x7ff;
}

fn distributor() -> &'static Distributor {
    // SAFETY: the block of the machine, mapped as device memory once the MMU is on, which it is before `init`. All fields are
    // volatile cells.
    unsafe { &*(GIC_DIST_PHYS as *const Distributor) }
}

fn cpu_interface() -> &'static CpuInterface {
    // SAFETY: the block of the machine, mapped as device memory with the distributor (`mmu::enable`). All fields are volatile
    // cells.
    unsafe { &*(GIC_CPU_PHYS as *const CpuInterface) }
}

fn uart() -> &'static Uart {
    // SAFETY: the block of the machine, mapped as device memory (`mmu::enable`). All fields are volatile cells.
    unsafe { &*(UART_PHYS as *const Uart) }
}

/// Lets a byte on the UART, and the timer, wake this core.
pub fn init() {
    let (gic, interface, uart) = (distributor(), cpu_interface(), uart());
    // SAFETY: these registers choose which interrupts end `wfi`. They reach no memory, interrupts stay masked in PSTATE, and
    // nothing else of the image uses them.
    unsafe {
        for irq in [UART_IRQ, TIMER_IRQ] {
            gic.ipriorityr[irq as usize].write(0);
            gic.isenabler[irq as usize / 32].write(1 << (irq % 32));
        }
        // Of the two only the UART is shared by the cores, so only it has a target.
        gic.itargetsr[UART_IRQ as usize].write(1 << cpu::core_id());
        gic.ctlr.write(1);
        interface.pmr.write(0xff);
        interface.ctlr.write(1);

        // Without the FIFO, each byte raises the interrupt at once.
        uart.lcrh.write(bits::LCRH_8_BITS);
        uart.cr.write(bits::CR_ENABLE | bits::CR_RX_ENABLE);
        uart.imsc.write(bits::INT_RX);
    }
}

/// Sleeps until a byte comes in, or for 10 ms. A byte that came in before ends it at once.
pub fn sleep() {
    CNTV_TVAL_EL0.set(cpu::ticks_per_second() / NET_PER_SECOND);
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::SET);
    barrier::isb(barrier::SY);
    wfi();
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::CLEAR);
    // Cleared before the bytes are taken: one that comes in after the last look at the flags raises the interrupt again.
    let uart = uart();
    // SAFETY: takes interrupts of the UART back, and reaches no memory.
    unsafe { uart.icr.write(bits::INT_ALL) };
    while uart.fr.read() & bits::FR_RX_EMPTY == 0 {
        uart.dr.read();
    }
    // The host stores to the mailbox before it sends the byte: the mailbox must be read after the byte was taken.
    barrier::dmb(barrier::SY);
}

/// Lets nothing wake this core any more.
pub fn disable() {
    // SAFETY: no interrupt ends `wfi` any more; the register reaches no memory.
    unsafe { cpu_interface().ctlr.write(0) };
}
