//! Every schedule, but one of those that differ only in the order of steps that use nothing in common.
//!
//! Dynamic partial-order reduction with source sets and sleep sets (Abdulla, Aronis, Jonsson, Sagonas, "Optimal Dynamic Partial
//! Order Reduction", POPL 2014, algorithm 1). A run goes depth-first. After it, each pair of steps whose order matters, and between
//! which nothing else orders them, asks for a run in which the second comes first.

use std::sync::{Arc, Mutex};

use super::engine::lock;
use crate::event::{Access, Actor, Chooser, Dependence, dependence};

/// A step that was made, and what it used.
#[derive(Clone)]
struct Step {
    actor: Actor,
    accesses: Vec<Access>,
}

/// A choice of the run, and what is known of the other runs that begin like this one.
struct Node {
    ready: Vec<Actor>,
    /// Steps that need not be made here: a run that begins otherwise has made them.
    sleep: Vec<Step>,
    /// Actors that have to be tried here, also those that were.
    backtrack: Vec<Actor>,
    done: Vec<Step>,
    chosen: Step,
    /// Times that time has passed before.
    epoch: usize,
    /// Steps of each actor that came before this one or are this one: actor, and one more than the place of the last.
    clock: Clock,
}

/// Happens-before: for each actor, one more than the place of its last step that comes before.
#[derive(Clone, Default)]
struct Clock(Vec<(Actor, usize)>);

impl Clock {
    fn of(&self, actor: Actor) -> usize {
        self.0.iter().find(|(known, _)| *known == actor).map_or(0, |(_, place)| *place)
    }

    fn advance(&mut self, actor: Actor, place: usize) {
        match self.0.iter_mut().find(|(known, _)| *known == actor) {
            Some((_, known)) => *known = place.max(*known),
            None => self.0.push((actor, place)),
        }
    }

    fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|(actor, place)| self.advance(*actor, *place));
    }
}

#[derive(Default)]
struct Search {
    path: Vec<Node>,
    /// Choices that the run has made.
    depth: usize,
    /// Choices at the start of the run that earlier runs have made too, and that were looked at.
    known: usize,
    epoch: usize,
    /// What is left of the run has been seen in another order.
    is_redundant: bool,
    /// The program has not done the same again.
    has_changed: bool,
}

/// All schedules of a program, one run after the other. Clones share what is known.
#[derive(Clone, Default)]
pub struct Exhaustive(Arc<Mutex<Search>>);

impl Exhaustive {
    /// Looks at the run that has ended, and prepares the next one. `false`: there is none.
    pub fn next_run(&self) -> bool {
        let mut search = lock(&self.0);
        search.find_races();
        search.go_back()
    }

    /// Whether the last run was another order of one before.
    pub fn was_redundant(&self) -> bool {
        lock(&self.0).is_redundant
    }

    /// Whether the program did something else after the same choices: the runs are not all there are.
    pub fn has_changed(&self) -> bool {
        lock(&self.0).has_changed
    }
}

impl Chooser for Exhaustive {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        lock(&self.0).choose(ready)
    }

    fn ran(&mut self, accesses: &[Access]) {
        let mut search = lock(&self.0);
        if let Some(place) = search.depth.checked_sub(1).filter(|_| !search.is_redundant) {
            search.path[place].chosen.accesses = accesses.to_vec();
        }
    }

    fn time_passed(&mut self) {
        lock(&self.0).epoch += 1;
    }
}

