//! `card-lint`: checks of a library or a package for a card, without the card.

use std::path::PathBuf;

use hcomm_card_lint::{Options, Profile, Report, lint};

use super::failure::Failure;
use super::output::Output;

/// Check a library of AI CPU kernels (.so) or the package that carries it (.tar.gz) for a card. Nothing that passes has
/// been run on hardware yet.
#[derive(Debug, clap::Args)]
pub struct CardLintArgs {
    /// Library or package.
    file: PathBuf,
    /// `any`: errors are what loader or package parser refuse, and what can't run. `own`: every row of docs/card.md.
    #[arg(long, value_enum, default_value = "any")]
    profile: ProfileArg,
    /// Description of the kernels, JSON or (.ini) INI; may be given more than once. Without it, those beside the file.
    #[arg(long, value_name = "FILE")]
    description: Vec<PathBuf>,
    /// Block of the package for the whitelist. Without it, whitelist.txt beside the package.
    #[arg(long, value_name = "FILE")]
    whitelist: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ProfileArg {
    Any,
    Own,
}

pub fn run(args: CardLintArgs, output: Output) -> Result<(), Failure> {
    let profile = match args.profile {
        ProfileArg::Any => Profile::Any,
        ProfileArg::Own => Profile::Own,
    };
    let options = Options { profile, descriptions: args.description, whitelist: args.whitelist };
    let report: Report = lint(&args.file, &options).map_err(|error| Failure::Usage(error.to_string()))?;
    output.answer(&report, |out| {
        for finding in &report.findings {
            writeln!(out, "{finding}")?;
        }
        for note in &report.notes {
            writeln!(out, "note: {note}")?;
        }
        writeln!(out, "{}: {} errors, {} warnings", report.file, report.errors, report.warnings)
    })?;
    if report.errors > 0 { Err(Failure::Reported) } else { Ok(()) }
}
