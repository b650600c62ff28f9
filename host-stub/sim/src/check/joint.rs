//! Checks that devices which are joined have in common: bytes and orders go from one device to another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::{Event, Observer};

/// A check of several devices.
pub trait JointCheck: Observer {
    /// What a device brings.
    type Member;

    /// Adds the device in slot `device` of the process.
    fn join(&mut self, device: usize, member: Self::Member);

    /// That device is closed.
    fn leave(&mut self, device: usize);
}

/// A check with the devices that it has now: slot, and number of the use of that slot.
#[derive(Debug, Default)]
pub struct Joint<C> {
    check: C,
    members: Vec<(usize, u64)>,
    joined: u64,
}

fn lock<C>(joint: &Mutex<Joint<C>>) -> MutexGuard<'_, Joint<C>> {
    joint.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the events of one device to a check.
pub struct Membership<C: JointCheck> {
    joint: Arc<Mutex<Joint<C>>>,
    number: u64,
}

impl<C: JointCheck> Membership<C> {
    /// Adds the device in slot `device`. It leaves when this is dropped, or when another one joins with the same slot.
    pub fn new(joint: &Arc<Mutex<Joint<C>>>, device: usize, member: C::Member) -> Self {
        let mut of = lock(joint);
        of.remove(|(slot, _)| slot == device);
        of.joined += 1;
        let number = of.joined;
        of.members.push((device, number));
        of.check.join(device, member);
        drop(of);
        Self { joint: Arc::clone(joint), number }
    }
}

impl<C: JointCheck> Joint<C> {
    fn remove(&mut self, is_it: impl Fn((usize, u64)) -> bool) {
        if let Some(place) = self.members.iter().position(|member| is_it(*member)) {
            let (device, _) = self.members.swap_remove(place);
            self.check.leave(device);
        }
    }
}

impl<C: JointCheck> Observer for Membership<C> {
    fn on(&mut self, event: &Event) {
        lock(&self.joint).check.on(event);
    }
}

impl<C: JointCheck> Drop for Membership<C> {
    fn drop(&mut self) {
        lock(&self.joint).remove(|(_, number)| number == self.number);
    }
}
