//! Why a command failed, and its exit code.

use std::io;

use host_stub::Error;
use host_stub::sim::error::RT_TS_ERROR;

/// A command that failed. The kind decides the exit code.
#[derive(Debug)]
pub enum Failure {
    /// Wrong data or a device error.
    Device(String),
    /// An error of the device with the runtime's number for it.
    Runtime(String, i32),
    /// An invalid argument, or one that names a file that can't be used.
    Usage(String),
    /// Arguments that do not parse.
    Arguments(clap::Error),
    /// Understood, but not supported.
    Unsupported(String),
    /// The report that was printed shows what is wrong.
    Reported,
    /// Standard output could not be written.
    Output(io::Error),
}

impl Failure {
    /// Exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Device(_) | Self::Runtime(..) | Self::Reported | Self::Output(_) => 1,
            Self::Usage(_) | Self::Arguments(_) => 2,
            Self::Unsupported(_) => 3,
        }
    }

    /// The runtime's number of a device error (507xxx).
    pub fn runtime_code(&self) -> Option<i32> {
        match self {
            Self::Runtime(_, code) => Some(*code),
            _ => None,
        }
    }

    /// What went wrong, without the usage lines that a terminal gets in addition.
    pub fn message(&self) -> String {
        match self {
            Self::Device(text) | Self::Runtime(text, _) | Self::Usage(text) | Self::Unsupported(text) => text.clone(),
            Self::Arguments(error) => {
                let text = error.to_string();
                // A message may have several lines; tips and usage follow after an empty one.
                let lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
                let message = lines.join(" ");
                message.strip_prefix("error: ").unwrap_or(&message).to_owned()
            }
            Self::Reported => "see the report".to_owned(),
            Self::Output(error) => format!("standard output can't be written: {error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            // Device memory is exhausted only by the sizes in the arguments.
            Error::Card(error) if error.is_missing() => Self::Unsupported(text),
            Error::Card(error) => match error.runtime_code() {
                Some(code) => Self::Runtime(text, code),
                None => Self::Device(text),
            },
            Error::BadDeviceKind(_) => Self::Usage(text),
            Error::Load(_) | Error::BadSchedule(_) | Error::BadBuffSize(_) | Error::ZeroCclBuffer | Error::Alloc(_) => {
                Self::Usage(text)
            }
            Error::Refused(_)
            | Error::UnsupportedFault(_)
            | Error::NotDeterministic
            | Error::NotExplored
            | Error::ModelNeedsNative
            | Error::ModelNotExplored
            | Error::ModelOfOneDevice => Self::Unsupported(text),
            Error::Model(_) => Self::Usage(text),
            Error::MissingTool { .. } | Error::CorePlugin(_) | Error::CoreUnavailable(_) => Self::Unsupported(text),
            Error::Device(error) | Error::AlreadyFailed(error) => Self::Runtime(text, error.runtime_code()),
            Error::Race(_) | Error::Uninitialised(_) | Error::EarlyTask(_) | Error::StrayAccess(_) => {
                Self::Runtime(text, RT_TS_ERROR)
            }
            _ => Self::Device(text),
        }
    }
}
