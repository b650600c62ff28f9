//! Limits of waits, for the core that runs the caller and until its kernel ends.

#[cfg(not(feature = "extern-abi"))]
use crate::context::change_core;
use crate::error::Error;

/// Sets how long a call waits for room in a full queue; 0 = without limit. Whole seconds: a fraction counts as a whole one.
///
/// # Errors
/// [`Error::BadTimeout`] for a number that is negative, not a number, or 2^32 and more; [`Error::NoCore`].
pub fn set_sq_full(seconds: f32) -> Result<(), Error> {
    let whole = whole_seconds(seconds)?;
    #[cfg(not(feature = "extern-abi"))]
    return change_core(|core| core.queues().set_sq_full_timeout_us(u64::from(whole) * 1_000_000));
    #[cfg(feature = "extern-abi")]
    crate::abi::result(crate::abi::HcommThreadResAcquireTimeOut(whole as f32))
}

/// Sets how long a queued wait without a limit of its own waits for its notify; 0 = without limit. Whole seconds, as
/// [`set_sq_full`].
///
/// # Errors
/// As [`set_sq_full`].
pub fn set_notify_wait(seconds: f32) -> Result<(), Error> {
    let whole = whole_seconds(seconds)?;
    #[cfg(not(feature = "extern-abi"))]
    return change_core(|core| core.set_notify_wait_timeout_s(whole));
    #[cfg(feature = "extern-abi")]
    crate::abi::result(crate::abi::HcommSetNotifyWaitTimeOut(whole as f32))
}

/// Rounds up: a part of a second must not become 0, which means no limit.
fn whole_seconds(seconds: f32) -> Result<u32, Error> {
    // 2^32 as f32. NaN is in no range.
    if !(0.0..4_294_967_296.0).contains(&seconds) {
        return Err(Error::BadTimeout(seconds));
    }
    let whole = seconds as u32;
    Ok(if (whole as f32) < seconds { whole + 1 } else { whole })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fractions_round_up() {
        let cases = [(0.0, 0), (-0.0, 0), (f32::MIN_POSITIVE, 1), (0.001, 1), (1.0, 1), (1.5, 2), (1836.0, 1836)];
        for (seconds, whole) in cases.into_iter().chain([(4_294_967_040.0, 4_294_967_040)]) {
            assert_eq!(whole_seconds(seconds), Ok(whole), "{seconds}");
        }
    }

    #[test]
    fn numbers_that_are_no_time_are_refused() {
        for seconds in [-1.0, -f32::MIN_POSITIVE, 4_294_967_296.0, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(whole_seconds(seconds), Err(Error::BadTimeout(seconds)));
        }
        assert!(matches!(whole_seconds(f32::NAN), Err(Error::BadTimeout(seconds)) if seconds.is_nan()));
    }
}
