//! The AI CPU as the scheduler sees it: how a launch gets there and back.

use hcomm_aicpu::spec::record::CallRecord;

pub use super::check::calls::{Refusals, RefusedCall};
pub use super::kernel::{KernelEntry, KernelFn};
use super::own_accesses::OwnRange;
use super::stream::KernelLaunch;

/// How a kernel returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Its code.
    pub code: u32,
    /// Instructions that it executed; 0 where they aren't counted.
    pub instructions: u64,
    /// It had started a batch and not ended it.
    pub batch_left_open: bool,
    /// Queues that it rang, each with the entries rung since the queue was made; `None`: the CPU does not see it.
    pub rung: Option<Vec<(u32, u64)>>,
}

/// A call that a CPU with a program of its own has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Code that the call gave.
    pub code: i32,
    /// Function and reason.
    pub text: String,
    /// Return addresses of the call in that program, innermost first.
    pub frames: Vec<u64>,
}

/// Why a kernel did not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuFault {
    /// The kernel panicked or caused an exception.
    Kernel(String),
    /// The processor is gone.
    Cpu(String),
}

/// An AI CPU. Driven by the scheduler alone.
pub trait Cpu: Send {
    /// Cores that take launches.
    fn cores(&self) -> usize;

    /// Starts a kernel on `core`, which runs none.
    ///
    /// # Errors
    /// [`CpuFault`]: it can't.
    fn start(&mut self, core: usize, launch: &KernelLaunch) -> Result<(), CpuFault>;

    /// Asks whether the kernel on `core` has returned.
    ///
    /// # Errors
    /// [`CpuFault`]: it never will.
    fn poll(&mut self, core: usize) -> Result<Option<Returned>, CpuFault>;

    /// Whether [`poll`](Self::poll) would tell that the kernel on `core` has ended, or never will.
    fn has_ended(&self, core: usize) -> bool {
        let _ = core;
        true
    }

    /// Whether end and doorbells of a kernel are seen only by polling. Otherwise the CPU notifies the scheduler.
    fn is_polled(&self) -> bool;

    /// Where the kernel that runs on `core` is, for a message; `None` if it is not known.
    fn whereabouts(&mut self, core: usize) -> Option<String> {
        let _ = core;
        None
    }

    /// Calls of the kernel on `core` that were refused since this was asked last. A CPU that sends [`What::CallRefused`]
    /// itself has none.
    ///
    /// [`What::CallRefused`]: crate::event::What::CallRefused
    fn take_refused(&mut self, core: usize) -> Vec<Refused> {
        let _ = core;
        Vec::new()
    }

    /// The oldest record of a call that the core has written and that was not read yet. A CPU that sends them as events itself has
    /// none.
    fn take_record(&mut self, core: usize) -> Option<CallRecord> {
        let _ = core;
        None
    }

    /// Hands over what the program's own code on `core` has accessed in HBM: before call `before`, or all that there is behind the
    /// last record that was taken. A CPU that does not see it has nothing.
    fn take_own_accesses(&mut self, core: usize, before: Option<u64>, each: &mut dyn FnMut(OwnRange)) {
        let _ = (core, before, each);
    }

    /// Whether so much of it waits that the core may soon have to wait, too.
    fn has_many_own_accesses(&mut self, core: usize) -> bool {
        let _ = core;
        false
    }

    /// Refused calls of the last kernel on `core`, which has ended, of a CPU that sends [`What::CallRefused`] itself.
    ///
    /// [`What::CallRefused`]: crate::event::What::CallRefused
    fn take_refusals(&mut self, core: usize) -> Refusals {
        let _ = core;
        Refusals::default()
    }

    /// What all kernels end with when one of them fails; `None`: they go on.
    fn ends_with(&self) -> Option<&'static str> {
        None
    }

    /// Gives up the kernel on `core`: the core is not used again before a [`restart`](Self::restart).
    fn abandon(&mut self, core: usize);

    /// Ends all running kernels and resets every core.
    ///
    /// # Errors
    /// [`CpuFault::Cpu`]: it can't.
    fn restart(&mut self) -> Result<(), CpuFault> {
        Err(CpuFault::Cpu("this ai cpu can't be restarted".to_owned()))
    }
}
