//! What a descriptor says once it is decoded, and why one is refused.

use crate::message::debug_is_the_message;
use crate::reduce::Reduce;

/// Bytes of a descriptor.
pub const SQE_LEN: usize = 64;

/// Names of the types, by number. SDMA, notifies, write value and doorbells of UB channels are decoded.
const TYPES: [&str; 22] = [
    "aic",
    "aiv",
    "fusion",
    "place_holder",
    "aicpu_h",
    "aicpu_d",
    "notify_record",
    "notify_wait",
    "write_value",
    "ubdma",
    "asyncdma",
    "sdma",
    "vpc",
    "jpege",
    "jpegd",
    "cmo",
    "",
    "",
    "",
    "",
    "cond",
    "end",
];

/// One field of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Byte that its first bit is in.
    pub byte: usize,
    /// What it holds.
    pub value: u64,
}

/// What a record does to its notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Sets the one bit.
    Set,
    /// Count form, one record for several waits: sets these bits.
    SetBits(u32),
    /// Count form, several records for one wait: writes this value.
    Write(u32),
}

/// What a wait waits for, and clears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The one bit.
    Set,
    /// Count form, one record for several waits: any of these bits.
    AnyOf(u32),
    /// Count form, several records for one wait: this value.
    Equal(u32),
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copies, or reduces the source into the destination.
    Sdma {
        /// First byte read.
        src: u64,
        /// First byte written.
        dst: u64,
        /// Bytes.
        len: u32,
        /// 0 = copy, else it names element type and operator.
        opcode: u8,
    },
    /// Records a notify.
    Record {
        /// The notify.
        id: u32,
        /// What becomes of it.
        effect: Effect,
    },
    /// Waits for a notify.
    Wait {
        /// The notify.
        id: u32,
        /// What it waits for.
        until: Until,
        /// Limit in seconds, 0 = no limit.
        timeout_s: u32,
    },
    /// Nothing: marks that task ids have wrapped.
    PlaceHolder,
    /// Writes 32 bits.
    WriteValue {
        /// First byte written.
        addr: u64,
        /// The value.
        value: u32,
    },
    /// Records a notify of another chip.
    RemoteRecord {
        /// Physical address of its register.
        addr: u64,
    },
    /// Starts the entries of a UB channel.
    UbDoorbell {
        /// Its sending end.
        jetty: Jetty,
        /// One past the last block to start.
        producer_index: u16,
    },
}

impl Action {
    /// Name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sdma { opcode: 0, .. } => "sdma copy",
            Self::Sdma { .. } => "sdma reduce",
            Self::Record { .. } => "notify record",
            Self::Wait { .. } => "notify wait",
            Self::PlaceHolder => "place holder",
            Self::WriteValue { .. } | Self::RemoteRecord { .. } => "write value",
            Self::UbDoorbell { .. } => "ub doorbell",
        }
    }
}

/// A decoded task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its 32-bit id.
    pub task_id: u32,
    /// What it does.
    pub action: Action,
}

/// Why a descriptor is not carried out.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No simulated type.
    #[error("descriptor type {value} ({}) in byte 0 is not supported", type_name(*value))]
    UnknownType {
        /// Its number.
        value: u8,
    },
    /// A reserved field is not zero.
    #[error("reserved field {name} in byte {byte} is {value:#x}, not 0")]
    Reserved {
        /// Field.
        name: &'static str,
        /// Byte that it starts in.
        byte: usize,
        /// What it holds.
        value: u64,
    },
    /// No element type and operator that the SDMA engine computes.
    #[error("opcode {value:#x} in byte 16 is no reduce that the engine computes")]
    Opcode {
        /// The opcode.
        value: u8,
    },
    /// A feature that is not simulated.
    #[error("field {name} in byte {byte} is {value:#x}: only {supported} is supported")]
    Unsupported {
        /// Field.
        name: &'static str,
        /// Byte that it starts in.
        byte: usize,
        /// What it holds.
        value: u64,
        /// What it may hold.
        supported: u64,
    },
}
debug_is_the_message!(DecodeError);

/// Name of a descriptor type, `"unknown"` where there is none.
pub fn type_name(number: u8) -> &'static str {
    match TYPES.get(number as usize) {
        Some(name) if !name.is_empty() => name,
        _ => "unknown",
    }
}

/// The sending end of a UB channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Jetty {
    /// Die of the device.
    pub die: u8,
    /// Function of the die.
    pub function: u8,
    /// Number in the function.
    pub id: u16,
}

impl std::fmt::Display for Jetty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { die, function, id } = self;
        write!(f, "jetty {id} of function {function}, die {die}")
    }
}

/// Opcode of an SDMA descriptor of any SoC: a copy (0), or a reduce that the engine computes.
///
/// # Errors
/// [`DecodeError::Opcode`].
pub(crate) fn sdma_opcode(sqe: &[u8; SQE_LEN]) -> Result<u8, DecodeError> {
    let opcode = sqe[16];
    if opcode == 0 || Reduce::from_opcode(opcode).is_some() {
        Ok(opcode)
    } else {
        Err(DecodeError::Opcode { value: opcode })
    }
}
