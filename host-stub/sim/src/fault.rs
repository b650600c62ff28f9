//! Faults as data: what goes wrong on a device, and where. Grammar of the text form: docs/faults.md.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::error::QueueName;
use super::message::debug_is_the_message;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The engine reports an error for a task; it has moved nothing.
    SdmaError,
    /// The engine can't translate an address of a task.
    Translation,
    /// A doorbell is refused.
    Doorbell,
    /// A queue runs no more tasks.
    DeadQueue,
    /// A queue waits for so long before each task.
    SlowQueue(Duration),
    /// A kernel fails in place of the one that is launched.
    Kernel(KernelFault),
}

/// How a kernel fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFault {
    /// Reads an address that is not mapped.
    DataAbort,
    /// Executes an undefined instruction.
    Undefined,
    /// Overflows its stack.
    StackOverflow,
    /// Panics.
    Panic,
    /// Never returns.
    Hang,
}

impl KernelFault {
    /// Whether a kernel on a thread of the host can fail like this: the others would end the process.
    pub fn runs_native(self) -> bool {
        matches!(self, Self::Panic | Self::Hang)
    }
}

/// Names of the faults, as a spec spells them. The time of a slow queue is its default.
const NAMES: [(&str, Fault); 10] = [
    ("sdma-error", Fault::SdmaError),
    ("translation", Fault::Translation),
    ("doorbell", Fault::Doorbell),
    ("dead-queue", Fault::DeadQueue),
    ("slow-queue", Fault::SlowQueue(Duration::from_millis(10))),
    ("data-abort", Fault::Kernel(KernelFault::DataAbort)),
    ("undefined", Fault::Kernel(KernelFault::Undefined)),
    ("stack-overflow", Fault::Kernel(KernelFault::StackOverflow)),
    ("panic", Fault::Kernel(KernelFault::Panic)),
    ("hang", Fault::Kernel(KernelFault::Hang)),
];

impl Fault {
    /// Its name in a spec.
    pub fn name(self) -> &'static str {
        let same = |other: &&(&str, Fault)| match (self, other.1) {
            (Self::SlowQueue(_), Self::SlowQueue(_)) => true,
            (one, other) => one == other,
        };
        NAMES.iter().find(same).expect("every fault has a name").0
    }

    /// Keys that its spec may have.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::SdmaError | Self::Translation => &["n", "task", "stream", "sq", "seed"],
            Self::Doorbell => &["n", "stream", "sq", "seed"],
            Self::DeadQueue => &["after", "stream", "sq", "seed"],
            Self::SlowQueue(_) => &["time", "stream", "sq"],
            Self::Kernel(_) => &["n", "stream", "seed"],
        }
    }
}

/// One fault and what it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// What goes wrong.
    pub fault: Fault,
    /// Stream of the queue, or of the launch; `None`: any.
    pub stream_id: Option<u32>,
    /// Queue; `None`: any.
    pub sq_id: Option<u32>,
    /// Task; `None`: any.
    pub task_id: Option<u32>,
    /// Which of the tasks, doorbells or launches that match, from 1; of a dead queue, how many tasks it still runs. Tasks
    /// and launches are counted over the whole device, doorbells and tasks of a dead queue for each queue.
    pub n: u64,
    /// Seed that `n` was drawn with.
    pub seed: Option<u64>,
}

impl FaultRule {
    /// A fault of the first task, doorbell or launch; of every queue, from its first task on.
    pub fn new(fault: Fault) -> Self {
        let n = if fault == Fault::DeadQueue { 0 } else { 1 };
        Self { fault, stream_id: None, sq_id: None, task_id: None, n, seed: None }
    }

    /// Sets [`n`](Self::n).
    pub fn n(self, n: u64) -> Self {
        Self { n, ..self }
    }

    /// Draws [`n`](Self::n) from `range`.
    pub fn n_from(self, range: RangeInclusive<u64>, seed: u64) -> Self {
        Self { n: draw(range, seed), seed: Some(seed), ..self }
    }

    /// Hits one stream alone.
    pub fn stream(self, stream_id: u32) -> Self {
        Self { stream_id: Some(stream_id), ..self }
    }

    /// Hits one queue alone.
    pub fn sq(self, sq_id: u32) -> Self {
        Self { sq_id: Some(sq_id), ..self }
    }

    /// Hits tasks with this id alone.
    pub fn task(self, task_id: u32) -> Self {
        Self { task_id: Some(task_id), ..self }
    }

    fn hits(&self, queue: QueueName) -> bool {
        (self.stream_id.is_none() || self.stream_id == queue.stream_id) && self.sq_id.is_none_or(|id| id == queue.sq_id)
    }
}

