//! From `Thread::local_copy` to the doorbell of the stand-in: the kernels' library over the queue of a card.
#![allow(non_snake_case, reason = "names of the HAL's functions")]

mod fake;

use std::sync::OnceLock;
use std::time::Instant;

use embedded_hal::delay::DelayNs;
use fake::{FakeQueue, HOST_DEVICE, Turn, take};
use hcomm_aicpu::port::{Platform, QueueId};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use hcomm_aicpu::{Device, Error, Thread};
use hcomm_hal::{CardPlatform, Clock, Hal, HalError, OpenError, Position, QueueIds, Restore};

#[unsafe(no_mangle)]
extern "C" fn halResourceIdRestore(key: *mut u8) -> i32 {
    fake::restore(key)
}

struct HostClock;

impl Clock for HostClock {
    fn now_us() -> u64 {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        BEGIN.get_or_init(Instant::now).elapsed().as_micros() as u64
    }
}

static PLATFORM: CardPlatform<HostClock> = CardPlatform::new();
hcomm_aicpu::export_platform!(PLATFORM);

const DEPTH: u32 = 256;
const IDS: QueueIds = QueueIds { restore: Restore::Tried, host_device: HOST_DEVICE, stream: 17, sq: 9, logic_cq: 4 };

#[derive(Clone, Copy, PartialEq)]
#[repr(C, align(64))]
struct Entry([u8; 64]);

/// A device with one thread, whose ring the stand-in knows.
struct Card {
    turn: Turn,
    device: Device,
    ring: &'static mut [Entry],
    handle: ThreadHandle,
}

impl Card {
    /// Each test has a generation of its own: the platform is one for the process.
    fn new(generation: u16) -> Self {
        let turn = take();
        // Leaked: the table and the rings of a card stay as long as the process.
        let ring = Vec::leak(vec![Entry([0xee; 64]); DEPTH as usize]);
        let base = ring.as_ptr() as u64;
        turn.queue(|queue| {
            *queue = FakeQueue { base, depth: DEPTH, head: 5, tail: 5, paused: false, rung: Vec::new() }
        });
        let opened = PLATFORM.open(&Hal::of_process(), IDS, generation).unwrap();
        assert_eq!((opened.base, opened.depth), (base, DEPTH));
        #[repr(align(64))]
        struct Table([ThreadDescriptor; 1]);
        let table = Box::leak(Box::new(Table([ThreadDescriptor {
            tag: DescriptorTag::live(generation),
            engine: Engine::AICPU_TS,
            stream_id: IDS.stream,
            sq_id: IDS.sq,
            depth: opened.depth,
            sq_base: DeviceAddr(opened.base),
            regs: opened.regs,
            notifies: NotifyTable::new(DeviceAddr(64), 0),
            comm: 0,
            reserved: 0,
        }])));
        let device = Device::new();
        let table = DeviceAddr(table.0.as_ptr().expose_provenance() as u64);
        ring.as_ptr().expose_provenance();
        // SAFETY: the table and its ring stay for the process, and no notify is used.
        unsafe { device.set_thread_table(table, 1) };
        Self { turn, device, ring, handle: ThreadHandle::new(table, generation) }
    }

    /// Copies of `len` bytes on the thread, in one launch; the first error ends it.
    fn copies(&self, count: usize, len: u64) -> Result<(), Error> {
        let kernel = || {
            let thread = Thread::from_handle(self.handle)?;
            (0..count)
                .try_for_each(|_| thread.local_copy(DeviceAddr(0x12c0_c000_0000), DeviceAddr(0x12c1_8000_0000), len))
        };
        self.device.run(0, kernel).unwrap().0
    }

    fn rung(&self) -> Vec<u32> {
        self.turn.queue(|queue| queue.rung.clone())
    }

    /// Bytes of an entry. The kernel has written them through the address.
    fn entry(&self, slot: usize) -> [u8; 64] {
        // SAFETY: inside the ring, and no kernel runs.
        unsafe { (&raw const self.ring[slot]).cast::<[u8; 64]>().read_volatile() }
    }
}

