//! Text in a place of fixed size.

use core::fmt::{self, Write};

/// Text of at most `N` bytes; what does not fit is cut off.
#[derive(Clone, Copy)]
pub struct Line<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Line<N> {
    /// No text.
    pub const EMPTY: Self = Self { bytes: [0; N], len: 0 };

    /// The text.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut line = Self::EMPTY;
        // What is cut off is no error.
        let _ = line.write_fmt(text);
        line
    }

    /// Its bytes; the last character may be cut.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl<const N: usize> Write for Line<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let (rest, text) = (self.bytes.get_mut(self.len..).unwrap_or_default(), text.as_bytes());
        for (to, from) in rest.iter_mut().zip(text) {
            *to = *from;
        }
        self.len += rest.len().min(text.len());
        Ok(())
    }
}
