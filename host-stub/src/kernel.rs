//! Kernels by name.
#![forbid(unsafe_code)]

use std::sync::Arc;

use hcomm_kernel::{KernelFn, Misbehaviour};

use crate::backend::native::kernels;
use crate::card::acl::FunctionHandle;
use crate::error::Error;
use crate::loader::LoadError;
use crate::options::Cpu;
use hcomm_sim::cpu::KernelEntry;
use hcomm_sim::fault::KernelFault;

/// A kernel that can be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) name: Arc<str>,
    pub(crate) entry: Entry,
}

/// Where its code is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Sim(KernelEntry),
    Card(FunctionHandle),
}

impl Kernel {
    pub(crate) fn new(name: &str, entry: KernelEntry) -> Self {
        Self { name: name.into(), entry: Entry::Sim(entry) }
    }

    /// A kernel of a card's package.
    pub(crate) fn on_card(name: &str, function: FunctionHandle) -> Self {
        Self { name: name.into(), entry: Entry::Card(function) }
    }

    /// A function of this program as a kernel of [`Cpu::Native`].
    pub fn native(name: &str, function: KernelFn) -> Self {
        Self::new(name, KernelEntry::Native(function))
    }

    /// The kernel with this name among those that are linked into this program.
    pub(crate) fn linked(name: &str) -> Result<Self, Error> {
        match kernels().find(|(found, _)| *found == name) {
            Some((_, function)) => Ok(Self::native(name, function)),
            None => {
                let kernels = kernels().map(|(name, _)| name.to_owned()).collect();
                Err(LoadError::NoSuchKernel { name: name.to_owned(), kernels }.into())
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its entry on the simulated device.
    ///
    /// # Errors
    /// It is for another CPU than `cpu`, or for a card.
    pub(crate) fn entry_on(&self, cpu: Cpu) -> Result<KernelEntry, Error> {
        match self.entry {
            Entry::Sim(entry @ KernelEntry::Native(_)) if cpu == Cpu::Native => Ok(entry),
            Entry::Sim(entry @ KernelEntry::Image(_)) if cpu == Cpu::Qemu => Ok(entry),
            Entry::Sim(entry @ KernelEntry::Library(_)) if cpu == Cpu::Linux => Ok(entry),
            _ => Err(Error::WrongCpu(self.name().to_owned())),
        }
    }
}

/// What the kernel `misbehave` does for a fault.
pub(crate) fn misbehaviour(fault: KernelFault) -> Misbehaviour {
    match fault {
        KernelFault::DataAbort => Misbehaviour::DATA_ABORT,
        KernelFault::Undefined => Misbehaviour::UNDEFINED,
        KernelFault::StackOverflow => Misbehaviour::STACK_OVERFLOW,
        KernelFault::Panic => Misbehaviour::PANIC,
        KernelFault::Hang => Misbehaviour::HANG,
    }
}