/// A number of `range` that `seed` decides (splitmix64).
fn draw(range: RangeInclusive<u64>, seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let (start, end) = range.into_inner();
    match (end - start).checked_add(1) {
        Some(count) => start + mixed % count,
        None => mixed,
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.fault.name())?;
        match self.fault {
            Fault::SlowQueue(time) => write!(f, ":time={}us", time.as_micros())?,
            Fault::DeadQueue => write!(f, ":after={}", self.n)?,
            _ => write!(f, ":n={}", self.n)?,
        }
        for (key, value) in [("task", self.task_id), ("stream", self.stream_id), ("sq", self.sq_id)] {
            if let Some(value) = value {
                write!(f, ",{key}={value}")?;
            }
        }
        match self.seed {
            Some(seed) => write!(f, " (seed {seed})"),
            None => Ok(()),
        }
    }
}

/// A spec that can't be read.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("fault {spec:?}: at {place:?} (byte {byte}): {reason}")]
pub struct FaultSpecError {
    /// The spec.
    pub spec: String,
    /// The part of it that is wrong.
    pub place: String,
    /// Where that starts.
    pub byte: usize,
    /// What is wrong.
    pub reason: String,
}
debug_is_the_message!(FaultSpecError);

impl FromStr for FaultRule {
    type Err = FaultSpecError;

    fn from_str(spec: &str) -> Result<Self, FaultSpecError> {
        let error = |byte: usize, place: &str, reason: String| FaultSpecError {
            spec: spec.to_owned(),
            place: place.to_owned(),
            byte,
            reason,
        };
        let (name, rest) = match spec.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (spec, None),
        };
        let Some((_, fault)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let names = NAMES.map(|(name, _)| name).join(", ");
            return Err(error(0, name, format!("no such fault: there are {names}")));
        };
        let mut rule = Self::new(*fault);
        let (mut range, mut seen) = (None, Vec::new());
        let mut byte = name.len() + 1;
        for part in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(error(byte, part, "not key=value".to_owned()));
            };
            if !fault.keys().contains(&key) {
                let keys = fault.keys().join(", ");
                return Err(error(byte, key, format!("no such key: {name} has {keys}")));
            }
            if seen.contains(&key) {
                return Err(error(byte, key, "given twice".to_owned()));
            }
            seen.push(key);
            let at = byte + key.len() + 1;
            let wrong = |reason: &str| error(at, value, reason.to_owned());
            match key {
                "n" | "after" => {
                    let found = numbers(value).ok_or_else(|| wrong("not a number, nor a range like 1-100"))?;
                    if key == "n" && *found.start() == 0 {
                        return Err(wrong("counted from 1"));
                    }
                    rule.n = *found.start();
                    range = Some(found).filter(|found| found.start() != found.end());
                }
                "seed" => rule.seed = Some(number(value).ok_or_else(|| wrong("not a number"))?),
                "time" => {
                    rule.fault = Fault::SlowQueue(time(value).ok_or_else(|| wrong("not a time like 5us, 10ms or 2s"))?)
                }
                _ => {
                    let id = number(value).and_then(|id| u32::try_from(id).ok());
                    let id = Some(id.ok_or_else(|| wrong("not a number of 32 bits"))?);
                    match key {
                        "task" => rule.task_id = id,
                        "stream" => rule.stream_id = id,
                        _ => rule.sq_id = id,
                    }
                }
            }
            byte += part.len() + 1;
        }
        match range {
            Some(range) => {
                let seed = rule.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
                Ok(rule.n_from(range, seed))
            }
            None => Ok(Self { seed: None, ..rule }),
        }
    }
}

/// A number, decimal or with 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        // `from_str_radix` and `parse` take a sign, a spec has none.
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

/// `A` or `A-B`.
fn numbers(text: &str) -> Option<RangeInclusive<u64>> {
    let (start, end) = text.split_once('-').unwrap_or((text, text));
    Some(number(start)?..=number(end)?).filter(|range| !range.is_empty())
}

fn time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let micros = match &text[digits.len()..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return None,
    };
    Some(Duration::from_micros(number(digits)?.checked_mul(micros)?))
}

/// All faults of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// In no order.
    pub rules: Vec<FaultRule>,
}

impl From<Vec<FaultRule>> for FaultPlan {
    fn from(rules: Vec<FaultRule>) -> Self {
        Self { rules }
    }
}

impl FaultPlan {
    /// A plan of one rule.
    pub fn one(rule: FaultRule) -> Self {
        Self { rules: vec![rule] }
    }

    /// Number of the doorbell of `queue` that is refused, counted from 1.
    pub fn refused_doorbell(&self, queue: QueueName) -> Option<u64> {
        self.of_queue(queue, |fault| fault == Fault::Doorbell).map(|rule| rule.n).min()
    }

