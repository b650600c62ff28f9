//! Two threads that hand a token back and forth: the cost of a notify.

use hcomm_aicpu::Error;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Control, kernel, queued};

/// Notify of each thread: it has the token. The next index is free for the start notify of the control pair.
const TOKEN: u32 = 0;

/// Parameters of [`pingpong`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PingpongParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `ThreadHandle` of the thread that has the token first and last, with at least one notify.
    pub first: u64,
    /// `ThreadHandle` of the other, with at least one notify.
    pub second: u64,
    /// How often the token comes back to `first`.
    pub rounds: u64,
    /// Control pair of the launch; on `first`.
    pub control: Control,
}
const _: () = assert!(size_of::<PingpongParams>() == 56);

impl KernelParams for PingpongParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"PING");
    const VERSION: u32 = 1;
}

kernel! {
    /// Hands a token from `first` to `second` and back, `rounds` times: two records and two waits each.
    ///
    /// # Errors
    /// Those of the calls.
    pub fn pingpong(params: &PingpongParams) -> Result<(), Error> {
        let first = queued::thread(params.first)?;
        let second = queued::thread(params.second)?;
        params.control.in_step(&first, || {
            for _ in 0..params.rounds {
                queued::record(&first, second.peer(), TOKEN)?;
                queued::wait(&second, TOKEN)?;
                queued::record(&second, first.peer(), TOKEN)?;
                queued::wait(&first, TOKEN)?;
            }
            Ok(())
        })
    }
}
