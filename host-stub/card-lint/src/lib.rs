//! Checks a library for the AI CPU of a card, or the package that carries it, without a card.
//!
//! An AI CPU runs AArch64 Linux. Its scheduler opens a library by `dlopen` and looks each kernel up by `dlsym`; the library
//! comes to the device in a tar.gz that a whitelist names, and the host finds the kernels in a description (JSON). What
//! loader and package parser do with a file is restated from their sources; **no file that passed here has run on
//! hardware yet**.
//!
//! - [`lint`] reads one file, a library or a package, and returns a [`Report`].
//! - [`Profile::Any`] is for every AICPU operator library: an error is what loader or package parser refuse, or what can't
//!   run. [`Profile::Own`] holds a library to each row of docs/card.md, as this project's own.
//! - Code is decoded by the mapping symbols of the file (`$x`, `$d`). A stripped file is swept from end to end, and the
//!   report says so.
//! - [`library_of_package`] takes a library out of a package, as a device does when the host opens it.
//!
//! It does not verify signatures, does not run code, and does not know which libraries a given card has.
//!
//! ```no_run
//! use hcomm_card_lint::{Options, Profile, lint};
//!
//! let report = lint("aicpu_mine.tar.gz".as_ref(), &Options { profile: Profile::Own, ..Options::default() })?;
//! for finding in &report.findings {
//!     println!("{finding}");
//! }
//! # Ok::<(), hcomm_card_lint::LintError>(())
//! ```
#![forbid(unsafe_code)]

mod archive;
mod bytes;
mod checks;
mod description;
mod elf;
mod input;
mod instructions;
mod package;
mod report;
mod whitelist;

pub use archive::library_of_package;
pub use input::{LintError, Options, lint};
pub use report::{Check, Finding, Profile, Report, Severity};
