//! Arguments of the command line, and the result: text or one JSON object, and an exit code.

mod card_lint;
mod collective;
mod compare;
mod copy;
mod device_log;
mod digest;
mod explore;
mod failure;
mod generate;
mod number;
mod output;
mod products;
mod replace;
mod run;
mod session;
mod sqe;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;
use output::Output;

/// Runs communication kernels of an Ascend AI CPU on a simulated device.
#[derive(Debug, Parser)]
#[command(name = "host-stub", version, after_help = EXIT_CODES)]
struct Cli {
    /// Print exactly one JSON object on standard output.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 ok; 1 wrong data or a device error; 2 usage; 3 unsupported.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy random bytes through the device and check them.
    Run(run::RunArgs),
    /// Copy a file through the device and check it.
    Copy(copy::CopyArgs),
    /// Run a collective over several simulated devices, check it and count what it takes.
    Collective(collective::CollectiveArgs),
    /// Run two algorithms for one job, and compare what they take, with the time of a cost model.
    Compare(compare::CompareArgs),
    /// List the products that a device can be, and what works on each.
    Products,
    CardLint(card_lint::CardLintArgs),
    Explore(explore::ExploreArgs),
    /// Encode and decode task descriptors.
    Sqe {
        #[command(subcommand)]
        command: sqe::Command,
    },
    #[command(hide = true)]
    Generate(generate::GenerateArgs),
}

/// Parses the arguments of the process, runs the command and reports its result.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // From the raw arguments, so that an error in the arguments is printed as JSON, too.
    let output = Output { json: args.iter().any(|arg| arg == "--json") };
    let outcome = match Cli::try_parse_from(&args) {
        Ok(cli) => dispatch(cli.command, output),
        Err(answer) if answer.kind() == ErrorKind::DisplayVersion => {
            Output { json: false }.answer(&(), |out| out.write_all(version::text().as_bytes()))
        }
        // Help is no error.
        Err(answer) if !answer.use_stderr() => {
            return if answer.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(error) => Err(Failure::Arguments(error)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.failure(&failure),
    }
}

fn dispatch(command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(&args, output),
        Command::Copy(args) => copy::run(&args, output),
        Command::Collective(args) => collective::run(&args, output),
        Command::Compare(args) => compare::run(&args, output),
        Command::Products => products::run(output),
        Command::CardLint(args) => card_lint::run(args, output),
        Command::Explore(args) => explore::run(&args, output),
        Command::Sqe { command } => sqe::run(command, output),
        Command::Generate(args) => generate::run(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
