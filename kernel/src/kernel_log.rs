//! Log lines of kernels: one macro for every place that a kernel runs at.

/// Target of the lines in the log of the host process, whatever the CPU.
pub const LOG_TARGET: &str = "device";

/// Logs a line from a kernel, in the image: see the form without feature `image`.
#[cfg(feature = "image")]
#[macro_export]
macro_rules! kernel_log {
    ($level:ident, $text:literal $(, $arg:expr)* $(,)?) => {
        ::defmt::$level!($text $(, $arg)*)
    };
}

/// Logs a line from a kernel: `kernel_log!(debug, "{} bytes in {} pieces", len, pieces)`.
///
/// The level is `error`, `warn`, `info`, `debug` or `trace`; the text has `{}` or `{:#x}` for each argument, which are numbers,
/// truth values or text. In the image a line is a `defmt` frame, which the host turns into text; natively it is a line of the
/// `log` crate. Both reach the logger of the host process with the target [`LOG_TARGET`]. The image keeps no line below `debug`.
/// In a library for a card (feature `card`) they reach the log of the AI CPU's scheduler, if it has one; in libhcomm_kernels.so
/// (feature `linux`) nothing is logged.
#[cfg(not(feature = "image"))]
#[macro_export]
macro_rules! kernel_log {
    ($level:ident, $text:literal $(, $arg:expr)* $(,)?) => {
        if $crate::__IS_LOGGED {
            $crate::__log::$level!(target: $crate::LOG_TARGET, $text $(, $arg)*);
        }
    };
}

#[doc(hidden)]
#[cfg(not(feature = "image"))]
pub const IS_LOGGED: bool = !cfg!(feature = "linux");
