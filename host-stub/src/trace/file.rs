//! The file that a user names, and its format.

use std::path::{Path, PathBuf};

/// Environment variable that names the file.
pub const TRACE_VAR: &str = "HCOMM_SIM_TRACE";

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Chrome trace events.
    Json,
    /// A page for a browser.
    Html,
    /// Lines.
    Text,
}

/// The file that a timeline is written to when its device closes, and its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    path: PathBuf,
    format: TraceFormat,
}

/// The name of the file does not say its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace file {path:?} must end in .json (for ui.perfetto.dev), .html (for a browser) or .txt")]
pub struct BadTraceFile {
    /// The name.
    pub path: PathBuf,
}

impl TraceFile {
    /// The file at `path`. `%p` in its name stands for the number of the process.
    ///
    /// # Errors
    /// [`BadTraceFile`]: no extension, or another than `json`, `html` and `txt`.
    pub fn new(path: &Path) -> Result<Self, BadTraceFile> {
        let bad = || BadTraceFile { path: path.to_owned() };
        let extension = path.extension().and_then(|extension| extension.to_str()).ok_or_else(bad)?;
        let format = match extension.to_ascii_lowercase().as_str() {
            "json" => TraceFormat::Json,
            "html" => TraceFormat::Html,
            "txt" => TraceFormat::Text,
            _ => return Err(bad()),
        };
        let path = match path.to_str() {
            Some(text) => PathBuf::from(text.replace("%p", &std::process::id().to_string())),
            None => path.to_owned(),
        };
        Ok(Self { path, format })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its format.
    pub fn format(&self) -> TraceFormat {
        self.format
    }
}
