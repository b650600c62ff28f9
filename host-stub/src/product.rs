//! Products that a simulated device can be, and what threads of each engine may do on them.
//!
//! Source: the product table and the constraints of the interface document; where the documents conflict, docs/decisions.md.
//! All code that depends on the product calls [`Product::engine_for`], [`Product::may_copy`] or
//! [`Product::max_aclrt_notify_id`].
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::code::{HCCL_E_NOT_FOUND, HCCL_E_NOT_SUPPORT, HCCL_E_PARA};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::stars910;
use hcomm_aicpu::spec::thread::Engine;

/// A product line of the document, or one server of it where the document names servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// What the user types.
    pub key: &'static str,
    /// Name in the document.
    pub name: &'static str,
    /// What `aclrtGetSocName` returns.
    pub soc_name: &'static str,
    /// Its SoC, if the document supports the product.
    pub soc: Option<Soc>,
}

const fn supported(key: &'static str, name: &'static str, soc: Soc) -> Product {
    Product { key, name, soc_name: soc.name(), soc: Some(soc) }
}

const fn unsupported(key: &'static str, name: &'static str, soc_name: &'static str) -> Product {
    Product { key, name, soc_name, soc: None }
}

/// All products, in the document's order.
pub const PRODUCTS: [Product; 10] = [
    supported("atlas-350", "Atlas 350", Soc::Ascend950),
    supported("atlas-a3-training", "Atlas A3 training", Soc::Ascend910_93),
    supported("atlas-a3-inference", "Atlas A3 inference", Soc::Ascend910_93),
    supported("atlas-800t-a2", "Atlas 800T A2", Soc::Ascend910B),
    supported("atlas-900-a2-pod", "Atlas 900 A2 PoD", Soc::Ascend910B),
    supported("atlas-200t-a2-box16", "Atlas 200T A2 Box16", Soc::Ascend910B),
    unsupported("atlas-a2-other", "Atlas A2, any other", "Ascend910B"),
    unsupported("atlas-200i-500-a2", "Atlas 200I/500 A2", "Ascend310B"),
    unsupported("atlas-inference", "Atlas inference", "Ascend310P"),
    unsupported("atlas-training", "Atlas training", "Ascend910"),
];

/// The product of a device unless its owner says otherwise.
pub const DEFAULT_PRODUCT: &Product = &PRODUCTS[0];

/// A function that returns handles of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquire {
    /// `HcclThreadAcquire`.
    Threads,
    /// `HcclThreadAcquireWithStream`.
    WithStream,
    /// `HcclThreadExportToCommEngine`.
    Export,
}

impl Acquire {
    /// Its parameter that names an engine.
    fn parameter(self) -> &'static str {
        match self {
            Self::Threads | Self::WithStream => "engine",
            Self::Export => "dstCommEngine",
        }
    }

    /// Numbers of the engines that it takes.
    fn engines(self) -> &'static [i32] {
        match self {
            Self::Threads | Self::Export => &[0, 1, 2, 3],
            Self::WithStream => &[0, 1],
        }
    }
}

/// Engines in a sentence, by name and number.
fn list_engines(engines: &[i32]) -> String {
    let names: Vec<_> = engines.iter().map(|engine| format!("{} ({engine})", engine_name(Engine(*engine)))).collect();
    names.join(", ")
}

/// Who calls the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A program of the host.
    Host,
    /// A kernel.
    Device,
}

