//! The launch protocol in shared memory, as the image and the Linux runner have it: boot block, mailboxes, fault records.
#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use hcomm_aicpu::spec::channel::MAX_CHANNELS;
use hcomm_aicpu::spec::mailbox::{
    BOOT_MAGIC, BootBlock, DeviceMailbox, FAULT_STRIDE, FaultKind, FaultRecord, HostMailbox, LEFT_BATCH_OPEN,
    LOG_STRIDE, MAILBOX_STRIDE, MAILBOX_VERSION, MAX_CORES, REFUSAL_STRIDE,
};
use hcomm_aicpu::spec::map::{
    BOOT_BLOCK_PHYS, DEVICE_MAILBOX_PHYS, FAULT_PHYS, HOST_MAILBOX_PHYS, LOG_PHYS, RECORD_PHYS, REFUSAL_PHYS,
};
use hcomm_aicpu::spec::record::RECORD_STRIDE;
use hcomm_aicpu::spec::runner::NO_CORE;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::MAX_THREADS;

use super::Tables;
use hcomm_mapping::SharedMemory;
use hcomm_sim::cpu::Returned;
use hcomm_sim::memory::Memory;

/// Host's side of the mailboxes of all cores.
pub struct Mailboxes {
    memory: Arc<SharedMemory>,
    /// Number of the last launch of each core.
    seqs: [u64; MAX_CORES],
}

impl Mailboxes {
    /// The mailboxes of a processor that has not started: all are empty.
    pub fn new(memory: &Arc<SharedMemory>) -> Self {
        Self { memory: Arc::clone(memory), seqs: [0; MAX_CORES] }
    }

    /// Fills the boot block. `records`: calls are recorded.
    pub fn write_boot_block(&self, tables: Tables, soc: Soc, records: bool) {
        let memory = &self.memory;
        let word32 = |offset: usize| memory.word32(BOOT_BLOCK_PHYS + offset as u64);
        let word64 = |offset: usize| memory.word64(BOOT_BLOCK_PHYS + offset as u64);
        word32(offset_of!(BootBlock, version)).store(MAILBOX_VERSION, Ordering::Relaxed);
        word64(offset_of!(BootBlock, hbm_base)).store(memory.hbm_base(), Ordering::Relaxed);
        word64(offset_of!(BootBlock, hbm_size)).store(memory.hbm_size(), Ordering::Relaxed);
        word64(offset_of!(BootBlock, thread_table)).store(tables.threads.0, Ordering::Relaxed);
        word64(offset_of!(BootBlock, comm_table)).store(tables.comms.0, Ordering::Relaxed);
        word64(offset_of!(BootBlock, channel_table)).store(tables.channels.0, Ordering::Relaxed);
        word32(offset_of!(BootBlock, channel_slots)).store(MAX_CHANNELS as u32, Ordering::Relaxed);
        word32(offset_of!(BootBlock, thread_slots)).store(MAX_THREADS as u32, Ordering::Relaxed);
        word32(offset_of!(BootBlock, soc)).store(soc as u32, Ordering::Relaxed);
        word32(offset_of!(BootBlock, records)).store(records.into(), Ordering::Relaxed);
        word32(offset_of!(BootBlock, magic)).store(BOOT_MAGIC, Ordering::Release);
    }

    /// Whether launches are taken.
    ///
    /// # Errors
    /// `what` has mailboxes of another version; as a message.
    pub fn is_ready(&self, what: &str) -> Result<bool, String> {
        let ready = DEVICE_MAILBOX_PHYS + offset_of!(DeviceMailbox, ready) as u64;
        match self.memory.word32(ready).load(Ordering::Acquire) {
            0 => Ok(false),
            MAILBOX_VERSION => Ok(true),
            other => Err(format!("{what} has mailbox version {other}, this program {MAILBOX_VERSION}")),
        }
    }

    /// Gives `core` a launch. Returns whether the core sleeps and must be woken.
    pub fn post(&mut self, core: usize, entry: u64, args: u64) -> bool {
        self.seqs[core] += 1;
        let mailbox = HOST_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE;
        let word = |offset: usize| self.memory.word64(mailbox + offset as u64);
        word(offset_of!(HostMailbox, entry)).store(entry, Ordering::Relaxed);
        word(offset_of!(HostMailbox, args)).store(args, Ordering::Relaxed);
        // Release pairs with the core's acquire load: a core that sees the number sees entry and args.
        word(offset_of!(HostMailbox, seq)).store(self.seqs[core], Ordering::Release);
        // Pairs with the fence of the core between `sleeping` and its last look at `seq`.
        fence(Ordering::SeqCst);
        let sleeping = DEVICE_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE + offset_of!(DeviceMailbox, sleeping) as u64;
        self.memory.word32(sleeping).load(Ordering::Relaxed) != 0
    }

    /// How the last launch of `core` has returned, if it has.
    pub fn returned(&self, core: usize) -> Option<Returned> {
        let mailbox = DEVICE_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE;
        let word = |offset: usize| self.memory.word64(mailbox + offset as u64);
        // Acquire pairs with the core's release store of `done`: its result and its doorbells are visible.
        if word(offset_of!(DeviceMailbox, done)).load(Ordering::Acquire) != self.seqs[core] {
            return None;
        }
        let code = self.memory.word32(mailbox + offset_of!(DeviceMailbox, ret) as u64).load(Ordering::Relaxed);
        let instructions = word(offset_of!(DeviceMailbox, instructions)).load(Ordering::Relaxed);
        let left = self.memory.word32(mailbox + offset_of!(DeviceMailbox, left_behind) as u64).load(Ordering::Relaxed);
        Some(Returned { code, instructions, batch_left_open: left & LEFT_BATCH_OPEN != 0, rung: None })
    }

    /// Address and kind of the record of `core`, if there is one; a core may also be [`NO_CORE`].
    pub fn fault(&self, core: u64) -> Option<(u64, FaultKind)> {
        let phys = FAULT_PHYS + core * FAULT_STRIDE;
        let kind = self.memory.word32(phys + offset_of!(FaultRecord, kind) as u64).load(Ordering::Acquire);
        (kind != FaultKind::NONE.0).then_some((phys, FaultKind(kind)))
    }

    /// Clears all that the processor and this have written, after the processor has ended.
    pub fn clear(&mut self) {
        for (phys, len) in [
            (HOST_MAILBOX_PHYS, MAILBOX_STRIDE),
            (DEVICE_MAILBOX_PHYS, MAILBOX_STRIDE),
            (FAULT_PHYS, FAULT_STRIDE),
            (REFUSAL_PHYS, REFUSAL_STRIDE),
        ] {
            self.memory.zero_low(phys, (NO_CORE as usize + 1) * len as usize);
        }
        for (phys, len) in [(LOG_PHYS, LOG_STRIDE), (RECORD_PHYS, RECORD_STRIDE)] {
            self.memory.zero_low(phys, MAX_CORES * len as usize);
        }
        self.seqs = [0; MAX_CORES];
    }
}
