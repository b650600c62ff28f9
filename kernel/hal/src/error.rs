//! Why a queue can't be used.

/// The HAL is missing, refused a call, or returned an invalid value.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HalError {
    /// No library of the process has the function.
    #[error("no library of this process has {0}: is the kernel outside the AI CPU's scheduler?")]
    Missing(&'static str),
    /// The function returned a code.
    #[error("{function} returned {code}")]
    Failed {
        /// Name of the function.
        function: &'static str,
        /// Code of the driver.
        code: i32,
    },
    /// The function returned a code for a property of a queue.
    #[error("halSqCqQuery returned {code} for property {property} of sq {sq}")]
    Query {
        /// Number of the property.
        property: u32,
        /// Submission queue.
        sq: u32,
        /// Code of the driver.
        code: i32,
    },
    /// A number is out of range.
    #[error("{what} of sq {sq} is {value}, allowed are {min} to {max}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Submission queue.
        sq: u32,
        /// What it is.
        value: u64,
        /// Smallest valid value.
        min: u64,
        /// Largest valid value.
        max: u64,
    },
    /// The ring lies where 64-byte entries can't.
    #[error("the ring of sq {sq} is at {base:#x}, which is not a multiple of 64 above 0")]
    Base {
        /// Submission queue.
        sq: u32,
        /// Address from the HAL.
        base: u64,
    },
}

/// The message: what `unwrap` and a failed assertion print.
impl core::fmt::Debug for HalError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// The doorbell did not take the new tail.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The queue is paused or was reset.
    #[error("sq {sq} is paused or not valid (code 30)")]
    Suspended {
        /// Submission queue.
        sq: u32,
    },
    /// Any other reason.
    #[error("the tail of sq {sq} was refused with code {code}")]
    Refused {
        /// Submission queue.
        sq: u32,
        /// Code of the driver.
        code: i32,
    },
}

/// The message: what `unwrap` and a failed assertion print.
impl core::fmt::Debug for RingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}
