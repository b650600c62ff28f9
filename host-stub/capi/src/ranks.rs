//! Ranks of communicators: who has joined, what they hand to each other, and who waits for whom.
//!
//! What is here is what ranks in different processes would send to each other: plain data. The one lock of it is held for single
//! updates; a thread that waits does not hold it.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::CallError;
use super::this_thread::thread_number;
use super::waits::{Waits, connect_timeout, timed_out};
use hcomm_sim::fabric::Offer;
use host_stub::channel::MAX_RANKS;

/// How often a waiting thread looks whether the device of a peer has failed.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Where the device of a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the device.
    pub index: i32,
    /// Its slot.
    pub slot: u32,
    /// Tells it from the devices that had the slot before.
    pub generation: u32,
}

/// A rank of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Number of the communicator.
    pub group: u64,
    /// Rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
}

/// What names an end of a channel that two ranks make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// Rank of the peer.
    pub peer: u32,
    /// Number of the channel between the two.
    pub number: u32,
}

/// A rank that has joined.
struct Member {
    place: Place,
    /// Number of the thread that has used its communicator last; `None`: the one that has made all ranks.
    thread: Option<u64>,
    /// Why it takes part no longer.
    left: Option<&'static str>,
}

/// The ranks of one communicator.
#[derive(Default)]
struct Group {
    /// What the first rank has said.
    size: Option<u32>,
    members: BTreeMap<u32, Member>,
    is_complete: bool,
    /// Offers that have not been taken, by sender, receiver and number of the channel. Attempt *n* of one end meets attempt *n* of
    /// the other.
    offers: BTreeMap<(u32, u32, u32), VecDeque<Offer>>,
}

