//! Log facade: `defmt` in the image, `log` in a host process, else nothing.

macro_rules! warn_ {
    ($($arg:tt)*) => {{
        #[cfg(feature = "defmt")]
        defmt::warn!($($arg)*);
        #[cfg(all(feature = "log", not(feature = "defmt")))]
        log::warn!($($arg)*);
        #[cfg(not(any(feature = "defmt", feature = "log")))]
        {
            let _ = format_args!($($arg)*);
        }
    }};
}

pub(crate) use warn_ as warn;
