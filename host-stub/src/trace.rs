//! Files with the timeline of a run: `--trace FILE`, `HCOMM_SIM_TRACE=FILE`, [`DeviceOptions::trace`](crate::DeviceOptions).
//!
//! | part | what it holds |
//! |---|---|
//! | `file`, `schema` | what a user names, and what all formats have in common |
//! | `write` | timelines in the format of a file |
//! | `json` | Chrome trace events, which ui.perfetto.dev opens |
//! | `html` | one page that needs no network: zoom, pan, details |
//! | `text` | lines for people and scripts |
//! | `svg` | a still picture, for documents |
//! | `lines` | file and line of the calls that a timeline names |
//! | `session` | all devices of the process that write one file |
//! | `at_exit` | files of devices that are still open when the process ends |
//!
//! docs/trace.md is the schema of the files. What a timeline holds is [`hcomm_sim::timeline::model`].
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "registers a function that runs when the process ends")]
mod at_exit;
pub mod file;
mod html;
mod json;
pub(crate) mod lines;
pub mod schema;
pub(crate) mod session;
pub mod svg;
mod text;
mod write;

#[cfg(test)]
mod tests;

pub use file::{BadTraceFile, TRACE_VAR, TraceFile, TraceFormat};
pub use svg::picture;