#[derive(Default)]
struct State {
    /// Id of the process that the rest is true of.
    process: u32,
    groups: BTreeMap<u64, Group>,
    last_group: u64,
    waits: Waits,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// The state, held.
struct Held(MutexGuard<'static, Option<State>>);

impl Held {
    fn state(&mut self) -> &mut State {
        let process = std::process::id();
        let state = self.0.get_or_insert_default();
        if state.process != process {
            // A forked child has none of its parent's threads.
            *state = State { process, ..State::default() };
            state.waits.begin(thread_number());
        }
        state
    }

    fn changed(&mut self) {
        self.state().waits.change();
        CHANGED.notify_all();
    }
}

fn hold() -> Held {
    Held(STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The calling thread uses this library.
pub fn thread_begins() {
    hold().state().waits.begin(thread_number());
}

/// A thread has ended.
pub fn thread_ended(thread: u64) {
    let mut held = hold();
    held.state().waits.end(thread);
    CHANGED.notify_all();
}

/// The device at `place` is closed: the ranks on it take part no longer.
pub fn device_closed(place: Place) {
    let mut held = hold();
    let groups = held.state().groups.values_mut().flat_map(|group| group.members.values_mut());
    groups.filter(|member| member.place == place).for_each(|member| member.left = Some("has reset its device"));
    held.state().groups.retain(|_, group| !group.is_over());
    held.changed();
}

/// Number of a new communicator.
pub fn new_group() -> u64 {
    let mut held = hold();
    let state = held.state();
    state.last_group += 1;
    state.groups.insert(state.last_group, Group::default());
    state.last_group
}

/// Number of ranks, and a rank below it.
///
/// # Errors
/// No ranks, more than there can be, or a rank that is not one of them.
pub fn check_rank(what: &'static str, size: u32, rank: u32) -> Result<(), CallError> {
    if size == 0 {
        return Err(CallError::OutOfRange { what, value: 0, must: "must be at least 1" });
    }
    if rank >= size {
        return Err(CallError::OutOfRange { what: "rank", value: rank.into(), must: "must be below nRanks" });
    }
    if size as usize > MAX_RANKS {
        let text = format!("{size} ranks: a communicator has at most {MAX_RANKS} here");
        return Err(CallError::NotSupported(text));
    }
    Ok(())
}

/// Whether a rank can join a communicator.
///
/// # Errors
/// Those of [`join`] that are about its arguments.
pub fn check_join(group: u64, size: u32, rank: u32, place: Place) -> Result<(), CallError> {
    hold().state().groups.get(&group).ok_or_else(unknown)?.check(size, rank, place)
}

fn unknown() -> CallError {
    CallError::Invalid("the root info is not one of HcclGetRootInfo, or all its ranks have used it".to_owned())
}

/// Joins a communicator as one of its ranks, and waits for the others.
///
/// # Errors
/// A communicator that there is not, numbers that do not fit to those of the ranks that wait, a rank or a device that has joined:
/// the others go on waiting. Ranks that do not come.
pub fn join(group: u64, size: u32, rank: u32, place: Place, function: &'static str) -> Result<Seat, CallError> {
    let limit = connect_timeout()?;
    let mut held = hold();
    let joined = held.state().groups.get_mut(&group).ok_or_else(unknown)?;
    joined.add(size, rank, place)?;
    held.changed();
    let name = move |state: &State| {
        let missing = state.groups.get(&group).map_or_else(Vec::new, |group| group.missing(size));
        format!("rank {rank} of {size} waits in {function} for {}", ranks(&missing))
    };
    let (mut held, result) = wait(held, limit, name, |state| {
        let joined = state.groups.get(&group).ok_or_else(unknown)?;
        joined.members.get(&rank).ok_or_else(unknown)?.check(rank)?;
        Ok(joined.is_complete.then_some(()))
    });
    if result.is_err()
        && let Some(joined) = held.state().groups.get_mut(&group)
    {
        joined.remove(rank);
        held.changed();
    }
    result.map(|()| Seat { group, rank, size })
}

/// Makes a communicator of all these ranks at once.
///
/// # Errors
/// A device twice.
pub fn join_all(places: &[Place]) -> Result<Vec<Seat>, CallError> {
    let (group, size) = (new_group(), places.len() as u32);
    let mut held = hold();
    let made = held.state().groups.entry(group).or_default();
    for (rank, place) in places.iter().enumerate() {
        made.add(size, rank as u32, *place)?;
    }
    // Which threads will drive the ranks is not known.
    made.members.values_mut().for_each(|member| member.thread = None);
    Ok((0..size).map(|rank| Seat { group, rank, size }).collect())
}

/// A rank takes part no longer.
pub fn leave(seat: Seat, why: &'static str) {
    let mut held = hold();
    let Some(group) = held.state().groups.get_mut(&seat.group) else { return };
    if let Some(member) = group.members.get_mut(&seat.rank) {
        member.left = member.left.or(Some(why));
    }
    if group.is_over() {
        held.state().groups.remove(&seat.group);
    }
    held.changed();
}

/// `thread` uses the communicator of a rank.
pub fn used_by(seat: Seat, thread: u64) {
    let mut held = hold();
    if let Some(member) = held.state().groups.get_mut(&seat.group).and_then(|group| group.members.get_mut(&seat.rank)) {
        member.thread = Some(thread);
    }
}

/// Where the device of a rank is.
///
/// # Errors
/// There is no such rank.
pub fn place_of(seat: Seat, rank: u32) -> Result<Place, CallError> {
    let mut held = hold();
    let group = held.state().groups.get(&seat.group);
    let member = group.and_then(|group| group.members.get(&rank));
    member.map(|member| member.place).ok_or_else(|| {
        let text = format!("rank {rank}: the communicator has {} ranks", seat.size);
        CallError::Invalid(text)
    })
}

/// Offers ends of channels to their peers, and waits for theirs: those that have come, in the order of `own`. An offer whose peer
/// has not come is taken back. `failed` tells why a device can do nothing more.
///
/// # Errors
/// A peer that will not come, or has not.
pub fn exchange(
    seat: Seat,
    own: &[(End, Offer)],
    function: &'static str,
    failed: impl Fn(Place) -> Option<String>,
) -> (Vec<Option<Offer>>, Result<(), CallError>) {
    let mut taken = vec![None; own.len()];
    let limit = match connect_timeout() {
        Ok(limit) => limit,
        Err(error) => return (taken, Err(error)),
    };
    let Seat { group, rank, size } = seat;
    let mut held = hold();
    let Some(group_now) = held.state().groups.get_mut(&group) else {
        return (taken, Err(CallError::Timeout(format!("rank {rank} of {size} has left its communicator"))));
    };
    for (end, offer) in own {
        group_now.offers.entry((rank, end.peer, end.number)).or_default().push_back(*offer);
    }
    held.changed();
    let missing = std::cell::RefCell::new(Vec::new());
    let name = |_: &State| format!("rank {rank} of {size} waits in {function} for {}", ranks(&missing.borrow()));
    let (mut held, result) = wait(held, limit, name, |state| {
        let gone = || CallError::Timeout(format!("rank {rank} of {size} has left its communicator"));
        let group = state.groups.get_mut(&group).ok_or_else(gone)?;
        for ((end, _), taken) in own.iter().zip(&mut taken).filter(|(_, taken)| taken.is_none()) {
            *taken = group.offers.get_mut(&(end.peer, rank, end.number)).and_then(VecDeque::pop_front);
        }
        let mut peers: Vec<u32> =
            own.iter().zip(&taken).filter(|(_, taken)| taken.is_none()).map(|((end, _), _)| end.peer).collect();
        peers.dedup();
        if peers.is_empty() {
            return Ok(Some(()));
        }
        group.members.get(&rank).ok_or_else(gone)?.check(rank)?;
        for peer in &peers {
            if let Some(why) = group.members.get(peer).and_then(|member| member.hopeless(&state.waits, &failed)) {
                let text = format!("rank {rank} of {size} waits in {function} for rank {peer}, which {why}");
                return Err(CallError::Timeout(text));
            }
        }
        *missing.borrow_mut() = peers;
        Ok(None)
    });
    if let Some(group) = held.state().groups.get_mut(&group) {
        for ((end, _), _) in own.iter().zip(&taken).filter(|(_, taken)| taken.is_none()) {
            // The last one is that of this call, and no peer has taken it: it takes in the moment in which it is offered one.
            group.offers.get_mut(&(rank, end.peer, end.number)).and_then(VecDeque::pop_back);
        }
        group.offers.retain(|_, offers| !offers.is_empty());
    }
    drop(held);
    (taken, result)
}

/// Waits until `ready` gives something, an error or the limit. `name` says who waits for whom.
fn wait(
    mut held: Held,
    limit: Duration,
    name: impl Fn(&State) -> String,
    mut ready: impl FnMut(&mut State) -> Result<Option<()>, CallError>,
) -> (Held, Result<(), CallError>) {
    let (thread, deadline) = (thread_number(), Instant::now() + limit);
    let result = loop {
        let state = held.state();
        match ready(state) {
            Ok(Some(())) => break Ok(()),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        let what = name(state);
        if let Some(text) = state.waits.wait(thread, what.clone()) {
            CHANGED.notify_all();
            break Err(CallError::Timeout(text.to_string()));
        }
        let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
            break Err(CallError::Timeout(format!("{what}: {}", timed_out(limit))));
        };
        let guard = CHANGED.wait_timeout(held.0, left.min(LOOK_AGAIN)).unwrap_or_else(PoisonError::into_inner).0;
        held = Held(guard);
    };
    held.state().waits.go_on(thread);
    (held, result)
}

impl Group {
    /// Whether a rank can join.
    fn check(&self, size: u32, rank: u32, place: Place) -> Result<(), CallError> {
        let known = self.size.unwrap_or(size);
        let text = if known != size {
            format!("nRanks is {size}: the ranks before have said {known}")
        } else if self.members.contains_key(&rank) {
            format!("rank {rank} has joined with this root info before")
        } else if let Some((other, _)) = self.members.iter().find(|(_, member)| member.place.slot == place.slot) {
            let index = place.index;
            format!("rank {rank} is on device {index}, as rank {other} is: each rank has a device of its own")
        } else {
            return Ok(());
        };
        Err(CallError::Invalid(text))
    }

    /// Adds a rank that waits for the others.
    fn add(&mut self, size: u32, rank: u32, place: Place) -> Result<(), CallError> {
        self.check(size, rank, place)?;
        self.size = Some(size);
        self.members.insert(rank, Member { place, thread: Some(thread_number()), left: None });
        self.is_complete = self.members.len() == size as usize;
        Ok(())
    }

    /// Removes a rank that has not waited long enough for the others.
    fn remove(&mut self, rank: u32) {
        self.members.remove(&rank);
        if self.members.is_empty() {
            self.size = None;
        }
    }

    fn missing(&self, size: u32) -> Vec<u32> {
        (0..size).filter(|rank| !self.members.contains_key(rank)).collect()
    }

    fn is_over(&self) -> bool {
        self.is_complete && self.members.values().all(|member| member.left.is_some())
    }
}

impl Member {
    /// Whether it still takes part.
    fn check(&self, rank: u32) -> Result<(), CallError> {
        match self.left {
            None => Ok(()),
            Some(why) => Err(CallError::Timeout(format!("rank {rank} {why} while it was waiting"))),
        }
    }

    /// Why it will not come.
    fn hopeless(&self, waits: &Waits, failed: impl Fn(Place) -> Option<String>) -> Option<String> {
        if let Some(why) = self.left {
            return Some(why.to_owned());
        }
        if let Some(why) = failed(self.place) {
            return Some(format!("has failed: {why}"));
        }
        let has_ended = self.thread.is_some_and(|thread| !waits.is_live(thread));
        has_ended
            .then(|| "is driven by no thread any more: the one that has used its communicator has ended".to_owned())
    }
}

/// Ranks in a sentence.
fn ranks(ranks: &[u32]) -> String {
    let list: Vec<_> = ranks.iter().map(u32::to_string).collect();
    format!("rank{} {}", if list.len() == 1 { "" } else { "s" }, list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn place(slot: u32) -> Place {
        Place { index: slot as i32, slot, generation: 1 }
    }

    fn code(result: Result<Seat, CallError>) -> i32 {
        result.err().map_or(0, |error| error.hccl_code())
    }

    #[test]
    fn rank_with_a_wrong_number_is_told_and_the_others_go_on_waiting() {
        let group = new_group();
        let join = |size, rank, slot| join(group, size, rank, place(slot), "HcclCommInitRootInfo");
        let seats = thread::scope(|scope| {
            let first = scope.spawn(move || join(3, 0, 10));
            let second = scope.spawn(move || join(3, 1, 11));
            while hold().state().groups[&group].members.len() < 2 {
                thread::yield_now();
            }
            assert_eq!(code(join(3, 1, 12)), 1, "a rank twice");
            assert_eq!(code(join(2, 0, 12)), 1, "another number of ranks");
            assert_eq!(code(join(3, 2, 11)), 1, "a device twice");
            assert_eq!(code(super::join(u64::MAX, 3, 2, place(12), "HcclCommInitRootInfo")), 1, "no root info");
            let third = join(3, 2, 12);
            [first.join().unwrap(), second.join().unwrap(), third].map(Result::unwrap)
        });
        assert_eq!(seats.map(|seat| (seat.rank, seat.size)), [(0, 3), (1, 3), (2, 3)]);
        // Once all have left, the root info is used up.
        for seat in seats {
            leave(seat, "has left");
        }
        assert_eq!(code(join(3, 0, 10)), 1);
    }

    #[test]
    fn ranks_and_their_numbers_are_checked() {
        let code = |size, rank| check_rank("nRanks", size, rank).err().map_or(0, |error| error.hccl_code());
        assert_eq!([code(0, 0), code(1, 0), code(1, 1), code(16, 15), code(17, 0)], [1, 0, 1, 0, 5]);
    }
}
