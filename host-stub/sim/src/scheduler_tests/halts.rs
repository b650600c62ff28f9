//! Nothing can go on while host threads wait: certain deadlocks, limits, and what several threads that wait hear.

use std::sync::atomic::Ordering;

use super::super::hosts::HostThreads;
use super::super::scheduler::SchedulerConfig;
use super::*;

/// A process with some threads, all of them the program's.
struct Threads(Arc<AtomicU32>);

impl HostThreads for Threads {
    fn free(&self, blocked: u32) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed) - blocked)
    }

    fn go_on(&self) {}
}

/// As [`waiting_rig`], whose stream waits as well, in a process of `threads` threads.
fn halted_rig(threads: u32, deadlock_limit: Option<Duration>) -> (Rig, Arc<AtomicU32>) {
    let mut rig = Rig::new(8, false);
    let count = Arc::new(AtomicU32::new(threads));
    rig.scheduler = rig
        .scheduler
        .with_config(SchedulerConfig { deadlock_limit, ..SchedulerConfig::default() })
        .with_hosts(Box::new(Threads(Arc::clone(&count))));
    rig.shared.inbox.send(Command::AddNotifies(vec![(5, Owner::Host)]));
    submit_wait(&rig, 20);
    (rig, count)
}

fn submit_wait(rig: &Rig, timeout_s: u32) {
    rig.stream.submit();
    rig.shared.inbox.send(Command::Submit(9, Op::NotifyWait { id: 5, timeout_s }));
}

impl Rig {
    fn settle_at(&mut self, now: Duration) -> Progress {
        self.now = now;
        self.settle()
    }

    /// Steps as the scheduler's thread does, from `self.now` until `end`, or until the device has failed: when.
    fn run_until(&mut self, end: Duration) -> Option<Duration> {
        while self.now < end {
            let progress = self.settle();
            if self.shared.failed.is_set() {
                return Some(self.now);
            }
            let Progress::Waiting(next) = progress else { return None };
            assert!(!next.is_zero(), "steps without end at {:?}", self.now);
            self.now += next;
        }
        None
    }
}

const TEXT: &str = "deadlock: stream 9 waits for notify 5 (of the host), which nothing is left to record";

/// Case 101.
#[test]
fn deadlock_that_no_host_thread_can_end_is_reported_at_once() {
    let (mut rig, _) = halted_rig(1, None);
    let stream = Arc::clone(&rig.stream);
    let waiting = rig.begin_synchronize(&stream);
    let at = rig.run_until(Duration::from_secs(19)).expect("it fails");
    assert!(at < Duration::from_millis(10), "{at:?}");
    assert_eq!((rig.failed().as_str(), rig.shared.failed.get().unwrap().runtime_code()), (TEXT, 507_048));
    assert_eq!(waiting.wait(Duration::ZERO), Waited::Done(rig.shared.failed.get()));
}

/// Case 101.
#[test]
fn wait_keeps_its_own_limit_while_a_host_thread_could_act() {
    let (mut rig, _) = halted_rig(2, None);
    let stream = Arc::clone(&rig.stream);
    let _waiting = rig.begin_synchronize(&stream);
    assert_eq!(rig.run_until(Duration::from_secs(21)), Some(Duration::from_secs(20)));
    assert_eq!(rig.failed(), "stream 9: notify 5 (of the host) was not recorded within 20 s");
}

/// Case 101.
#[test]
fn thread_that_ends_makes_a_deadlock_certain() {
    let (mut rig, threads) = halted_rig(2, None);
    let stream = Arc::clone(&rig.stream);
    let _waiting = rig.begin_synchronize(&stream);
    assert_eq!(rig.run_until(Duration::from_secs(3)), None);
    threads.store(1, Ordering::Relaxed);
    let at = rig.run_until(Duration::from_secs(19)).expect("it fails");
    assert!(at < Duration::from_millis(3200), "{at:?}");
    assert_eq!(rig.failed(), TEXT);
}

/// Case 101.
#[test]
fn thread_whose_wait_has_a_limit_could_still_act() {
    let (mut rig, _) = halted_rig(1, None);
    let stream = Arc::clone(&rig.stream);
    let waiting = stream.begin_wait(true);
    rig.shared.inbox.send(Command::Submit(9, Op::Synchronize));
    assert_eq!(rig.run_until(Duration::from_secs(19)), None);
    assert_eq!(waiting.wait(Duration::ZERO), Waited::TimedOut(1));
}

