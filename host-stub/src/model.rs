//! Cost models: TOML files with how long things take in deterministic mode (docs/model.md).
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use hcomm_sim::cost::CostModel;
use serde::Deserialize;

use crate::file;

/// Environment variable with the file of the cost model, for programs that do not choose one.
pub const MODEL_VAR: &str = "HCOMM_SIM_MODEL";
/// Name of the model with the stock values.
pub const STOCK: &str = "stock";
/// Largest time, a second, in ns.
const MAX_NS: i64 = 1_000_000_000;
/// Largest rate, 1000 TB/s.
const MAX_RATE: i64 = 1_000_000_000;
/// Largest file.
const MAX_LEN: u64 = 1 << 20;

/// Why a cost model can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The file can't be read.
    #[error("cost model {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// It is not TOML, or has a name or a kind of value that no parameter has.
    #[error("cost model {}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// A value is out of range.
    #[error("cost model {}: {name} is {value}: must be from {min} to {max}", path.display())]
    OutOfRange {
        /// The file.
        path: PathBuf,
        /// Table and key.
        name: &'static str,
        /// Its value.
        value: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
}

/// A cost model and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// `stock`, or the path of a file.
    pub name: String,
    /// Its numbers.
    pub costs: CostModel,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Text {
    kernel: Kernel,
    queue: Queue,
    sdma: Sdma,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Kernel {
    launch_ns: Option<i64>,
    call_ns: Option<i64>,
    look_ns: Option<i64>,
    doorbell_ns: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Queue {
    fetch_ns: Option<i64>,
    notify_ns: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sdma {
    start_ns: Option<i64>,
    bytes_per_us: Option<i64>,
}

impl Model {
    /// The model with the stock values, which are assumptions.
    pub fn stock() -> Self {
        Self { name: STOCK.to_owned(), costs: CostModel::default() }
    }

    /// The stock model if `name` is `stock`, else that of a file. What the file does not name has the stock value.
    ///
    /// # Errors
    /// [`ModelError`].
    pub fn read(name: &Path) -> Result<Self, ModelError> {
        if name == Path::new(STOCK) {
            return Ok(Self::stock());
        }
        let unreadable = |why: String| ModelError::Unreadable { path: name.to_owned(), why };
        let bytes = file::read(name, MAX_LEN).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        Ok(Self { name: name.display().to_string(), costs: parse(name, &text)? })
    }
}

/// The numbers of a file's text.
fn parse(path: &Path, text: &str) -> Result<CostModel, ModelError> {
    let text: Text = toml::from_str(text)
        .map_err(|error| ModelError::Malformed { path: path.to_owned(), why: error.to_string().trim().to_owned() })?;
    let stock = CostModel::default();
    let check = |name, value: Option<i64>, stock: u64, min, max| match value {
        None => Ok(stock),
        Some(value) if (min..=max).contains(&value) => Ok(value as u64),
        Some(value) => Err(ModelError::OutOfRange { path: path.to_owned(), name, value, min, max }),
    };
    let Text { kernel, queue, sdma } = text;
    Ok(CostModel {
        launch_ns: check("kernel.launch_ns", kernel.launch_ns, stock.launch_ns, 0, MAX_NS)?,
        call_ns: check("kernel.call_ns", kernel.call_ns, stock.call_ns, 1, MAX_NS)?,
        look_ns: check("kernel.look_ns", kernel.look_ns, stock.look_ns, 1, MAX_NS)?,
        doorbell_ns: check("kernel.doorbell_ns", kernel.doorbell_ns, stock.doorbell_ns, 0, MAX_NS)?,
        fetch_ns: check("queue.fetch_ns", queue.fetch_ns, stock.fetch_ns, 0, MAX_NS)?,
        notify_ns: check("queue.notify_ns", queue.notify_ns, stock.notify_ns, 0, MAX_NS)?,
        sdma_start_ns: check("sdma.start_ns", sdma.start_ns, stock.sdma_start_ns, 0, MAX_NS)?,
        sdma_bytes_per_us: check("sdma.bytes_per_us", sdma.bytes_per_us, stock.sdma_bytes_per_us, 1, MAX_RATE)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<CostModel, String> {
        parse(Path::new("m.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_file_does_not_name_has_the_stock_value() {
        assert_eq!(parsed(""), Ok(CostModel::default()));
        let text = "[sdma]\nbytes_per_us = 7 # slow\n[kernel]\nlaunch_ns = 0\n";
        let expected = CostModel { sdma_bytes_per_us: 7, launch_ns: 0, ..CostModel::default() };
        assert_eq!(parsed(text), Ok(expected));
    }

    #[test]
    fn wrong_values_are_told_with_name_value_and_limit() {
        for (text, told) in [
            ("[kernel]\ncall_ns = 0", "cost model m.toml: kernel.call_ns is 0: must be from 1 to 1000000000"),
            ("[queue]\nfetch_ns = -3", "cost model m.toml: queue.fetch_ns is -3: must be from 0 to 1000000000"),
            ("[sdma]\nbytes_per_us = 0", "cost model m.toml: sdma.bytes_per_us is 0: must be from 1 to 1000000000"),
        ] {
            assert_eq!(parsed(text), Err(told.to_owned()));
        }
        for (text, part) in [
            ("[sdma]\nspeed = 1", "speed"),
            ("[dma]\nstart_ns = 1", "dma"),
            ("[sdma]\nstart_ns = \"1\"", "start_ns"),
            ("[sdma", "TOML"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with("cost model m.toml: ") && error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn documented_model_is_the_stock_one() {
        let text = include_str!("../../docs/model.toml");
        assert_eq!(parsed(text), Ok(CostModel::default()));
        // Each parameter is there.
        assert_eq!(text.lines().filter(|line| line.contains(" = ")).count(), 8);
    }
}
