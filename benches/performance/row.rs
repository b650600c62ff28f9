//! Measured values, and what docs/performance.toml asks of them.

use serde::Deserialize;

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name in docs/performance.toml.
    pub id: &'static str,
    /// The value, in the unit that is given there.
    pub value: f64,
}

impl Row {
    /// A row.
    pub fn new(id: &'static str, value: f64) -> Self {
        Self { id, value }
    }
}

/// Which values are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Small ones.
    Less,
    /// Large ones.
    More,
}

/// One row of docs/performance.toml.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name.
    pub id: String,
    /// What is measured.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// Which values are good.
    pub better: Better,
    /// What it is to be. Without one the row is there to compare with.
    pub target: Option<f64>,
    /// What `make test` asserts: of exact counts and sizes only, a little above what was measured last.
    pub limit: Option<f64>,
}

impl Target {
    /// Whether `value` is within the asserted limit.
    pub fn holds(&self, value: f64) -> bool {
        self.limit.is_none_or(|limit| match self.better {
            Better::Less => value <= limit,
            Better::More => value >= limit,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    row: Vec<Target>,
}

/// The rows of docs/performance.toml.
pub fn targets() -> Vec<Target> {
    let path = hcomm_testkit::root().join("docs/performance.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str::<Targets>(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())).row
}