/// Why a product refuses a call.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The document does not list the product.
    #[error("{0} is not supported: none of its threads can be acquired")]
    Product(&'static str),
    /// No engine has this number, or the function does not take it.
    #[error(
        "{} is {engine} ({}): must be one of {}",
        function.parameter(),
        engine_name(Engine(*engine)),
        list_engines(function.engines())
    )]
    Engine {
        /// The engine.
        engine: i32,
        /// The function.
        function: Acquire,
    },
    /// The function takes it on a card, but it is not simulated.
    #[error("threads of engine {engine} ({}) are not simulated", engine_name(Engine(*engine)))]
    NotSimulated {
        /// The engine.
        engine: i32,
    },
    /// On this product copies run on AICPU_TS threads, on the device side.
    #[error("{0} copies only in kernels, on threads of engine AICPU_TS")]
    HostCopy(&'static str),
    /// Kernels and threads of this product name notifies by thread and index.
    #[error("{0} has no notifies that are named by their id")]
    AclrtNotify(&'static str),
    /// A thread of the other side.
    #[error("a thread of engine {engine} ({}) is none of {side}", engine_name(Engine(*engine)))]
    WrongSide {
        /// Its engine.
        engine: i32,
        /// Where the call was made.
        side: Side,
    },
}

/// As the message: what `unwrap` and `main` print.
impl std::fmt::Debug for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Host => "the host",
            Self::Device => "a kernel",
        })
    }
}

impl Refusal {
    /// `HcclResult` of the C API.
    pub fn code(&self) -> i32 {
        match self {
            Self::Product(_) | Self::NotSimulated { .. } | Self::HostCopy(_) | Self::AclrtNotify(_) => {
                HCCL_E_NOT_SUPPORT
            }
            Self::Engine { .. } => HCCL_E_PARA,
            Self::WrongSide { .. } => HCCL_E_NOT_FOUND,
        }
    }
}

/// Engines of `CommEngine` by number, from 0.
const ENGINES: [&str; 6] = ["CPU", "CPU_TS", "AICPU", "AICPU_TS", "AIV", "CCU"];

/// Name of an engine, `"unknown"` for any other number.
pub fn engine_name(engine: Engine) -> &'static str {
    if engine.0 == -1 {
        return "RESERVED";
    }
    usize::try_from(engine.0).ok().and_then(|index| ENGINES.get(index)).copied().unwrap_or("unknown")
}

