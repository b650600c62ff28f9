//! Which notify ids of a device are in use.

use super::notify::MAX_NOTIFY_IDS;
use hcomm_aicpu::spec::soc::Soc;

/// Notify ids of an Ascend910 device: a descriptor has 13 bits for one.
const MAX_NOTIFY_IDS_910: u32 = 1 << 13;

/// Fewer ids are free than are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewIds {
    /// Ids that are free.
    pub free: u64,
    /// Ids of the device.
    pub max: u64,
}

/// Notify ids that are in use. Each id has one user at a time.
#[derive(Debug)]
pub struct NotifyIds {
    max: u64,
    used: Vec<bool>,
    count: u64,
}

impl NotifyIds {
    /// The ids of a device, from 0 on, all free.
    pub fn new(soc: Soc) -> Self {
        let max = match soc {
            Soc::Ascend950 => MAX_NOTIFY_IDS,
            Soc::Ascend910B | Soc::Ascend910_93 => MAX_NOTIFY_IDS_910,
        };
        Self { max: max.into(), used: Vec::new(), count: 0 }
    }

    /// Takes the `count` lowest free ids.
    ///
    /// # Errors
    /// [`TooFewIds`]; no id is taken then.
    pub fn take(&mut self, count: u64) -> Result<Vec<u32>, TooFewIds> {
        let (max, free) = (self.max, self.max - self.count);
        if count > free {
            return Err(TooFewIds { free, max });
        }
        let mut ids = Vec::with_capacity(count as usize);
        let mut id = 0;
        while (ids.len() as u64) < count {
            if id == self.used.len() {
                self.used.push(false);
            }
            if !std::mem::replace(&mut self.used[id], true) {
                ids.push(id as u32);
            }
            id += 1;
        }
        self.count += count;
        Ok(ids)
    }

    /// Takes the lowest `count` free ids that follow each other. Gives the first of them; 0 for none.
    ///
    /// # Errors
    /// [`TooFewIds`], also if as many are free but do not follow each other; no id is taken then.
    pub fn take_run(&mut self, count: u64) -> Result<u32, TooFewIds> {
        let (max, free) = (self.max, self.max - self.count);
        let is_used = |id: u64| self.used.get(id as usize).is_some_and(|used| *used);
        let (mut first, mut id) = (0, 0);
        while id < first + count {
            if first + count > max {
                return Err(TooFewIds { free, max });
            }
            if is_used(id) {
                first = id + 1;
            }
            id += 1;
        }
        let end = (first + count) as usize;
        if self.used.len() < end {
            self.used.resize(end, false);
        }
        self.used[first as usize..end].fill(true);
        self.count += count;
        Ok(first as u32)
    }

    /// Frees ids that [`take`](Self::take) gave.
    pub fn give_back(&mut self, ids: impl Iterator<Item = u32>) {
        for id in ids {
            self.used[id as usize] = false;
            self.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_come_back() {
        for (soc, max) in [(Soc::Ascend950, 131_072), (Soc::Ascend910B, 8192)] {
            let mut ids = NotifyIds::new(soc);
            assert_eq!(ids.take(3).unwrap(), [0, 1, 2]);
            ids.give_back([1].into_iter());
            assert_eq!(ids.take(2).unwrap(), [1, 3]);
            let free = max - 4;
            assert_eq!(ids.take(free + 1), Err(TooFewIds { free, max }));
            assert_eq!(ids.take(free).unwrap().last(), Some(&(max as u32 - 1)));
        }
    }
}
