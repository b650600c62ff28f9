//! Sleep and wake-up of an idle core: a byte on the UART wakes it, and a timer as the net.
//!
//! Interrupts stay masked in PSTATE. A pending one ends `wfi` all the same, so there is no handler: who sleeps takes back
//! the reasons for waking up afterwards.

use cortex_a::asm::{barrier, wfi};
use cortex_a::registers::{CNTV_CTL_EL0, CNTV_TVAL_EL0, Writeable};
use hcomm_aicpu::spec::map::{GIC_CPU_PHYS, GIC_DIST_PHYS, UART_IRQ, UART_PHYS};

use super::cpu;

/// Part of a second after which a sleeping core looks at its mailbox, whether or not it was woken: 10 ms.
const NET_PER_SECOND: u64 = 100;
/// Interrupt of the core's virtual timer.
const TIMER_IRQ: u32 = 27;

/// Registers of the distributor (GICv2).
mod gicd {
    pub const CTLR: u64 = 0x000;
    pub const ISENABLER: u64 = 0x100;
    pub const IPRIORITYR: u64 = 0x400;
    pub const ITARGETSR: u64 = 0x800;
}

/// Registers of the CPU interface (GICv2).
mod gicc {
    pub const CTLR: u64 = 0x000;
    pub const PMR: u64 = 0x004;
}

/// Registers of the UART (PL011).
mod uart {
    pub const DR: u64 = 0x000;
    pub const FR: u64 = 0x018;
    pub const FR_RX_EMPTY: u32 = 1 << 4;
    pub const LCRH: u64 = 0x02c;
    pub const LCRH_8_BITS: u32 = 3 << 5;
    pub const CR: u64 = 0x030;
    pub const CR_ENABLE: u32 = 1 << 0;
    pub const CR_RX_ENABLE: u32 = 1 << 9;
    pub const IMSC: u64 = 0x038;
    pub const ICR: u64 = 0x044;
    pub const INT_RX: u32 = 1 << 4;
    pub const INT_ALL: u32 = 0x7ff;
}

fn read(addr: u64) -> u32 {
    // SAFETY: called in this file alone, with registers of the UART, which are mapped once the MMU is on.
    unsafe { (addr as *const u32).read_volatile() }
}

fn write(addr: u64, value: u32) {
    // SAFETY: called in this file alone, with registers of UART and interrupt controller, which are mapped once the MMU is
    // on. They reach no memory of ours.
    unsafe { (addr as *mut u32).write_volatile(value) }
}

fn write_byte(addr: u64, value: u8) {
    // SAFETY: as in `write`.
    unsafe { (addr as *mut u8).write_volatile(value) }
}

/// Lets a byte on the UART, and the timer, wake this core.
pub fn init() {
    for irq in [UART_IRQ, TIMER_IRQ] {
        write_byte(GIC_DIST_PHYS + gicd::IPRIORITYR + u64::from(irq), 0);
        write(GIC_DIST_PHYS + gicd::ISENABLER + u64::from(irq / 32 * 4), 1 << (irq % 32));
    }
    // Of the two only the UART is shared by the cores, so only it has a target.
    write_byte(GIC_DIST_PHYS + gicd::ITARGETSR + u64::from(UART_IRQ), 1 << cpu::core_id());
    write(GIC_DIST_PHYS + gicd::CTLR, 1);
    write(GIC_CPU_PHYS + gicc::PMR, 0xff);
    write(GIC_CPU_PHYS + gicc::CTLR, 1);

    // Without the FIFO, each byte raises the interrupt at once.
    write(UART_PHYS + uart::LCRH, uart::LCRH_8_BITS);
    write(UART_PHYS + uart::CR, uart::CR_ENABLE | uart::CR_RX_ENABLE);
    write(UART_PHYS + uart::IMSC, uart::INT_RX);
}

/// Sleeps until a byte comes in, or for 10 ms. A byte that came in before ends it at once.
pub fn sleep() {
    CNTV_TVAL_EL0.set(cpu::ticks_per_second() / NET_PER_SECOND);
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::SET);
    barrier::isb(barrier::SY);
    wfi();
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::CLEAR);
    // Cleared before the bytes are taken: one that comes in after the last look at the flags raises the interrupt again.
    write(UART_PHYS + uart::ICR, uart::INT_ALL);
    while read(UART_PHYS + uart::FR) & uart::FR_RX_EMPTY == 0 {
        read(UART_PHYS + uart::DR);
    }
    // The host stores to the mailbox before it sends the byte: the mailbox must be read after the byte was taken.
    barrier::dmb(barrier::SY);
}

/// Lets nothing wake this core any more.
pub fn disable() {
    write(GIC_CPU_PHYS + gicc::CTLR, 0);
}