impl Search {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        if self.is_redundant {
            return 0;
        }
        if let Some(node) = self.path.get(self.depth) {
            self.depth += 1;
            if node.ready == ready {
                return ready.iter().position(|actor| *actor == node.chosen.actor).unwrap_or(0);
            }
            self.has_changed = true;
            self.is_redundant = true;
            return 0;
        }
        let sleep = self.sleeping();
        let is_awake = |actor: &&Actor| !sleep.iter().any(|step| step.actor == **actor);
        let Some(actor) = ready.iter().find(is_awake).copied() else {
            self.is_redundant = true;
            return 0;
        };
        let chosen = Step { actor, accesses: Vec::new() };
        let (epoch, clock) = (self.epoch, Clock::default());
        let backtrack = vec![actor];
        self.path.push(Node { ready: ready.to_vec(), sleep, backtrack, done: Vec::new(), chosen, epoch, clock });
        self.depth += 1;
        ready.iter().position(|other| *other == actor).unwrap_or(0)
    }

    /// Steps that need not be made after the last one: nothing it has used is used by them.
    fn sleeping(&self) -> Vec<Step> {
        let Some(last) = self.path.last().filter(|last| last.epoch == self.epoch) else { return Vec::new() };
        let steps = last.sleep.iter().chain(&last.done).filter(|step| {
            step.actor != last.chosen.actor && dependence(&last.chosen.accesses, &step.accesses) == Dependence::None
        });
        steps.cloned().collect()
    }

    /// Finds steps of the run whose order matters, and asks for runs with the other order.
    fn find_races(&mut self) {
        let new = self.known.saturating_sub(1);
        for later in new..self.path.len() {
            let mut clock = self.before(later);
            let mut races = Vec::new();
            for earlier in (0..later).rev() {
                let (first, second) = (&self.path[earlier], &self.path[later]);
                if first.epoch != second.epoch || clock.of(first.chosen.actor) > earlier {
                    continue;
                }
                match dependence(&first.chosen.accesses, &second.chosen.accesses) {
                    Dependence::None => continue,
                    Dependence::Enabled => {}
                    Dependence::Ordered => races.push(earlier),
                }
                clock.join(&self.path[earlier].clock);
            }
            clock.advance(self.path[later].chosen.actor, later + 1);
            self.path[later].clock = clock;
            races.into_iter().for_each(|earlier| self.reverse(earlier, later));
        }
    }

    /// What comes before a step since the same actor has made it.
    fn before(&self, place: usize) -> Clock {
        let actor = self.path[place].chosen.actor;
        let own = self.path[..place].iter().rev().find(|earlier| earlier.chosen.actor == actor);
        own.map_or_else(Clock::default, |earlier| earlier.clock.clone())
    }

    /// Asks for a run in which the step at `later` comes before the one at `earlier`.
    fn reverse(&mut self, earlier: usize, later: usize) {
        let actor = self.path[earlier].chosen.actor;
        // What does not come after the earlier one, and then the later one.
        let between = (earlier + 1..later).filter(|place| self.path[*place].clock.of(actor) <= earlier);
        let rest: Vec<usize> = between.chain([later]).collect();
        let mut first: Vec<Actor> = Vec::new();
        for (index, place) in rest.iter().enumerate() {
            let node = &self.path[*place];
            let comes_after = |other: &usize| node.clock.of(self.path[*other].chosen.actor) > *other;
            if !rest[..index].iter().any(comes_after) && !first.contains(&node.chosen.actor) {
                first.push(node.chosen.actor);
            }
        }
        let node = &mut self.path[earlier];
        if first.iter().any(|actor| node.backtrack.contains(actor)) {
            return;
        }
        // Of those that can't go on here, the later step is one that the earlier one has made possible.
        let asleep = |actor: &Actor| node.sleep.iter().any(|step| step.actor == *actor);
        let mut possible = first.iter().copied().filter(|actor| node.ready.contains(actor));
        if let Some(actor) = possible.clone().find(|actor| !asleep(actor)).or_else(|| possible.next()) {
            node.backtrack.push(actor);
        }
    }

    /// Goes back to the last choice that has an actor to try.
    fn go_back(&mut self) -> bool {
        (self.depth, self.epoch, self.is_redundant) = (0, 0, false);
        while let Some(node) = self.path.last_mut() {
            let tried = node.chosen.clone();
            node.done.push(tried);
            let is_over = |actor: &Actor| node.done.iter().chain(&node.sleep).any(|step| step.actor == *actor);
            if let Some(next) = node.backtrack.iter().copied().find(|actor| !is_over(actor)) {
                node.chosen = Step { actor: next, accesses: Vec::new() };
                self.known = self.path.len();
                return true;
            }
            self.path.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{AccessKind, Object};
    use std::collections::BTreeSet;

    fn uses(object: u32, kind: AccessKind) -> Vec<Access> {
        vec![Access::new(Object::Notify(object), kind)]
    }

    /// Runs a program of actors whose steps use these objects, under every schedule. Gives the orders seen, and the redundant runs.
    fn all(program: &[&[(u32, AccessKind)]]) -> (Vec<Vec<usize>>, usize) {
        let search = Exhaustive::default();
        let (mut orders, mut redundant) = (Vec::new(), 0);
        loop {
            let mut chooser = search.clone();
            let mut next = vec![0; program.len()];
            let mut order = Vec::new();
            loop {
                let ready: Vec<_> =
                    (0..program.len()).filter(|actor| next[*actor] < program[*actor].len()).map(Actor::Host).collect();
                if ready.is_empty() {
                    break;
                }
                let Actor::Host(actor) = ready[chooser.choose(&ready)] else { unreachable!() };
                let (object, kind) = program[actor][next[actor]];
                next[actor] += 1;
                order.push(actor);
                chooser.ran(&uses(object, kind));
            }
            match search.was_redundant() {
                true => redundant += 1,
                false => orders.push(order),
            }
            if !search.next_run() {
                assert!(!search.has_changed());
                return (orders, redundant);
            }
        }
    }

    use AccessKind::{Read, Write};

    #[test]
    fn actors_that_share_nothing_have_one_schedule() {
        let each: Vec<Vec<_>> = (0..5).map(|actor| vec![(actor, Write); 4]).collect();
        let program: Vec<&[_]> = each.iter().map(|steps| &steps[..]).collect();
        let (orders, redundant) = all(&program);
        assert_eq!((orders.len(), redundant), (1, 0));
    }

    #[test]
    fn two_writers_have_two_schedules_and_readers_one() {
        assert_eq!(all(&[&[(1, Write)], &[(1, Write)]]).0.len(), 2);
        assert_eq!(all(&[&[(1, Read)], &[(1, Read)]]).0.len(), 1);
        assert_eq!(all(&[&[(1, Write)], &[(1, Read)], &[(1, Read)]]).0.len(), 4);
    }

    /// Compares with the classes of all interleavings, for random programs.
    #[test]
    fn every_class_of_schedules_is_seen_exactly_once() {
        let mut random = crate::random::SplitMix(7);
        for _ in 0..150 {
            let program: Vec<Vec<(u32, AccessKind)>> = (0..3)
                .map(|_| {
                    let steps = 1 + random.below(3);
                    (0..steps).map(|_| (random.below(3) as u32, [Read, Write][random.below(2) as usize])).collect()
                })
                .collect();
            let program: Vec<&[_]> = program.iter().map(|steps| &steps[..]).collect();
            let seen: Vec<_> = all(&program).0.iter().map(|order| class(&program, order)).collect();
            let distinct: BTreeSet<_> = seen.iter().cloned().collect();
            assert_eq!(seen.len(), distinct.len(), "a class twice: {program:?}");
            let mut every = BTreeSet::new();
            interleave(&program, &mut vec![0; program.len()], &mut Vec::new(), &mut every);
            assert_eq!(distinct, every, "{program:?}");
        }
    }

    /// What tells schedules apart: which of two dependent steps comes first, each by its actor and its place there.
    type Class = BTreeSet<((usize, usize), (usize, usize))>;

    fn class(program: &[&[(u32, AccessKind)]], order: &[usize]) -> Class {
        let mut next = vec![0; program.len()];
        let steps: Vec<_> = order
            .iter()
            .map(|actor| {
                next[*actor] += 1;
                (*actor, next[*actor] - 1)
            })
            .collect();
        let mut pairs = BTreeSet::new();
        for (place, first) in steps.iter().enumerate() {
            for second in &steps[place + 1..] {
                let of = |step: &(usize, usize)| program[step.0][step.1];
                let (one, other) = (of(first), of(second));
                if one.0 == other.0 && (one.1 == Write || other.1 == Write) {
                    pairs.insert((*first, *second));
                }
            }
        }
        pairs
    }

    fn interleave(
        program: &[&[(u32, AccessKind)]],
        next: &mut Vec<usize>,
        order: &mut Vec<usize>,
        into: &mut BTreeSet<Class>,
    ) {
        let mut is_end = true;
        for actor in 0..program.len() {
            if next[actor] == program[actor].len() {
                continue;
            }
            is_end = false;
            next[actor] += 1;
            order.push(actor);
            interleave(program, next, order, into);
            order.pop();
            next[actor] -= 1;
        }
        if is_end {
            into.insert(class(program, order));
        }
    }
}
