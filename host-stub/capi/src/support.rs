//! The product of the devices, and what it and its engines allow, according to [`Product`].
#![forbid(unsafe_code)]

use std::ffi::CStr;

use hcomm_aicpu::spec::channel::Protocol;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::Engine;

use super::error::CallError;
use host_stub::Error;
use host_stub::product::{Acquire, DEFAULT_PRODUCT, PRODUCTS, Product, Refusal, Side, engine_name};

/// Environment variable with the key of the product that every device of the process is.
const PRODUCT_VAR: &str = "HCOMM_SIM_PRODUCT";

/// The product of the devices.
///
/// # Errors
/// `HCOMM_SIM_PRODUCT` names none.
pub fn product() -> Result<&'static Product, CallError> {
    let Some(value) = std::env::var_os(PRODUCT_VAR) else { return Ok(DEFAULT_PRODUCT) };
    value.to_str().and_then(Product::from_key).ok_or_else(|| {
        let keys: Vec<_> = PRODUCTS.iter().map(|product| product.key).collect();
        CallError::Invalid(format!("{PRODUCT_VAR} is {value:?}: must be one of {}", keys.join(", ")))
    })
}

/// Whether the product of the devices is one that the document supports.
///
/// # Errors
/// What the product says; or there is none.
pub fn supported() -> Result<(), CallError> {
    let product = product()?;
    match product.soc {
        Some(_) => Ok(()),
        None => Err(Error::from(Refusal::Product(product.name)).into()),
    }
}

/// Room for the name of a SoC with a zero byte.
const SOC_NAME_MAX: usize = 16;

/// Names of the SoCs of [`PRODUCTS`] as C has them. Made at compile time: in a forked child a lock that another thread
/// held could never be taken.
static SOC_NAMES: [[u8; SOC_NAME_MAX]; PRODUCTS.len()] = {
    let mut names = [[0; SOC_NAME_MAX]; PRODUCTS.len()];
    let mut index = 0;
    while index < PRODUCTS.len() {
        let name = PRODUCTS[index].soc_name.as_bytes();
        assert!(name.len() < SOC_NAME_MAX);
        let mut at = 0;
        while at < name.len() {
            names[index][at] = name[at];
            at += 1;
        }
        index += 1;
    }
    names
};

/// Name of the SoC of the devices; empty if `HCOMM_SIM_PRODUCT` names no product.
pub fn soc_name() -> &'static CStr {
    let index = product().ok().and_then(|product| PRODUCTS.iter().position(|other| other == product));
    index.and_then(|index| CStr::from_bytes_until_nul(&SOC_NAMES[index]).ok()).unwrap_or_default()
}

/// The engine that threads of the `CommEngine` `number` have.
///
/// # Errors
/// What the product says.
pub fn thread_engine(product: &Product, function: Acquire, number: i32) -> Result<Engine, CallError> {
    Ok(product.engine_for(function, Engine(number)).map_err(Error::from)?)
}

/// The engine of a context: decides where its memory is.
///
/// # Errors
/// Not a `CommEngine`, or one without a context here.
pub fn context_engine(number: i32) -> Result<Engine, CallError> {
    match number {
        0 | 1 => Ok(Engine::CPU_TS),
        2 | 3 => Ok(Engine::AICPU_TS),
        4 | 5 => Err(CallError::NotSupported(format!("contexts of engine {number} are not simulated"))),
        _ => Err(CallError::OutOfRange {
            what: "engine",
            value: number.into(),
            must: "must be CPU (0), CPU_TS (1), AICPU (2) or AICPU_TS (3)",
        }),
    }
}

/// `CommProtocol` of the links between devices of a product.
pub fn link_protocol(product: &Product) -> Protocol {
    match product.soc {
        Some(Soc::Ascend910B | Soc::Ascend910_93) => Protocol::HCCS,
        Some(Soc::Ascend950) | None => Protocol::UB_CTP,
    }
}

/// Whether a channel of this `CommEngine` can have this `CommProtocol`.
///
/// # Errors
/// No engine has this number; a pair that is not simulated.
pub fn channel(product: &Product, engine: i32, protocol: i32) -> Result<(), CallError> {
    match engine {
        2 | 3 => {}
        0 | 1 | 4 | 5 => {
            let name = engine_name(Engine(engine));
            return Err(CallError::NotSupported(format!(
                "channels of engine {engine} ({name}) are not simulated: only AICPU (2) and AICPU_TS (3) have them"
            )));
        }
        _ => {
            let must = "must be a number of CommEngine from 0 to 5";
            return Err(CallError::OutOfRange { what: "engine", value: engine.into(), must });
        }
    }
    let linked = link_protocol(product);
    if protocol == linked.0 {
        return Ok(());
    }
    let name = if linked == Protocol::HCCS { "HCCS" } else { "UB_CTP" };
    Err(CallError::NotSupported(format!(
        "channels of protocol {protocol} are not simulated: those of {} have {name} ({})",
        product.name, linked.0
    )))
}

/// Whether channels can be asked for without being made.
///
/// # Errors
/// A product without this function.
pub fn channel_query(product: &Product) -> Result<(), CallError> {
    if link_protocol(product) == Protocol::HCCS {
        return Err(CallError::NotSupported(format!("{} has no HcclChannelQuery", product.name)));
    }
    Ok(())
}

/// Whether a channel can end there: on a device, with the protocol of the links. Of channels over HCCS it need not be said.
pub fn is_endpoint(product: &Product, protocol: i32, is_on_device: bool) -> bool {
    let linked = link_protocol(product);
    linked == Protocol::HCCS || protocol == linked.0 && is_on_device
}

/// Whether the host may queue a copy on a thread of `engine`.
///
/// # Errors
/// What the product says.
pub fn host_copy(product: &Product, engine: Engine) -> Result<(), CallError> {
    Ok(product.may_copy(Side::Host, engine).map_err(Error::from)?)
}
