//! Why a kernel binary was not loaded, or a kernel of it not found.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use super::codes;

/// Why a binary was not loaded, or a kernel of it not found.
#[derive(thiserror::Error)]
pub enum BinaryError {
    /// The description can't be read.
    #[error("operator description {}: {source}", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not JSON.
    #[error("operator description {} is not json: {source}", path.display())]
    NotJson {
        /// File.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A key is missing.
    #[error("operator description {}: {place} has no key {key}", path.display())]
    MissingKey {
        /// File.
        path: PathBuf,
        /// Whose key.
        place: String,
        /// The key.
        key: &'static str,
    },
    /// A value is wrong.
    #[error("operator description {}: {place} is {value}: {must}", path.display())]
    BadValue {
        /// File.
        path: PathBuf,
        /// Whose value.
        place: String,
        /// The value.
        value: String,
        /// What it must be.
        must: &'static str,
    },
    /// The library does not exist.
    #[error("library {name} is not there (looked for {})", .looked.join(", "))]
    NoLibrary {
        /// `kernelSo`.
        name: String,
        /// Files and packages where it was looked for.
        looked: Vec<String>,
    },
    /// There is more than one.
    #[error("library {name} is there more than once: {}: which one is meant is not clear, so keep one", list(.places))]
    TwoLibraries {
        /// `kernelSo`.
        name: String,
        /// Where they are.
        places: Vec<PathBuf>,
    },
    /// The library can't be loaded.
    #[error("library {}: {reason}", path.display())]
    Load {
        /// File.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The description does not have the operator.
    #[error("operator description {} has no operator {name}: there are {}", path.display(), known.join(", "))]
    NoOperator {
        /// File.
        path: PathBuf,
        /// The name.
        name: String,
        /// The operators of the description.
        known: Vec<String>,
    },
    /// The library does not have the function.
    #[error("library {} has no function {name}", path.display())]
    NoFunction {
        /// File.
        path: PathBuf,
        /// `functionName`.
        name: String,
    },
}

/// As the message.
impl std::fmt::Debug for BinaryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl BinaryError {
    /// As `aclError`: each kind of mistake has its own number.
    pub fn acl_code(&self) -> i32 {
        match self {
            Self::Read { .. } => codes::ACL_ERROR_INVALID_FILE,
            Self::NotJson { .. } => codes::ACL_ERROR_PARSE_FILE,
            Self::MissingKey { .. } => codes::ACL_ERROR_FILE_MISSING_ATTR,
            Self::BadValue { .. } => codes::ACL_ERROR_FILE_ATTR_INVALID,
            Self::NoLibrary { .. } | Self::TwoLibraries { .. } => codes::ACL_ERROR_RT_AICPU_INFO_LOAD_ERROR,
            Self::Load { .. } => codes::ACL_ERROR_OP_LOAD_FAILED,
            Self::NoOperator { .. } => codes::ACL_ERROR_OP_NOT_FOUND,
            Self::NoFunction { .. } => codes::ACL_ERROR_KERNEL_NOT_FOUND,
        }
    }
}
