//! What product and engine allow. Every decision of the C API about them is made here.
#![forbid(unsafe_code)]

use std::ffi::CStr;

use hcomm_aicpu::spec::thread::Engine;

use super::call::CallError;

/// `CommEngine` values besides those of [`Engine`].
const ENGINE_CPU: i32 = 0;
const ENGINE_AICPU: i32 = 2;
const ENGINE_AIV: i32 = 4;
const ENGINE_CCU: i32 = 5;

/// Which function acquires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// `HcclThreadAcquire`.
    Threads,
    /// `HcclThreadAcquireWithStream`.
    WithStream,
}

/// Name of the SoC that the devices have.
pub fn soc_name() -> &'static CStr {
    c"Ascend950"
}

/// The engine that threads of the `CommEngine` `number` have: CPU and AICPU mean their task scheduler forms.
///
/// # Errors
/// Not a `CommEngine` (1), one that the function does not take (1), or one that is not simulated (5).
pub fn thread_engine(acquire: Acquire, number: i32) -> Result<Engine, CallError> {
    let engine = engine(number)?;
    match (acquire, engine) {
        (_, Engine::CPU_TS) | (Acquire::Threads, Engine::AICPU_TS) => Ok(engine),
        (Acquire::WithStream, Engine(ENGINE_CCU)) => {
            Err(CallError::NotSupported("threads of engine CCU are not simulated".to_owned()))
        }
        (Acquire::WithStream, _) => {
            Err(CallError::Invalid(format!("engine {number} has no threads with a stream of the host")))
        }
        (Acquire::Threads, _) => Err(CallError::Invalid(format!("engine {number} has no threads of this kind"))),
    }
}

/// The engine of a context: decides where its memory is.
///
/// # Errors
/// Not a `CommEngine`, or one without a context here.
pub fn context_engine(number: i32) -> Result<Engine, CallError> {
    match engine(number)? {
        engine @ (Engine::CPU_TS | Engine::AICPU_TS) => Ok(engine),
        Engine(_) => Err(CallError::NotSupported(format!("contexts of engine {number} are not simulated"))),
    }
}

fn engine(number: i32) -> Result<Engine, CallError> {
    match number {
        ENGINE_CPU => Ok(Engine::CPU_TS),
        ENGINE_AICPU => Ok(Engine::AICPU_TS),
        _ if [Engine::CPU_TS.0, Engine::AICPU_TS.0, ENGINE_AIV, ENGINE_CCU].contains(&number) => Ok(Engine(number)),
        _ => Err(CallError::OutOfRange { what: "engine", value: number.into(), must: "not a CommEngine" }),
    }
}

/// Whether the host may queue a copy or a reduction on a thread of `engine`.
///
/// # Errors
/// On Atlas 350, always: data moves on AICPU_TS threads only, and only in kernels.
pub fn host_data(engine: Engine) -> Result<(), CallError> {
    let which = match engine {
        Engine::CPU_TS => "a CPU_TS",
        _ => "an AICPU_TS",
    };
    Err(CallError::NotSupported(format!(
        "called by the host on {which} thread: Atlas 350 supports it on AICPU_TS threads on the device side only"
    )))
}