    /// How many tasks `queue` runs before it is dead.
    pub fn dead_after(&self, queue: QueueName) -> Option<u64> {
        self.of_queue(queue, |fault| fault == Fault::DeadQueue).map(|rule| rule.n).min()
    }

    /// How long `queue` waits before each task.
    pub fn delay(&self, queue: QueueName) -> Duration {
        let time = |rule: &FaultRule| match rule.fault {
            Fault::SlowQueue(time) => time,
            _ => Duration::ZERO,
        };
        self.of_queue(queue, |_| true).map(time).max().unwrap_or_default()
    }

    fn of_queue(&self, queue: QueueName, is: fn(Fault) -> bool) -> impl Iterator<Item = &FaultRule> {
        self.rules.iter().filter(move |rule| is(rule.fault) && rule.hits(queue))
    }
}

/// Rules of a plan that have matched something; used to report rules that never did.
#[derive(Debug, Default)]
pub struct FaultLog(Mutex<Vec<FaultRule>>);

impl FaultLog {
    fn lock(&self) -> MutexGuard<'_, Vec<FaultRule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This fault has happened.
    pub fn note(&self, rule: FaultRule) {
        let mut happened = self.lock();
        if !happened.contains(&rule) {
            happened.push(rule);
        }
    }

    /// What `queue` does with the rules of `plan` that `is` picks has happened.
    pub fn note_queue(&self, plan: &FaultPlan, queue: QueueName, is: fn(Fault) -> bool) {
        plan.of_queue(queue, is).for_each(|rule| self.note(*rule));
    }

    /// Rules of `plan` that have hit nothing.
    pub fn missing(&self, plan: &FaultPlan) -> Vec<FaultRule> {
        let happened = self.lock();
        plan.rules.iter().filter(|rule| !happened.contains(rule)).copied().collect()
    }
}

/// A plan and how often each of its rules has matched.
#[derive(Debug, Default)]
pub struct FaultCounter(Vec<(FaultRule, u64)>);

impl FaultCounter {
    /// A counter of the rules of `plan` that count tasks or launches.
    pub fn new(plan: &FaultPlan) -> Self {
        let counts = |rule: &&FaultRule| matches!(rule.fault, Fault::SdmaError | Fault::Translation | Fault::Kernel(_));
        Self(plan.rules.iter().filter(counts).map(|rule| (*rule, 0)).collect())
    }

    /// The fault of a task, if it is the one that a rule hits.
    pub fn task(&mut self, queue: QueueName, task_id: u32) -> Option<FaultRule> {
        self.count(|rule| {
            let is_task = matches!(rule.fault, Fault::SdmaError | Fault::Translation);
            is_task && rule.hits(queue) && rule.task_id.is_none_or(|id| id == task_id)
        })
    }

    /// The fault of a launch on a stream, if it is the one that a rule hits.
    pub fn launch(&mut self, stream_id: u32) -> Option<FaultRule> {
        self.count(|rule| matches!(rule.fault, Fault::Kernel(_)) && rule.stream_id.is_none_or(|id| id == stream_id))
    }

