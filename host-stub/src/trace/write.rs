//! Timelines in the format of a file.

use std::io::{self, Write};

use hcomm_sim::timeline::model::Timeline;

use super::file::TraceFormat;
use super::{html, json, text};

impl TraceFormat {
    /// Writes timelines, one for each device.
    ///
    /// # Errors
    /// What `out` answers.
    pub fn write(self, timelines: &[Timeline], out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Json => json::write(timelines, out),
            Self::Html => html::write(timelines, out),
            Self::Text => text::write(timelines, out),
        }
    }
}
