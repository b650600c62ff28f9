//! Settings of a communicator that a program gives.

use std::ffi::CStr;

use super::error::CallError;
use super::hccl_types::{HCCL_COMM_CONFIG_MAGIC_WORD, HCCL_COMM_CONFIG_VERSION, HcclCommConfig};

/// Value of `hcclBufferSize` that means "not set".
const BUFFSIZE_NOT_SET: u32 = u32::MAX;

/// What of the settings makes a difference here.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommConfig {
    /// Bytes of the whole buffer; `None`: as the environment says.
    pub ccl_buffer: Option<u64>,
    /// Name; `None`: one of ours.
    pub name: Option<String>,
}

impl CommConfig {
    /// Reads settings. Those that are not here are for hardware.
    ///
    /// # Errors
    /// Settings that `HcclCommConfigInit` has not initialised, a buffer of 0 MB, a name that is not text.
    pub fn read(config: &HcclCommConfig) -> Result<Self, CallError> {
        let head: [u8; 16] = std::array::from_fn(|index| config.reserved[index] as u8);
        let size = u64::from_le_bytes(head[..8].try_into().expect("8 of 16 bytes"));
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 of 16 bytes"));
        let (magic, version) = (word(8), word(12));
        if magic != HCCL_COMM_CONFIG_MAGIC_WORD || size != size_of::<HcclCommConfig>() as u64 {
            let text = format!("config (size {size}, magic word {magic:#x}): initialise it with HcclCommConfigInit");
            return Err(CallError::Invalid(text));
        }
        if version == 0 || version > HCCL_COMM_CONFIG_VERSION {
            let must = "must be from 1 to 11 (HCCL_COMM_CONFIG_VERSION)";
            return Err(CallError::OutOfRange { what: "version of config", value: version.into(), must });
        }
        let ccl_buffer = match config.hcclBufferSize {
            BUFFSIZE_NOT_SET => None,
            0 => {
                let must = "must be at least 1 MB";
                return Err(CallError::OutOfRange { what: "config->hcclBufferSize", value: 0, must });
            }
            mb => Some(u64::from(mb) << 21),
        };
        let bytes: [u8; 128] = config.hcclCommName.map(|byte| byte as u8);
        let name = CStr::from_bytes_until_nul(&bytes);
        let name =
            name.map_err(|_| CallError::Invalid("config->hcclCommName has no zero byte at its end".to_owned()))?;
        let name = match name.to_str() {
            Ok("") => None,
            Ok(name) => Some(name.to_owned()),
            Err(_) => return Err(CallError::Invalid("config->hcclCommName is not UTF-8".to_owned())),
        };
        Ok(Self { ccl_buffer, name })
    }
}
