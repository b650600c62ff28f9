//! `generate`: man pages and completions, for `make install`.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use super::failure::Failure;

/// Write man pages and completions of bash, zsh and fish into a folder.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// The folder, which exists.
    folder: PathBuf,
}

/// Writes the files of `command`.
///
/// # Errors
/// The folder can't be written.
pub fn run(args: &GenerateArgs, mut command: Command) -> Result<(), Failure> {
    let failed = |error| Failure::Usage(format!("{}: {error}", args.folder.display()));
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "host-stub", &args.folder).map_err(failed)?;
    }
    clap_mangen::generate_to(command, &args.folder).map_err(failed)
}
