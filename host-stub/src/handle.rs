//! What a [`Device`](crate::Device) is a handle to: the simulated device, or a card.
#![forbid(unsafe_code)]

use std::ops::Deref;
use std::sync::Arc;

use hcomm_aicpu::spec::DeviceAddr;

use crate::card::device::CardDevice;
use crate::card::error::CardError;
use crate::error::Error;
use crate::inner::Inner;

/// A device.
#[derive(Clone)]
pub(crate) enum Handle {
    Sim(Arc<Inner>),
    Card(Arc<CardDevice>),
}

/// The simulated device.
///
/// # Panics
/// On a card: every public call has either looked for it ([`Handle::card`]) or asked for the simulated device ([`Handle::on_sim`]).
impl Deref for Handle {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        match self {
            Self::Sim(inner) => inner,
            Self::Card(_) => panic!("a call for the simulated device has reached a card"),
        }
    }
}

impl Handle {
    /// The card, if it is one.
    pub(crate) fn card(&self) -> Option<&Arc<CardDevice>> {
        match self {
            Self::Sim(_) => None,
            Self::Card(card) => Some(card),
        }
    }

    /// # Errors
    /// It is a card, which does not do `what`.
    pub(crate) fn on_sim(&self, what: &'static str) -> Result<&Arc<Inner>, Error> {
        match self {
            Self::Sim(inner) => Ok(inner),
            Self::Card(_) => Err(CardError::NotOnCard(what).into()),
        }
    }

    /// Whether this is a copy of the device in a forked child.
    pub(crate) fn is_forked(&self) -> bool {
        match self {
            Self::Sim(inner) => inner.is_forked(),
            Self::Card(card) => card.is_forked(),
        }
    }

    /// # Errors
    /// [`Error::Forked`].
    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        match self {
            Self::Sim(inner) => inner.check_owner(),
            Self::Card(card) if card.is_forked() => Err(Error::Forked { owner: card.owner() }),
            Self::Card(_) => Ok(()),
        }
    }

    /// # Errors
    /// The simulated device has failed; [`Error::Forked`].
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        match self {
            Self::Sim(inner) => inner.check_alive(),
            Self::Card(_) => self.check_owner(),
        }
    }

    /// Frees without a look at what the checks have found.
    pub(crate) fn free_unchecked(&self, addr: DeviceAddr) -> Result<(), Error> {
        match self {
            Self::Sim(inner) => inner.free_unchecked(addr),
            Self::Card(card) => {
                self.check_owner()?;
                Ok(card.free(addr.0)?)
            }
        }
    }
}
