//! Live allocations, so that an address is named as allocation and offset.

use std::collections::BTreeMap;

use super::model::Value;
use crate::event::Range;

/// Allocations of a device.
#[derive(Default)]
pub(super) struct Allocations {
    /// Length and number by first byte.
    live: BTreeMap<u64, (u64, u64)>,
    count: u64,
}

impl Allocations {
    /// Gives the number of a new allocation.
    pub(super) fn add(&mut self, range: Range) -> u64 {
        self.count += 1;
        self.live.insert(range.addr, (range.len, self.count));
        self.count
    }

    /// Gives the number of an allocation that is freed.
    pub(super) fn remove(&mut self, range: Range) -> Option<u64> {
        self.live.remove(&range.addr).map(|(_, number)| number)
    }

    pub(super) fn place(&self, Range { addr, len }: Range) -> Value {
        let block = self.live.range(..=addr).next_back();
        match block.filter(|(start, (size, _))| addr - **start < *size) {
            Some((start, (_, number))) => Value::Memory { allocation: Some(*number), offset: addr - start, len },
            None => Value::Memory { allocation: None, offset: addr, len },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_named_by_the_live_allocation_that_it_lies_in() {
        let mut allocations = Allocations::default();
        let range = |addr, len| Range { addr, len };
        assert_eq!([allocations.add(range(100, 50)), allocations.add(range(300, 8))], [1, 2]);
        let inside = |number, offset, len| Value::Memory { allocation: Some(number), offset, len };
        assert_eq!(allocations.place(range(149, 9)), inside(1, 49, 9));
        assert_eq!(allocations.place(range(300, 8)), inside(2, 0, 8));
        assert_eq!(allocations.place(range(150, 1)), Value::Memory { allocation: None, offset: 150, len: 1 });
        assert_eq!([allocations.remove(range(100, 50)), allocations.remove(range(100, 50))], [Some(1), None]);
        assert_eq!(allocations.place(range(100, 1)), Value::Memory { allocation: None, offset: 100, len: 1 });
        assert_eq!(inside(2, 5, 3).to_string(), "allocation 2 + 5, 3 bytes");
    }
}
