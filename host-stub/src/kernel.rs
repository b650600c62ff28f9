//! Kernels by name.
#![forbid(unsafe_code)]

use std::sync::Arc;

use hcomm_kernel::{KernelFn, Misbehaviour};

use crate::backend::native::kernels;
use crate::error::Error;
use crate::loader::LoadError;
use crate::options::Cpu;
use hcomm_sim::cpu::KernelEntry;
use hcomm_sim::fault::KernelFault;

/// A kernel that can be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) name: Arc<str>,
    pub(crate) entry: KernelEntry,
}

impl Kernel {
    pub(crate) fn new(name: &str, entry: KernelEntry) -> Self {
        Self { name: name.into(), entry }
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

    pub(crate) fn runs_on(&self, cpu: Cpu) -> bool {
        match self.entry {
            KernelEntry::Native(_) => cpu == Cpu::Native,
            KernelEntry::Image(_) => cpu == Cpu::Qemu,
            KernelEntry::Library(_) => cpu == Cpu::Linux,
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
