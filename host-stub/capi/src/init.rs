//! `aclInit` and `aclFinalize`: begin and end of the use of the runtime. Nothing here needs the first, so that a program
//! without it works; the second closes what is still open.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::codes::{ACL_ERROR_INVALID_FILE, ACL_ERROR_PARSE_FILE, ACL_ERROR_REPEAT_INITIALIZE, ACL_ERROR_UNINITIALIZE};
use super::device;
use super::error::CallError;
use host_stub::file;

/// Most bytes of a configuration.
const CONFIG_MAX: u64 = 1 << 20;

/// Whether `aclInit` has been called, and not `aclFinalize` since.
static IS_INITIALIZED: Mutex<bool> = Mutex::new(false);

/// Begins. The settings of the file at `config` are for hardware and are not used.
///
/// # Errors
/// Begun already; a file that can't be read or is no JSON.
pub fn init(config: Option<&Path>) -> Result<(), CallError> {
    let mut is_initialized = IS_INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_initialized {
        let text = "aclInit has been called before: call it once in a process, or after aclFinalize".into();
        return Err(CallError::Runtime { code: ACL_ERROR_REPEAT_INITIALIZE, text });
    }
    // An empty path is what programs pass that have no file.
    if let Some(config) = config.filter(|config| !config.as_os_str().is_empty()) {
        check_config(config)?;
    }
    *is_initialized = true;
    Ok(())
}

fn check_config(path: &Path) -> Result<(), CallError> {
    let wrong = |code, why: &dyn std::fmt::Display| {
        let text = format!("configuration {}: {why}", path.display());
        CallError::Runtime { code, text }
    };
    let text = file::read(path, CONFIG_MAX).map_err(|error| wrong(ACL_ERROR_INVALID_FILE, &error))?;
    // An empty file has no settings.
    if !text.trim_ascii().is_empty() {
        serde_json::from_slice::<serde_json::Value>(&text).map_err(|error| wrong(ACL_ERROR_PARSE_FILE, &error))?;
    }
    Ok(())
}

/// Ends: closes every device that has been set and not reset, in whichever thread.
///
/// # Errors
/// Not begun. What the checks have found and no call has returned; all are closed all the same.
pub fn finalize() -> Result<(), CallError> {
    let mut is_initialized = IS_INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_initialized {
        let text = "aclInit has not been called, or aclFinalize has been called since".into();
        return Err(CallError::Runtime { code: ACL_ERROR_UNINITIALIZE, text });
    }
    *is_initialized = false;
    device::close_all()
}
