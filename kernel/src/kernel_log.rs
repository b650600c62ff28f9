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

/// Logs a line from a kernel in a library of the CPU `linux`: see the form without feature `linux`.
#[cfg(feature = "linux")]
#[macro_export]
macro_rules! kernel_log {
    ($level:ident, $text:literal $(, $arg:expr)* $(,)?) => {
        $crate::__log_line(stringify!($level), format_args!($text $(, $arg)*))
    };
}

/// Logs a line from a kernel: `kernel_log!(debug, "{} bytes in {} pieces", len, pieces)`.
///
/// The level is `error`, `warn`, `info`, `debug` or `trace`; the text has `{}` or `{:#x}` for each argument, which are numbers,
/// truth values or text. In the image a line is a `defmt` frame, which the host turns into text; natively it is a line of the
/// `log` crate; in libhcomm_kernels.so (feature `linux`) the runner hands it to the host. All reach the logger of the host process with
/// the target [`LOG_TARGET`]. The image keeps no line below `debug`, and a line of the runner is cut after 255 bytes.
/// In a library for a card (feature `card`) they reach the log of the AI CPU's scheduler, if it has one.
#[cfg(not(any(feature = "image", feature = "linux")))]
#[macro_export]
macro_rules! kernel_log {
    ($level:ident, $text:literal $(, $arg:expr)* $(,)?) => {
        $crate::__log::$level!(target: $crate::LOG_TARGET, $text $(, $arg)*)
    };
}
