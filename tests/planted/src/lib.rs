//! Changes of a function, found in its syntax tree. The program plants the bugs of its table with them.
#![forbid(unsafe_code)]

pub mod change;
