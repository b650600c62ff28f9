//! Standard output in its two forms.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use host_stub::signals::without_write_signals;
use serde::Serialize;

use super::failure::Failure;

/// Form of the results.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// One JSON object instead of text.
    pub json: bool,
}

/// Standard output, on which a failure is always an error and never a signal.
struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not through `Stdout`, which would write the rest again when the process ends.
        Ok(without_write_signals(|| rustix::io::write(io::stdout(), bytes))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The JSON object of a failure.
#[derive(Serialize)]
struct FailureObject {
    error: String,
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_code: Option<i32>,
}

impl Output {
    /// Prints `answer` as JSON, or what `text` writes.
    pub fn answer<T: Serialize>(
        self,
        answer: &T,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut out = BufWriter::new(StandardOutput);
        if self.json {
            serde_json::to_writer(&mut out, answer).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            text(&mut out)?;
        }
        out.flush()?;
        Ok(())
    }

    /// Prints the failure on standard error, and with `--json` also on standard output.
    pub fn failure(self, failure: &Failure) -> ExitCode {
        match failure {
            // The reader has closed the pipe (`host-stub ... | head`): there is no reader for a message.
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Failure::Reported => return ExitCode::from(failure.exit_code()),
            // If standard error is closed, only the exit code reports the failure.
            Failure::Arguments(error) => drop(error.print()),
            _ => drop(writeln!(io::stderr(), "error: {}", failure.message())),
        }
        let code = failure.exit_code();
        if self.json {
            let object = FailureObject { error: failure.message(), code, runtime_code: failure.runtime_code() };
            drop(self.answer(&object, |_| Ok(())));
        }
        ExitCode::from(code)
    }
}
