//! Handles: numbers that name live objects of one kind, and are never used again.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use super::error::CallError;

/// Top byte of every handle. No address of a process has it, so a handle that is used as a pointer faults.
const MARK: u64 = 0x5a << 56;
const KIND_SHIFT: u32 = 48;

/// The live objects of one kind.
pub struct Handles<T> {
    /// Name of the kind, for messages.
    kind: &'static str,
    first: u64,
    next: u64,
    live: BTreeMap<u64, T>,
}

impl<T> Handles<T> {
    /// No objects. `number` tells the kinds apart.
    pub fn new(kind: &'static str, number: u8) -> Self {
        let first = MARK | u64::from(number) << KIND_SHIFT | 1;
        Self { kind, first, next: first, live: BTreeMap::new() }
    }

    /// Takes an object and gives its handle.
    pub fn insert(&mut self, object: T) -> u64 {
        let handle = self.next;
        self.next += 1;
        self.live.insert(handle, object);
        handle
    }

    /// # Errors
    /// The handle names no live object.
    pub fn get(&self, handle: u64) -> Result<&T, CallError> {
        self.live.get(&handle).ok_or_else(|| self.missing(handle))
    }

    /// # Errors
    /// The handle names no live object.
    pub fn get_mut(&mut self, handle: u64) -> Result<&mut T, CallError> {
        let error = self.missing(handle);
        self.live.get_mut(&handle).ok_or(error)
    }

    /// # Errors
    /// The handle names no live object.
    pub fn remove(&mut self, handle: u64) -> Result<T, CallError> {
        self.live.remove(&handle).ok_or_else(|| self.missing(handle))
    }

    /// Handle of an object.
    pub fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<u64> {
        self.live.iter().find(|(_, object)| is_it(object)).map(|(handle, _)| *handle)
    }

    /// Removes the objects for which `is_gone` is true, and returns them.
    pub fn extract(&mut self, mut is_gone: impl FnMut(&T) -> bool) -> Vec<T> {
        let gone: Vec<u64> =
            self.live.iter().filter(|(_, object)| is_gone(object)).map(|(handle, _)| *handle).collect();
        gone.iter().filter_map(|handle| self.live.remove(handle)).collect()
    }

    /// Copies of the objects for which `is_it` is true.
    pub fn all(&self, mut is_it: impl FnMut(&T) -> bool) -> Vec<T>
    where
        T: Clone,
    {
        self.live.values().filter(|object| is_it(object)).cloned().collect()
    }

    fn missing(&self, handle: u64) -> CallError {
        let kind = self.kind;
        match handle {
            0 => CallError::Null(kind),
            _ if (self.first..self.next).contains(&handle) => CallError::Destroyed { kind, handle },
            _ => CallError::NoHandle { kind, handle },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_is_never_used_again() {
        let (mut numbers, mut others) = (Handles::new("number", 1), Handles::new("other", 2));
        let (first, other) = (numbers.insert(10), others.insert(()));
        assert_eq!(numbers.remove(first).unwrap(), 10);
        let second = numbers.insert(11);
        assert_ne!(first, second);
        assert_eq!(numbers.get(first).unwrap_err().to_string(), format!("number {first:#x} has been destroyed"));
        assert_eq!(numbers.get(other).unwrap_err().to_string(), format!("{other:#x} is not a number"));
        assert_eq!(numbers.remove(0).unwrap_err().to_string(), "number is null");
        assert_eq!(*numbers.get_mut(second).unwrap(), 11);
    }
}