/// A copy of 4096 bytes from 0x12c180000000 to 0x12c0c0000000 on an Ascend950, with task id 0.
#[rustfmt::skip]
const COPY: [u8; 64] = [
    0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0, 0, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0x80, 0xc1, 0x12, 0, 0, 0, 0, 0, 0xc0, 0xc0, 0x12, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

#[test]
fn a_copy_is_an_entry_of_the_ring_and_a_tail_that_the_hal_took() {
    let card = Card::new(1);
    assert_eq!(card.copies(2, 4096), Ok(()));
    assert_eq!(card.rung(), [6, 7]);
    for (slot, task) in [(5, 0), (6, 1)] {
        let mut expected = COPY;
        expected[4] = task;
        assert_eq!(card.entry(slot), expected, "slot {slot}");
    }
    assert_eq!((card.entry(4), card.entry(7)), ([0xee; 64], [0xee; 64]));
}

#[test]
fn a_paused_queue_refuses_and_takes_tasks_again_when_it_is_opened_again() {
    let card = Card::new(2);
    card.turn.queue(|queue| queue.paused = true);
    assert_eq!(card.copies(1, 64), Err(Error::DoorbellRefused { sq_id: 9 }));
    // Known from now on, without a call of the driver.
    let calls = card.turn.with(|state| state.config_calls);
    assert_eq!(card.copies(1, 64), Err(Error::Suspended { sq_id: 9 }));
    assert_eq!(card.turn.with(|state| state.config_calls), calls);
    // The host has reset the queue and starts a launch.
    card.turn.queue(|queue| (queue.paused, queue.head, queue.tail) = (false, 100, 100));
    PLATFORM.open(&Hal::of_process(), IDS, 2).unwrap();
    assert_eq!(card.copies(1, 64), Ok(()));
    assert_eq!(card.rung(), [101]);
}

#[test]
fn what_the_driver_answers_wrongly_ends_the_call() {
    let card = Card::new(3);
    assert_eq!(card.copies(1, 64), Ok(()));
    card.turn.with(|state| state.query_code = 3);
    let error = PLATFORM.open(&Hal::of_process(), IDS, 3).unwrap_err();
    assert_eq!(error, OpenError::Hal(HalError::Query { property: 6, sq: 9, code: 3 }));
    // A queue that could not be opened takes nothing.
    assert_eq!(card.copies(1, 64), Err(Error::BadHandle(card.handle)));
    assert_eq!(card.rung(), [6]);
}

#[test]
fn a_full_ring_waits_for_the_head_that_the_hal_tells() {
    let card = Card::new(4);
    std::thread::scope(|scope| {
        // One entry stays free: 255 fit. Then the copy waits until the device has fetched some.
        scope.spawn(|| {
            let begin = Instant::now();
            while fake::state(|state| state.queues[&9].rung.len()) < 255 && begin.elapsed().as_secs() < 60 {
                std::thread::yield_now();
            }
            fake::state(|state| state.queues.get_mut(&9).unwrap().head = 105);
        });
        assert_eq!(card.copies(355, 64), Ok(()));
    });
    let rung = card.rung();
    assert_eq!((rung.len(), rung[254], rung[354]), (355, 4, 104));
}

#[test]
fn queues_are_told_apart_and_one_too_many_is_refused() {
    let turn = take();
    let queue = turn.queue(|queue| FakeQueue { head: 3, tail: 3, ..queue.clone() });
    turn.with(|state| state.queues.extend((100..165).map(|sq| (sq, queue.clone()))));
    let (platform, hal) = (CardPlatform::<HostClock>::new(), Hal::of_process());
    let mut seen = Vec::new();
    for sq in 100..164 {
        let opened = platform.open(&hal, QueueIds { sq, ..IDS }, 1).unwrap();
        assert!(!seen.contains(&opened.regs));
        seen.push(opened.regs);
        assert!(platform.has_queue(sq, opened.regs));
        assert!(!platform.has_queue(sq + 1, opened.regs) && !platform.has_queue(sq, opened.regs + 1));
    }
    assert_eq!(platform.open(&hal, QueueIds { sq: 164, ..IDS }, 1), Err(OpenError::Full));
    // Again is no further one.
    assert_eq!(platform.open(&hal, QueueIds { sq: 110, ..IDS }, 1).unwrap().regs, seen[10]);
    assert!(!platform.has_queue(100, u64::MAX) && !platform.has_queue(100, 0));
}

#[test]
fn a_queue_goes_on_where_it_stands_and_gets_another_status_word_after_a_reset() {
    let turn = take();
    let (platform, hal) = (CardPlatform::<HostClock>::new(), Hal::of_process());
    let (mut seen, mut regs) = (Vec::<QueueStatus>::new(), 0);
    // Generation, head and tail that the driver reports, and whether the word is the one before.
    for (generation, head, tail, is_same) in [
        (1, 3, 3, false),
        (1, 3, 3, true),
        (1, 2, 3, true),
        (1, 100, 100, false),
        (2, 100, 100, false),
        (2, 100, 100, true),
        (3, 0, 0, false),
    ] {
        turn.queue(|queue| (queue.head, queue.tail) = (head, tail));
        regs = platform.open(&hal, IDS, generation).unwrap().regs;
        // SAFETY: the platform has just opened it.
        let queue = unsafe { QueueId::new_unchecked(IDS.sq, regs) };
        let status = platform.status(queue).unwrap();
        assert_eq!((status.state(), status.generation()), (QueueStatus::ENABLED, generation));
        assert_eq!(seen.last() == Some(&status), is_same, "{generation} {head} {tail}");
        assert!(is_same || !seen.contains(&status), "{status:?} again");
        seen.push(status);
    }
    // Rung by this platform: that is where it stands, with tasks in it.
    // SAFETY: the platform has opened it.
    let queue = unsafe { QueueId::new_unchecked(IDS.sq, regs) };
    assert_eq!(platform.ring(queue, 7), Ok(()));
    assert_eq!(platform.open(&hal, IDS, 3).map(|opened| opened.position), Ok(Position { head: 0, tail: 7 }));
}

#[test]
fn a_queue_with_tasks_of_someone_else_is_not_taken() {
    let turn = take();
    let (platform, hal) = (CardPlatform::<HostClock>::new(), Hal::of_process());
    turn.queue(|queue| (queue.head, queue.tail) = (3, 4));
    assert_eq!(platform.open(&hal, IDS, 1), Err(OpenError::Busy { sq: 9, head: 3, tail: 4 }));
    turn.queue(|queue| queue.head = 4);
    let regs = platform.open(&hal, IDS, 1).unwrap().regs;
    turn.queue(|queue| (queue.head, queue.tail) = (4, 9));
    assert_eq!(platform.open(&hal, IDS, 1), Err(OpenError::Busy { sq: 9, head: 4, tail: 9 }));
    assert!(platform.has_queue(9, regs));
    platform.close(9);
    assert!(!platform.has_queue(9, regs));
}

#[test]
fn a_delay_lasts_as_long_as_it_was_asked_for() {
    let begin = Instant::now();
    PLATFORM.delay().delay_us(2500);
    assert!(begin.elapsed().as_micros() >= 2500);
    // For another core: one turn.
    PLATFORM.delay().delay_ns(0);
}

/// Whether it counts at the speed that it says is for a card to show: the emulator's is the host's clock.
#[cfg(target_arch = "aarch64")]
#[test]
fn the_counter_of_the_core_is_a_clock_in_microseconds() {
    let (begin, first) = (Instant::now(), hcomm_hal::Counter::now_us());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let last = hcomm_hal::Counter::now_us();
    assert!(last - first >= 20_000);
    assert!(u128::from(last - first) <= begin.elapsed().as_micros() + 1);
}