    fn count(&mut self, matches: impl Fn(&FaultRule) -> bool) -> Option<FaultRule> {
        let mut hit = None;
        for (rule, count) in self.0.iter_mut().filter(|(rule, _)| matches(rule)) {
            *count += 1;
            if *count == rule.n {
                hit = hit.or(Some(*rule));
            }
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueName = QueueName { stream_id: Some(7), sq_id: 1 };

    fn message(spec: &str) -> String {
        spec.parse::<FaultRule>().unwrap_err().to_string()
    }

    #[test]
    fn specs_are_read() {
        let slow = |time| FaultRule::new(Fault::SlowQueue(time));
        for (spec, rule) in [
            ("sdma-error", FaultRule::new(Fault::SdmaError)),
            ("sdma-error:n=3,stream=7,sq=0x1", FaultRule::new(Fault::SdmaError).n(3).stream(7).sq(1)),
            ("translation:task=0x10005", FaultRule::new(Fault::Translation).task(0x10005)),
            ("doorbell:n=2", FaultRule::new(Fault::Doorbell).n(2)),
            ("dead-queue", FaultRule::new(Fault::DeadQueue).n(0)),
            ("dead-queue:after=4", FaultRule::new(Fault::DeadQueue).n(4)),
            ("slow-queue:time=5us", slow(Duration::from_micros(5))),
            ("slow-queue:time=2s", slow(Duration::from_secs(2))),
            ("hang:n=2", FaultRule::new(Fault::Kernel(KernelFault::Hang)).n(2)),
            ("panic:n=5-5,seed=1", FaultRule::new(Fault::Kernel(KernelFault::Panic)).n(5)),
        ] {
            assert_eq!(spec.parse(), Ok(rule), "{spec}");
            assert_eq!(rule.to_string().parse(), Ok(rule), "{rule}");
        }
        for (name, fault) in NAMES {
            assert_eq!((name.parse(), fault.name()), (Ok(FaultRule::new(fault)), name));
        }
    }

    #[test]
    fn wrong_specs_name_the_place() {
        let names = "sdma-error, translation, doorbell, dead-queue, slow-queue, data-abort, undefined, stack-overflow, \
                     panic, hang";
        for (spec, text) in [
            ("", format!(r#"at "" (byte 0): no such fault: there are {names}"#)),
            ("sdma", format!(r#"at "sdma" (byte 0): no such fault: there are {names}"#)),
            ("hang:", r#"at "" (byte 5): not key=value"#.to_owned()),
            ("hang:n=1,x", r#"at "x" (byte 9): not key=value"#.to_owned()),
            ("hang:sq=1", r#"at "sq" (byte 5): no such key: hang has n, stream, seed"#.to_owned()),
            ("hang:n=1,n=2", r#"at "n" (byte 9): given twice"#.to_owned()),
            ("doorbell:n=0", r#"at "0" (byte 11): counted from 1"#.to_owned()),
            ("doorbell:n=9-3", r#"at "9-3" (byte 11): not a number, nor a range like 1-100"#.to_owned()),
            ("doorbell:n=+3", r#"at "+3" (byte 11): not a number, nor a range like 1-100"#.to_owned()),
            ("sdma-error:sq=4294967296", r#"at "4294967296" (byte 14): not a number of 32 bits"#.to_owned()),
            ("slow-queue:time=5", r#"at "5" (byte 16): not a time like 5us, 10ms or 2s"#.to_owned()),
            ("slow-queue:time=99999999999999999s", r#"(byte 16): not a time like 5us, 10ms or 2s"#.to_owned()),
        ] {
            assert!(message(spec).starts_with(&format!("fault {spec:?}: ")), "{}", message(spec));
            assert!(message(spec).ends_with(&text), "{}", message(spec));
        }
    }

    #[test]
    fn drawn_number_is_in_its_range_and_the_seed_repeats_it() {
        let mut seen = [0; 11];
        for seed in 0..1000 {
            let rule: FaultRule = format!("sdma-error:n=1-10,seed={seed}").parse().unwrap();
            assert_eq!(rule, FaultRule::new(Fault::SdmaError).n_from(1..=10, seed));
            assert_eq!(rule.to_string(), format!("sdma-error:n={} (seed {seed})", rule.n));
            seen[rule.n as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|count| *count > 50), "{seen:?}");
        let unseeded: FaultRule = "sdma-error:n=1-10".parse().unwrap();
        assert_eq!(Some(draw(1..=10, unseeded.seed.unwrap())), Some(unseeded.n));
        assert_eq!(draw(0..=u64::MAX, 1), draw(0..=u64::MAX, 1));
    }

    #[test]
    fn rules_hit_once_what_they_name() {
        let plan = FaultPlan::from(vec![
            FaultRule::new(Fault::SdmaError).n(2).stream(7),
            FaultRule::new(Fault::Translation).task(9),
            FaultRule::new(Fault::Kernel(KernelFault::Panic)).n(2),
        ]);
        let mut counter = FaultCounter::new(&plan);
        let other = QueueName { stream_id: Some(8), sq_id: 2 };
        let hits: Vec<_> = [(QUEUE, 1), (other, 2), (QUEUE, 3), (QUEUE, 4), (other, 9), (other, 9)]
            .map(|(queue, task)| counter.task(queue, task))
            .into();
        let faults = hits.into_iter().map(|hit| hit.map(|rule| rule.fault)).collect::<Vec<_>>();
        assert_eq!(faults, [None, None, Some(Fault::SdmaError), None, Some(Fault::Translation), None]);
        let launches = [1, 1, 1].map(|stream| counter.launch(stream).map(|rule| rule.fault));
        assert_eq!(launches, [None, Some(Fault::Kernel(KernelFault::Panic)), None]);
    }

    #[test]
    fn queues_have_the_faults_that_name_them() {
        let plan = FaultPlan::from(vec![
            FaultRule::new(Fault::DeadQueue).n(3).sq(1),
            FaultRule::new(Fault::SlowQueue(Duration::from_secs(1))).stream(8),
            FaultRule::new(Fault::Doorbell).n(5),
        ]);
        let other = QueueName { stream_id: Some(8), sq_id: 2 };
        assert_eq!([QUEUE, other].map(|queue| plan.dead_after(queue)), [Some(3), None]);
        assert_eq!([QUEUE, other].map(|queue| plan.delay(queue)), [Duration::ZERO, Duration::from_secs(1)]);
        assert_eq!([QUEUE, other].map(|queue| plan.refused_doorbell(queue)), [Some(5); 2]);
    }
}
