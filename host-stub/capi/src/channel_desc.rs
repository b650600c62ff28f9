//! What a program says of a channel: which values are valid, and in which order they are checked.
#![forbid(unsafe_code)]

use super::channels::Wanted;
use super::error::CallError;
use super::support;
use hcomm_aicpu::spec::channel::MAX_CHANNEL_NOTIFIES;
use host_stub::product::Product;

/// Bytes of the header.
pub const HEADER_LEN: usize = 16;
/// Its magic word, as `HcclChannelDescInit` sets it.
const MAGIC_WORD: u32 = 0x0f0f_0f0f;
/// `ENDPOINT_LOC_TYPE_DEVICE`.
const ON_DEVICE: i32 = 0;
/// `COMM_PROTOCOL_HCCS` to `COMM_PROTOCOL_UB_RTP`.
const PROTOCOLS: std::ops::RangeInclusive<i32> = 0..=9;

/// What is read of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `CommProtocol`.
    pub protocol: i32,
    /// `EndpointLocType`.
    pub location: i32,
}

/// What is read of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// `remoteRank`.
    pub peer: u32,
    /// `channelProtocol`.
    pub protocol: i32,
    pub local: Endpoint,
    pub remote: Endpoint,
    /// `notifyNum`.
    pub notify_count: u32,
}

impl Read {
    /// Checks a header: version, magic word, size, reserved.
    ///
    /// # Errors
    /// Not that of a description, or of a shorter one.
    pub fn check_header([_, magic, size, _]: [u32; HEADER_LEN / 4], whole: u32) -> Result<(), CallError> {
        if magic != MAGIC_WORD || size < whole {
            let text =
                format!("channelDescs (size {size}, magic word {magic:#x}): initialise them with HcclChannelDescInit");
            return Err(CallError::Invalid(text));
        }
        Ok(())
    }
}

/// Checks descriptions, first of all of them what is wrong in itself, then what is not simulated.
///
/// # Errors
/// The first that is wrong.
pub fn check_all(product: &Product, engine: i32, descs: &[Read]) -> Result<Vec<Wanted>, CallError> {
    let wrong = |what, value: i128, must| Err(CallError::OutOfRange { what, value, must });
    if let Some(desc) = descs.iter().find(|desc| !PROTOCOLS.contains(&desc.protocol)) {
        return wrong("channelProtocol", desc.protocol.into(), "must be a number of CommProtocol from 0 to 9");
    }
    if let Some(desc) = descs.iter().find(|desc| desc.notify_count > MAX_CHANNEL_NOTIFIES) {
        return wrong("notifyNum", desc.notify_count.into(), "must be at most 64");
    }
    for desc in descs {
        support::channel(product, engine, desc.protocol)?;
        for (what, endpoint) in [("localEndpoint", desc.local), ("remoteEndpoint", desc.remote)] {
            if !support::is_endpoint(product, endpoint.protocol, endpoint.location == ON_DEVICE) {
                let Endpoint { protocol, location } = endpoint;
                let text = format!(
                    "{what} has protocol {protocol} at location type {location}: take both ends from HcclRankGraphGetLinks"
                );
                return Err(CallError::Invalid(text));
            }
        }
    }
    Ok(descs.iter().map(|desc| Wanted { peer: desc.peer, notify_count: desc.notify_count }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_stub::product::DEFAULT_PRODUCT;

    const UB: Endpoint = Endpoint { protocol: 4, location: 0 };
    const GOOD: Read = Read { peer: 1, protocol: 4, local: UB, remote: UB, notify_count: 64 };

    fn code(engine: i32, desc: Read) -> i32 {
        check_all(DEFAULT_PRODUCT, engine, &[GOOD, desc]).err().map_or(0, |error| error.hccl_code())
    }

    #[test]
    fn every_description_of_a_call_is_checked() {
        for (desc, expected) in [
            (GOOD, 0),
            (Read { protocol: -1, ..GOOD }, 1),
            (Read { protocol: 10, ..GOOD }, 1),
            (Read { notify_count: 65, ..GOOD }, 1),
            (Read { protocol: 1, ..GOOD }, 5),
            (Read { protocol: 6, ..GOOD }, 5),
            (Read { local: Endpoint { protocol: -1, location: -1 }, ..GOOD }, 1),
            (Read { remote: Endpoint { location: 1, ..UB }, ..GOOD }, 1),
            // What is wrong comes before what is not simulated.
            (Read { protocol: 1, notify_count: 65, ..GOOD }, 1),
        ] {
            assert_eq!(code(3, desc), expected, "{desc:?}");
        }
        let engines = [-1, 0, 1, 2, 3, 4, 5, 6];
        assert_eq!(engines.map(|engine| code(engine, GOOD)), [1, 5, 5, 0, 0, 5, 5, 1]);
    }

    #[test]
    fn header_of_a_shorter_description_is_refused() {
        let code = |header| Read::check_header(header, 496).err().map_or(0, |error| error.hccl_code());
        assert_eq!(code([1, MAGIC_WORD, 496, 0]), 0);
        assert_eq!(code([2, MAGIC_WORD, 512, 0]), 0);
        assert_eq!(code([1, MAGIC_WORD, 495, 0]), 1);
        assert_eq!(code([1, 0, 496, 0]), 1);
    }
}