/// Case 101.
#[test]
fn deadlock_limit_ends_a_wait_that_a_host_thread_could_end() {
    let limit = Duration::from_secs(2);
    let (mut rig, _) = halted_rig(3, Some(limit));
    let stream = Arc::clone(&rig.stream);
    let _waiting = rig.begin_synchronize(&stream);
    assert_eq!(rig.run_until(Duration::from_secs(19)), Some(limit));
    let text = format!("{TEXT}; nothing could go on for 2s, and none of 2 host threads changed that");
    assert_eq!((rig.failed(), rig.shared.failed.get().unwrap().runtime_code()), (text, 507_048));
}

/// Case 101.
#[test]
fn record_within_the_limit_starts_it_again() {
    let (mut rig, _) = halted_rig(3, Some(Duration::from_secs(2)));
    let stream = Arc::clone(&rig.stream);
    let waiting = rig.begin_synchronize(&stream);
    assert_eq!(rig.run_until(Duration::from_millis(1900)), None);
    let other = Arc::new(StreamShared::new(10));
    rig.shared.inbox.send(Command::AddStream(Arc::clone(&other)));
    other.submit();
    rig.shared.inbox.send(Command::Submit(10, Op::NotifyRecord { id: 5 }));
    rig.settle_at(Duration::from_millis(1950));
    assert_eq!(waiting.wait(Duration::ZERO), Waited::Done(None));
    submit_wait(&rig, 20);
    let _waiting = rig.begin_synchronize(&stream);
    assert_eq!(rig.run_until(Duration::from_secs(3)), None);
    assert!(rig.run_until(Duration::from_secs(19)).is_some());
}

/// Case 103.
#[test]
fn each_of_many_threads_hears_what_it_waited_for() {
    let mut rig = Rig::new(8, false);
    let stream = Arc::clone(&rig.stream);
    rig.launch();
    let first: Vec<_> = (0..3).map(|_| rig.begin_synchronize(&stream)).collect();
    // Later work is no matter of those that wait already.
    rig.submit_launch(&stream, false);
    let later = rig.begin_synchronize(&stream);
    for (waiting, left) in first.iter().chain([&later]).zip([1, 1, 1, 2]) {
        assert_eq!(waiting.wait(Duration::ZERO), Waited::TimedOut(left));
    }
    rig.kernel_returns(7);
    rig.settle();
    let error = DeviceError::KernelCode { stream_id: 9, kernel: "test".into(), code: 7, refused: Box::default() };
    for waiting in &first {
        assert_eq!(waiting.wait(Duration::ZERO), Waited::Done(Some(error.clone())));
    }
    assert_eq!((stream.outstanding(), rig.synchronize(&stream)), (1, Waited::TimedOut(1)));
}

/// Case 104.
#[test]
fn scheduler_that_has_panicked_fails_every_call_at_once() {
    let mut rig = Rig::new(8, false);
    let stream = Arc::clone(&rig.stream);
    rig.launch();
    let waiting = rig.begin_synchronize(&stream);
    rig.settle();
    // One command that has been taken and waits, one that has not been taken, one that comes too late.
    let answers: Vec<_> = (0..3)
        .map(|which| {
            let (reply, answer) = std::sync::mpsc::sync_channel(1);
            if which == 2 {
                rig.scheduler.crash("index out of bounds".to_owned());
            }
            rig.shared.inbox.send(Command::Recover(super::super::inbox::Recovery::Resume(vec![1], reply)));
            if which == 0 {
                rig.settle();
            }
            answer
        })
        .collect();
    for answer in answers {
        assert_eq!(answer.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    }
    let error = rig.shared.failed.get().unwrap();
    assert!(error.to_string().ends_with("its scheduler panicked: index out of bounds"), "{error}");
    assert_eq!(format!("{error:?}"), error.to_string(), "what unwrap prints");
    assert_eq!(waiting.wait(Duration::ZERO), Waited::Done(Some(error)));
    assert!(rig.shared.inbox.is_closed());
}
