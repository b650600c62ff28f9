//! Uniform random choices from a seed.

use crate::event::{Actor, Chooser};
use crate::random::SplitMix;

/// Each actor that can go on is as likely as the others.
pub struct Uniform(SplitMix);

impl Uniform {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }
}

impl Chooser for Uniform {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        match ready.len() {
            1 => 0,
            count => self.0.below(count as u64) as usize,
        }
    }
}