impl Product {
    /// The product with this key.
    pub fn from_key(key: &str) -> Option<&'static Self> {
        PRODUCTS.iter().find(|product| product.key == key)
    }

    /// The engine of the threads that `function` returns for `engine`: CPU and AICPU mean CPU_TS and AICPU_TS.
    ///
    /// # Errors
    /// [`Refusal`]; an unsupported product refuses first.
    pub fn engine_for(&self, function: Acquire, engine: Engine) -> Result<Engine, Refusal> {
        if self.soc.is_none() {
            return Err(Refusal::Product(self.name));
        }
        match (engine_name(engine), function) {
            ("CPU" | "CPU_TS", _) => Ok(Engine::CPU_TS),
            ("AICPU" | "AICPU_TS", Acquire::Threads | Acquire::Export) => Ok(Engine::AICPU_TS),
            ("CCU", Acquire::WithStream) => Err(Refusal::NotSimulated { engine: engine.0 }),
            _ => Err(Refusal::Engine { engine: engine.0, function }),
        }
    }

    /// Whether `HcommLocalCopyOnThread` works on a thread of `engine`, called on `side`.
    ///
    /// # Errors
    /// [`Refusal`]; an unsupported product refuses first.
    pub fn may_copy(&self, side: Side, engine: Engine) -> Result<(), Refusal> {
        let Some(soc) = self.soc else { return Err(Refusal::Product(self.name)) };
        match (side, engine) {
            (Side::Device, Engine::AICPU_TS) => Ok(()),
            (Side::Host, _) if soc == Soc::Ascend950 => Err(Refusal::HostCopy(self.name)),
            (Side::Host, Engine::CPU_TS) => Ok(()),
            _ => Err(Refusal::WrongSide { engine: engine.0, side }),
        }
    }

    /// Largest id of a notify that `HcommAclrtNotifyRecordOnThread` and `HcommAclrtNotifyWaitOnThread` take.
    ///
    /// # Errors
    /// [`Refusal`]: the product does not have these functions.
    pub fn max_aclrt_notify_id(&self) -> Result<u32, Refusal> {
        match self.soc {
            None => Err(Refusal::Product(self.name)),
            Some(Soc::Ascend950) => Err(Refusal::AclrtNotify(self.name)),
            Some(Soc::Ascend910B | Soc::Ascend910_93) => Ok(stars910::MAX_NOTIFY_ID),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of each engine from -1 to 6 and 255.
    fn codes(product: &Product, function: Acquire) -> [i32; 9] {
        let engines = [-1, 0, 1, 2, 3, 4, 5, 6, 255];
        engines.map(|engine| product.engine_for(function, Engine(engine)).err().map_or(0, |refusal| refusal.code()))
    }

    /// Case 51.
    #[test]
    fn each_engine_has_one_answer_from_each_function_on_each_product() {
        for product in &PRODUCTS {
            let is_supported = product.soc.is_some();
            let threads = if is_supported { [1, 0, 0, 0, 0, 1, 1, 1, 1] } else { [5; 9] };
            let with_stream = if is_supported { [1, 0, 0, 1, 1, 1, 5, 1, 1] } else { [5; 9] };
            assert_eq!(codes(product, Acquire::Threads), threads, "{}", product.name);
            assert_eq!(codes(product, Acquire::Export), threads, "{}", product.name);
            assert_eq!(codes(product, Acquire::WithStream), with_stream, "{}", product.name);
        }
    }

    /// Case 127.
    #[test]
    fn wrong_engine_is_told_by_the_name_of_its_parameter() {
        let text = |function, engine| Refusal::Engine { engine, function }.to_string();
        let (four, two) = ("CPU (0), CPU_TS (1), AICPU (2), AICPU_TS (3)", "CPU (0), CPU_TS (1)");
        assert_eq!(text(Acquire::Threads, -1), format!("engine is -1 (RESERVED): must be one of {four}"));
        assert_eq!(text(Acquire::WithStream, 3), format!("engine is 3 (AICPU_TS): must be one of {two}"));
        assert_eq!(text(Acquire::Export, 6), format!("dstCommEngine is 6 (unknown): must be one of {four}"));
        for product in PRODUCTS.iter().filter(|product| product.soc.is_some()) {
            for function in [Acquire::Threads, Acquire::WithStream, Acquire::Export] {
                let taken = (-1..7).filter(|engine| product.engine_for(function, Engine(*engine)).is_ok());
                assert_eq!(taken.collect::<Vec<_>>(), function.engines(), "{function:?} on {}", product.name);
            }
        }
    }

    #[test]
    fn host_copies_only_on_a2_and_a3() {
        for product in &PRODUCTS {
            let code = |side, engine| product.may_copy(side, engine).err().map_or(0, |refusal| refusal.code());
            let sides = [Side::Host, Side::Device];
            let answers = sides.map(|side| [code(side, Engine::CPU_TS), code(side, Engine::AICPU_TS)]);
            let expected = match product.soc {
                None => [[5, 5], [5, 5]],
                Some(Soc::Ascend950) => [[5, 5], [6, 0]],
                Some(_) => [[0, 6], [6, 0]],
            };
            assert_eq!(answers, expected, "{}", product.name);
        }
    }

    #[test]
    fn notifies_by_id_are_of_a2_and_a3() {
        for product in &PRODUCTS {
            let expected = match product.soc {
                None => Err(Refusal::Product(product.name)),
                Some(Soc::Ascend950) => Err(Refusal::AclrtNotify(product.name)),
                Some(_) => Ok(8191),
            };
            assert_eq!(product.max_aclrt_notify_id(), expected, "{}", product.name);
        }
    }

    #[test]
    fn the_documents_six_lines_are_all_there() {
        let supported = PRODUCTS.iter().filter(|product| product.soc.is_some()).count();
        assert_eq!((supported, PRODUCTS.len()), (6, 10));
        for product in &PRODUCTS {
            assert_eq!(Product::from_key(product.key), Some(product));
        }
        assert_eq!(DEFAULT_PRODUCT.name, "Atlas 350");
    }
}
