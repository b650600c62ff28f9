//! What a run of the checks has found.

use std::fmt;

use serde::Serialize;

/// How much is asked of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Any AICPU operator library: what loader or package parser refuse, or what can't run, is an error.
    #[default]
    Any,
    /// This project's own libraries: every row of docs/card.md is an error.
    Own,
}

/// Whether a finding makes the file unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It must be corrected.
    Error,
    /// It may go wrong on some cards.
    Warning,
}

/// The rows of docs/card.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the rows, and docs/card.md says what each asks")]
pub enum Check {
    Elf,
    Name,
    Exports,
    Undefined,
    Needed,
    Versions,
    Hardening,
    Alignment,
    Tls,
    Code,
    OutlineAtomics,
    Layout,
    Modes,
    Hashes,
    Description,
    Whitelist,
}

impl Check {
    /// All rows, in the order of docs/card.md.
    pub const ALL: [Self; 16] = [
        Self::Elf,
        Self::Name,
        Self::Exports,
        Self::Undefined,
        Self::Needed,
        Self::Versions,
        Self::Hardening,
        Self::Alignment,
        Self::Tls,
        Self::Code,
        Self::OutlineAtomics,
        Self::Layout,
        Self::Modes,
        Self::Hashes,
        Self::Description,
        Self::Whitelist,
    ];

    /// Name of the row, as JSON and messages have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::Name => "name",
            Self::Exports => "exports",
            Self::Undefined => "undefined",
            Self::Needed => "needed",
            Self::Versions => "versions",
            Self::Hardening => "hardening",
            Self::Alignment => "alignment",
            Self::Tls => "tls",
            Self::Code => "code",
            Self::OutlineAtomics => "outline-atomics",
            Self::Layout => "layout",
            Self::Modes => "modes",
            Self::Hashes => "hashes",
            Self::Description => "description",
            Self::Whitelist => "whitelist",
        }
    }
}

/// One thing that is wrong with the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Row that it belongs to.
    pub check: Check,
    /// Whether the file is unusable.
    pub severity: Severity,
    /// File, or file in the package, that it is about.
    pub file: String,
    /// What is wrong, with which value.
    pub message: String,
    /// What happens on a card, and so why it matters.
    pub why: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(
            f,
            "{severity}[{}]: {}: {}\n    why it matters: {}",
            self.check.name(),
            self.file,
            self.message,
            self.why
        )
    }
}

/// Answer of [`lint`](crate::lint).
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// File that was read.
    pub file: String,
    /// What was asked of it.
    pub profile: Profile,
    /// Number of findings that make it unusable.
    pub errors: usize,
    /// Number of the others.
    pub warnings: usize,
    /// Errors first, then warnings, each in the order of the rows.
    pub findings: Vec<Finding>,
    /// What the report can't speak for: a stripped file, a description that is missing.
    pub notes: Vec<String>,
}

/// Collects findings while the checks run.
#[derive(Debug)]
pub struct Sink {
    /// What is asked.
    pub profile: Profile,
    findings: Vec<Finding>,
    notes: Vec<String>,
}

impl Sink {
    /// Nothing found yet.
    pub fn new(profile: Profile) -> Self {
        Self { profile, findings: Vec::new(), notes: Vec::new() }
    }

    /// Whether every row is an error.
    pub fn is_own(&self) -> bool {
        self.profile == Profile::Own
    }

    /// Something that is wrong in both profiles.
    pub fn error(&mut self, check: Check, file: &str, message: String, why: &'static str) {
        self.push(check, Severity::Error, file, message, why);
    }

    /// Something that is an error of our own libraries, and a warning for others.
    pub fn error_or_warning(&mut self, check: Check, file: &str, message: String, why: &'static str) {
        let severity = if self.is_own() { Severity::Error } else { Severity::Warning };
        self.push(check, severity, file, message, why);
    }

    /// Something that is asked of our own libraries only.
    pub fn own(&mut self, check: Check, file: &str, message: String, why: &'static str) {
        if self.is_own() {
            self.push(check, Severity::Error, file, message, why);
        }
    }

    /// Something that the report can't speak for.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Adds what another one has collected.
    pub fn absorb(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.notes.extend(other.notes);
    }

    fn push(&mut self, check: Check, severity: Severity, file: &str, message: String, why: &'static str) {
        let finding = Finding { check, severity, file: file.to_owned(), message, why };
        // A name is looked at in the description, and again at the file.
        if check != Check::Name || !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// The report about `file`.
    pub fn report(mut self, file: String) -> Report {
        self.findings.sort_by_key(|finding| (finding.severity, finding.check as usize));
        let errors = self.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        let warnings = self.findings.len() - errors;
        Report { file, profile: self.profile, errors, warnings, findings: self.findings, notes: self.notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        for check in Check::ALL {
            assert_eq!(serde_json::to_value(check).unwrap(), check.name());
        }
    }

    #[test]
    fn errors_come_first_and_profile_decides_what_is_one() {
        for (profile, severities) in [
            (Profile::Any, vec![Severity::Error, Severity::Warning]),
            (Profile::Own, vec![Severity::Error, Severity::Error, Severity::Error]),
        ] {
            let mut sink = Sink::new(profile);
            sink.error_or_warning(Check::Exports, "x.so", "a".into(), "b");
            sink.own(Check::Hardening, "x.so", "a".into(), "b");
            sink.error(Check::Name, "x.so", "a".into(), "b");
            sink.error(Check::Name, "x.so", "a".into(), "b");
            let report = sink.report("x.so".into());
            let found: Vec<_> = report.findings.iter().map(|finding| finding.severity).collect();
            assert_eq!(found, severities);
            assert_eq!(report.errors + report.warnings, severities.len());
        }
    }
}
