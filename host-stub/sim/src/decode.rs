//! Decoder of descriptors, by byte offset from tables of its own, one for each SoC.
//!
//! The builders in `hcomm_aicpu::spec` are not used here, so that one mistake cannot be made in both places.

use hcomm_aicpu::spec::soc::Soc;

#[cfg(test)]
mod every_bit;
pub(super) mod layout;
mod stars910;
mod stars950;
mod table;
pub(super) mod task;
#[cfg(test)]
mod tests910;
#[cfg(test)]
mod tests950;
pub mod ub;
mod ub_doorbell;

pub use self::task::{Action, DecodeError, Effect, Field, Jetty, SQE_LEN, Task, Until, type_name};

use self::layout::extract;
use self::table::{Kind, Meaning, Table};
use self::task::sdma_opcode;

fn table(soc: Soc) -> &'static Table {
    match soc {
        Soc::Ascend950 => &stars950::TABLE,
        Soc::Ascend910B | Soc::Ascend910_93 => &stars910::TABLE,
    }
}

/// Every field of a descriptor of `soc`, in the order of its bytes, whatever it holds.
///
/// # Errors
/// [`DecodeError::UnknownType`]: there is no table for the type.
pub fn fields(soc: Soc, sqe: &[u8; SQE_LEN]) -> Result<Vec<Field>, DecodeError> {
    table(soc).kind(sqe).map(|kind| kind.layout.list(sqe))
}

/// The task of a descriptor of `soc`.
///
/// # Errors
/// [`DecodeError`]: the first field that is not supported, header first.
pub fn decode(soc: Soc, sqe: &[u8; SQE_LEN]) -> Result<Task, DecodeError> {
    let table = table(soc);
    let action = action(table.kind(sqe)?, sqe)?;
    Ok(Task { task_id: extract(sqe, &table.task_id) as u32, action })
}

/// Task id of a descriptor of any type.
pub fn task_id(soc: Soc, sqe: &[u8; SQE_LEN]) -> u32 {
    extract(sqe, &table(soc).task_id) as u32
}

fn action(kind: &Kind, sqe: &[u8; SQE_LEN]) -> Result<Action, DecodeError> {
    kind.layout.check(sqe)?;
    let field = |spec| extract(sqe, spec);
    Ok(match kind.meaning {
        Meaning::Sdma { src, dst, len } => {
            Action::Sdma { src: field(src), dst: field(dst), len: field(len) as u32, opcode: sdma_opcode(sqe)? }
        }
        Meaning::Notify(forms) => {
            let form = forms.iter().find(|form| form.is_of(sqe)).expect("the last form has no condition");
            form.check(sqe)?;
            form.action(sqe)
        }
        Meaning::WriteValue { addr: [low, high], value } => {
            Action::WriteValue { addr: field(low) | field(high) << 32, value: field(value) as u32 }
        }
        Meaning::RemoteRecord { addr: [low, high] } => Action::RemoteRecord { addr: field(low) | field(high) << 32 },
        Meaning::PlaceHolder => Action::PlaceHolder,
        Meaning::UbDoorbell => ub_doorbell::action(sqe),
    })
}
