//! Channels over a device of plain memory: two threads, two channels, work rings as small as a test wants.

use core::cell::{Cell, RefCell};

use embedded_hal::delay::DelayNs;

use crate::channel::submit::Ends;
use crate::channel::{Transfer, TransferKind};
use crate::context::{Core, Device};
use crate::error::{Error, QueueFull};
use crate::ops::channel::{ChannelCall, Move, Record, run, wait_on};
use crate::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use crate::spec::channel::{ChannelDescriptor, ChannelHandle, ChannelTag, Protocol};
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::queue::QueueStatus;
use crate::spec::record::EntryPoint;
use crate::spec::soc::Soc;
use crate::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use crate::spec::ub::{
    Block, Eid, Jetty, Local, NotifyRecord, Order, PathNumber, Peer, Place, Read, Remote, TokenId, UbDoorbell,
    UbReduce, WorkDepth, Write, WriteWithNotify,
};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};
use crate::sq::{self, Fast, submit};
use crate::task::Request;

const THREADS: usize = 2;
const SQ_DEPTH: u32 = 8;
/// Exchanged memory of the peer.
const REMOTE: u64 = 0x12c1_4000_0000;
const REMOTE_LEN: u64 = 1 << 40;
const LOCAL: u64 = 0x12c0_4000_0000;
const NOTIFY: u64 = 0x13e0_0000_0100;
const MAX_SLICE: u32 = 4096;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Entry(Sqe);

type OnDelay = Box<dyn Fn(&Port)>;

struct Port {
    head: [Cell<u32>; THREADS],
    rung: [Cell<u32>; THREADS],
    status: [Cell<QueueStatus>; THREADS],
    refuse_ring: Cell<bool>,
    now_us: Cell<u64>,
    /// Runs when a call waits.
    on_delay: RefCell<Option<OnDelay>>,
}

impl Port {
    fn run_all(&self) {
        (0..THREADS).for_each(|queue| self.head[queue].set(self.rung[queue].get()));
    }
}

impl Platform for Port {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        u64::from(sq_id) == regs && (sq_id as usize) < THREADS
    }

    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        Ok(self.head[queue.sq_id() as usize].get())
    }

    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        Ok(self.status[queue.sq_id() as usize].get())
    }

    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        if self.refuse_ring.get() {
            return Err(DoorbellRefused);
        }
        self.rung[queue.sq_id() as usize].set(tail);
        Ok(())
    }

    fn store_barrier(&self) {}

    fn now_us(&self) -> u64 {
        self.now_us.get()
    }

    fn delay(&self) -> impl DelayNs {
        Delay(self)
    }
}

struct Delay<'p>(&'p Port);

impl DelayNs for Delay<'_> {
    fn delay_ns(&mut self, ns: u32) {
        self.0.now_us.set(self.0.now_us.get() + u64::from(ns.div_ceil(1000)));
        if let Some(run) = &*self.0.on_delay.borrow() {
            run(self.0);
        }
    }
}

struct Rig {
    port: Port,
    device: Box<Device>,
    threads: Vec<ThreadDescriptor>,
    channels: Vec<ChannelDescriptor>,
    queues: Vec<Vec<Entry>>,
    work: Vec<Entry>,
    depth: u32,
}

impl Rig {
    fn new(depth: u32) -> Self {
        Self::with(depth, Soc::Ascend950, |_| ())
    }

    fn with(depth: u32, soc: Soc, edit: impl FnOnce(&mut ChannelDescriptor)) -> Self {
        let stale = Entry(Sqe([0xa5a5_a5a5_a5a5_a5a5; 8]));
        let mut queues = vec![vec![stale; SQ_DEPTH as usize]; THREADS];
        let mut work = vec![stale; depth as usize];
        let thread = |(sq_id, ring): (usize, &mut Vec<Entry>)| ThreadDescriptor {
            tag: DescriptorTag::live(3),
            engine: Engine::AICPU_TS,
            stream_id: 5,
            sq_id: sq_id as u32,
            depth: SQ_DEPTH,
            sq_base: DeviceAddr::from(ring.as_mut_ptr()),
            regs: sq_id as u64,
            notifies: NotifyTable::default(),
            comm: 7,
            reserved: 0,
        };
        let mut threads: Vec<_> = queues.iter_mut().enumerate().map(thread).collect();
        let mut descriptor = ChannelDescriptor {
            tag: ChannelTag::live(9),
            comm: 7,
            protocol: Protocol::UB_CTP,
            device: 0,
            peer_device: 1,
            rank: 0,
            peer_rank: 1,
            notify_size: 8,
            ring: DeviceAddr::from(work.as_mut_ptr()),
            depth,
            producer_index: 0,
            jetty: 33,
            jetty_function: 3,
            jetty_die: 1,
            path: 17,
            eid: [1; 16],
            peer_eid: *b"the peer's eid !",
            max_slice: MAX_SLICE,
            local_token_id: 0x1234_5678,
            remote: DeviceAddr(REMOTE),
            remote_len: REMOTE_LEN,
            remote_token_id: 0x1_2345,
            remote_token_value: 0xcafe,
            notify_token_id: 0x5_4321,
            notify_token_value: 0xbeef,
            peer_notify: DeviceAddr(NOTIFY),
            notify_id: 40,
            notify_count: 3,
            peer_notify_id: 32,
            peer_notify_count: 2,
            reserved: [0; 12],
        };
        edit(&mut descriptor);
        let mut channels = vec![descriptor; 3];
        channels[1].comm = 8;
        channels[2].tag = ChannelTag { magic: 0, version: 0, generation: 0 };
        let device = Box::new(Device::new());
        device.set_soc(soc);
        // SAFETY: tables and rings are on the heap and live as long as the rig.
        unsafe { device.set_thread_table(DeviceAddr::from(threads.as_mut_ptr()), THREADS) };
        // SAFETY: as above.
        unsafe { device.set_channel_table(DeviceAddr::from(channels.as_mut_ptr()), 3) };
        let port = Port {
            head: Default::default(),
            rung: Default::default(),
            status: [const { Cell::new(QueueStatus::ENABLED) }; THREADS],
            refuse_ring: Cell::new(false),
            now_us: Cell::new(0),
            on_delay: RefCell::new(None),
        };
        Self { port, device, threads, channels, queues, work, depth }
    }

    fn core(&self, core: u32) -> Core<'_> {
        let core = Core::new(&self.device, core);
        core.queues().set_sq_full_timeout_us(1000);
        core
    }

    fn thread(&self, index: usize) -> ThreadHandle {
        ThreadHandle::new(DeviceAddr(self.threads.as_ptr() as u64 + 64 * index as u64), 3)
    }

    fn channel(&self, index: usize) -> ChannelHandle {
        ChannelHandle::new(DeviceAddr(self.channels.as_ptr() as u64 + 256 * index as u64), 9)
    }

    fn ends(&self) -> Ends {
        Ends { thread: self.thread(0), channel: self.channel(0) }
    }

    /// A call, by its fast path if that takes it; whether it did.
    fn call<C: ChannelCall>(&self, core: &Core<'_>, ends: Ends, call: C) -> (bool, Result<(), Error>) {
        if call.is_simple() {
            match sq::try_entry(&self.port, self.device.queues(), core.queues(), ends.thread, ends.channel, call) {
                Fast::Queued => return (true, Ok(())),
                Fast::Refused { sq_id } => return (true, Err(Error::DoorbellRefused { sq_id })),
                Fast::NotTaken => {}
            }
        }
        (false, self.run(core, ends, &[call.transfer()], false))
    }

    fn run(&self, core: &Core<'_>, ends: Ends, transfers: &[Transfer], is_batch: bool) -> Result<(), Error> {
        transfers.iter().try_for_each(Transfer::check_nulls)?;
        run(&self.port, core, ends, transfers, is_batch, EntryPoint::WRITE)
    }

    fn end_batch(&self, core: &Core<'_>) -> Result<(), Error> {
        core.queues().end_batch(&self.port, self.device.queues())
    }

    fn read(entries: &[Entry], index: usize) -> Sqe {
        // SAFETY: an entry of our own; volatile, since the code under test writes through its address.
        unsafe { (&raw const entries[index].0).read_volatile() }
    }

    /// The work ring's block at producer index `index`.
    fn block(&self, index: u16) -> Block {
        Block(Self::read(&self.work, (u32::from(index) % self.depth) as usize).0)
    }

    /// Producer indices of the doorbells that queue `queue` was rung for so far.
    fn doorbells(&self, queue: usize) -> Vec<u16> {
        let sqes = (0..self.port.rung[queue].get()).map(|slot| Self::read(&self.queues[queue], slot as usize));
        sqes.map(|Sqe(words)| (words[2] >> 32) as u16).collect()
    }

    fn depth(&self) -> WorkDepth {
        WorkDepth::new(self.depth).unwrap()
    }

    /// The bytes of the rings end with the rig.
    fn bytes(&self) -> usize {
        self.queues.iter().map(Vec::len).sum::<usize>() * SQE_SIZE
    }
}

fn peer() -> Peer {
    Peer { path: PathNumber::new(17).unwrap(), eid: Eid(*b"the peer's eid !") }
}

fn remote(offset: u64) -> Remote {
    let token_id = TokenId::new(0x1_2345).unwrap();
    Remote { addr: DeviceAddr(REMOTE + offset), token_id, token_value: 0xcafe }
}

fn notify(index: u64) -> Remote {
    let token_id = TokenId::new(0x5_4321).unwrap();
    Remote { addr: DeviceAddr(NOTIFY + 8 * index), token_id, token_value: 0xbeef }
}

fn local(offset: u64) -> Local {
    Local { addr: DeviceAddr(LOCAL + offset), token_id: 0x1234_5678 }
}

fn write(len: u64) -> Move<false> {
    Move { dst: DeviceAddr(REMOTE), src: DeviceAddr(LOCAL), len }
}

fn read(len: u64) -> Move<true> {
    Move { dst: DeviceAddr(LOCAL), src: DeviceAddr(REMOTE), len }
}

fn copy(kind: TransferKind, len: u64, notify: Option<u32>) -> Transfer {
    let (dst, src) = match kind {
        TransferKind::Write => (DeviceAddr(REMOTE), DeviceAddr(LOCAL)),
        TransferKind::Read => (DeviceAddr(LOCAL), DeviceAddr(REMOTE)),
    };
    Transfer::Copy { kind, dst, src, len, notify }
}

#[test]
fn write_read_and_record_are_one_entry_and_one_doorbell_each() {
    let rig = Rig::new(16);
    let (core, ends, depth) = (rig.core(0), rig.ends(), rig.depth());
    // The first call looks the handles up; the second of each kind is fast.
    assert_eq!(rig.call(&core, ends, write(64)), (false, Ok(())));
    assert_eq!(rig.call(&core, ends, write(4096)), (true, Ok(())));
    assert_eq!(rig.call(&core, ends, read(1)), (true, Ok(())));
    assert_eq!(rig.call(&core, ends, Record { index: 1 }), (true, Ok(())));
    let expected = [
        Write::new(peer(), remote(0), local(0), 64).build(0, depth, Order::LAST),
        Write::new(peer(), remote(0), local(0), 4096).build(1, depth, Order::LAST),
        Read::new(peer(), remote(0), local(0), 1).build(2, depth, Order::LAST),
        NotifyRecord::new(peer(), notify(1)).build(3, depth, Order::LAST),
    ];
    for (index, expected) in (0..).zip(expected) {
        assert_eq!(rig.block(index), expected, "block {index}");
    }
    let jetty = Jetty::new(1, 3, 33).unwrap();
    for slot in 0..4 {
        let sqe = UbDoorbell::new(jetty, slot as u16 + 1).build(slot as u32);
        assert_eq!(Rig::read(&rig.queues[0], slot), sqe, "slot {slot}");
    }
    assert_eq!((rig.doorbells(0), rig.bytes()), (vec![1, 2, 3, 4], 2 * 8 * 64));
}

#[test]
fn checks_come_in_the_order_of_the_interface() {
    let rig = Rig::new(16);
    let core = rig.core(0);
    let good = rig.ends();
    let (null, far) = (DeviceAddr(0), DeviceAddr(u64::MAX - 10));
    let bad_thread = ThreadHandle(64);
    let bad_channels =
        [1, good.channel.0 + 1, good.channel.0 + 64, good.channel.0 ^ 1 << 48, rig.channel(2).0, 1 << 40];
    let reduce = |op, data_type, notify, dst, count| {
        let (kind, src) = (TransferKind::Write, DeviceAddr(LOCAL));
        Transfer::Reduce { kind, dst, src, count, data_type, op, notify }
    };
    let to = |dst, src, len, notify| Transfer::Copy { kind: TransferKind::Write, dst, src, len, notify };
    let run = |ends, transfer| rig.run(&core, ends, &[transfer], false);
    // Each wrong argument with everything after it wrong, too.
    let no_channel = Ends { channel: ChannelHandle(0), thread: bad_thread };
    assert_eq!(run(no_channel, to(null, null, 0, Some(9))), Err(Error::NullDst));
    assert_eq!(run(no_channel, to(far, null, 0, Some(9))), Err(Error::NullSrc));
    assert_eq!(run(no_channel, to(far, far, 99, Some(9))), Err(Error::NullChannel));
    for bad in bad_channels.map(ChannelHandle) {
        let ends = Ends { channel: bad, thread: ThreadHandle(0) };
        assert_eq!(run(ends, to(far, far, 99, Some(9))), Err(Error::BadChannel(bad)), "{:#x}", bad.0);
    }
    let ends = Ends { thread: ThreadHandle(0), ..good };
    assert_eq!(run(ends, to(far, far, 99, Some(9))), Err(Error::NullThread));
    let ends = Ends { thread: bad_thread, ..good };
    assert_eq!(run(ends, to(far, far, 99, Some(9))), Err(Error::BadHandle(bad_thread)));
    let other = Ends { channel: rig.channel(1), ..good };
    let error = Error::OtherComm { channel: other.channel, thread: other.thread };
    assert_eq!(run(other, to(far, far, 99, Some(9))), Err(error));
    let (op, data_type) = (ReduceOp::PROD, DataType::FP32);
    assert_eq!(run(good, reduce(op, data_type, Some(9), far, 99)), Err(Error::ChannelReduce { op, data_type }));
    let bad_notify = Error::BadPeerNotify { index: 2, count: 2 };
    assert_eq!(run(good, reduce(ReduceOp::SUM, data_type, Some(2), far, 99)), Err(bad_notify));
    assert_eq!(run(good, to(far, far, 12, Some(1))), Err(Error::AddressOverflow { addr: far, len: 12 }));
    let (base, size) = (DeviceAddr(REMOTE), REMOTE_LEN);
    for (addr, len) in
        [(REMOTE - 1, 1), (REMOTE - 1, 2), (REMOTE, REMOTE_LEN + 1), (REMOTE + REMOTE_LEN, 1), (LOCAL, 1)]
    {
        let addr = DeviceAddr(addr);
        let error = Error::RemoteRange { addr, len, base, size };
        assert_eq!((run(good, to(addr, DeviceAddr(LOCAL), len, None)), error.code()), (Err(error), 4));
    }
    assert_eq!(wait_on(&rig.port, &core, good, 3, Some(1)), Err(Error::BadLocalNotify { index: 3, count: 3 }));
    let codes =
        [error, Error::NullChannel, bad_notify, Error::ChannelReduce { op, data_type }].map(|error| error.code());
    assert_eq!(codes, [6, 2, 2, 1]);
    // Nothing was posted.
    assert_eq!((rig.block(0).0[0], rig.doorbells(0)), (0xa5a5_a5a5_a5a5_a5a5, vec![]));
}

/// Case 371.
#[test]
fn length_0_posts_nothing_but_delivers_its_notify() {
    let rig = Rig::new(16);
    let (core, ends) = (rig.core(0), rig.ends());
    for kind in [TransferKind::Write, TransferKind::Read] {
        assert_eq!(rig.run(&core, ends, &[copy(kind, 0, None)], false), Ok(()));
    }
    assert_eq!(rig.doorbells(0), []);
    assert_eq!(rig.run(&core, ends, &[copy(TransferKind::Write, 0, Some(0))], false), Ok(()));
    assert_eq!(rig.block(0), NotifyRecord::new(peer(), notify(0)).build(0, rig.depth(), Order::LAST));
    assert_eq!(rig.doorbells(0), [1]);
}

/// The length of each slice, whatever is above 32 bits.
///
/// Case 370.
#[test]
fn lengths_from_4_gib_on_are_not_cut_to_32_bits() {
    let rig = Rig::with(64, Soc::Ascend950, |descriptor| descriptor.max_slice = 256 << 20);
    let (core, ends) = (rig.core(0), rig.ends());
    let len = (4 << 30) + 16;
    assert_eq!(rig.run(&core, ends, &[copy(TransferKind::Write, len, Some(1))], false), Ok(()));
    // 16 plain writes, and the two blocks of the last one.
    assert_eq!(rig.doorbells(0), [18]);
    let lens = (0..16).map(|index| rig.block(index).0[6] as u32 as u64).sum::<u64>();
    assert_eq!(lens, 4 << 30);
    let last = WriteWithNotify::new(peer(), remote(4 << 30), local(4 << 30), 16, notify(1));
    assert_eq!([rig.block(16), rig.block(17)], last.build(16, rig.depth(), Order::LAST));
}

/// Case 374.
#[test]
fn notify_of_two_blocks_goes_over_the_end_of_ring_and_index() {
    for start in [15, u16::MAX] {
        let rig = Rig::with(16, Soc::Ascend950, |descriptor| descriptor.producer_index = start.into());
        let (core, ends) = (rig.core(0), rig.ends());
        assert_eq!(rig.run(&core, ends, &[copy(TransferKind::Write, 64, Some(0))], false), Ok(()));
        let expected =
            WriteWithNotify::new(peer(), remote(0), local(0), 64, notify(0)).build(start, rig.depth(), Order::LAST);
        assert_eq!([rig.block(start), rig.block(start.wrapping_add(1))], expected);
        assert_eq!(rig.doorbells(0), [start.wrapping_add(2)]);
    }
}

/// Case 372.
#[test]
fn full_work_ring_waits_for_the_head_of_the_queue_and_then_answers_9() {
    let rig = Rig::new(4);
    let (core, ends) = (rig.core(0), rig.ends());
    for _ in 0..4 {
        assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    }
    let full = Error::WorkRingFull { jetty: 33, index: 4, wanted: 1, depth: 4, timeout_us: 1000 };
    assert_eq!((rig.call(&core, ends, write(64)).1, full.code()), (Err(full), 9));
    assert!(rig.port.now_us.get() >= 1000);
    assert_eq!(rig.doorbells(0), [1, 2, 3, 4]);
    // All but the last doorbell: not enough to know that its entry is consumed.
    rig.port.head[0].set(3);
    assert_eq!(rig.call(&core, ends, write(64)).1, Err(full));
    rig.port.run_all();
    for index in 5..=7 {
        assert_eq!(rig.call(&core, ends, write(64)), (index != 5, Ok(())), "{index}");
    }
    assert_eq!(rig.doorbells(0), [1, 2, 3, 4, 5, 6, 7]);
}

/// Case 372.
#[test]
fn operation_larger_than_the_ring_flows_through_it() {
    let rig = Rig::new(4);
    let (core, ends) = (rig.core(0), rig.ends());
    *rig.port.on_delay.borrow_mut() = Some(Box::new(Port::run_all));
    let len = 9 * u64::from(MAX_SLICE) + 1;
    assert_eq!(rig.run(&core, ends, &[copy(TransferKind::Write, len, Some(1))], false), Ok(()));
    // Ten slices, the last of two blocks; a group that does not end with the operation ends with a completion all the same.
    assert_eq!(rig.doorbells(0), [4, 8, 11]);
    let last = WriteWithNotify::new(peer(), remote(9 * 4096), local(9 * 4096), 1, notify(1));
    assert_eq!([rig.block(9), rig.block(10)], last.build(9, rig.depth(), Order::LAST));
    let ends_group = Write::new(peer(), remote(7 * 4096), local(7 * 4096), 4096).build(7, rig.depth(), Order::LAST);
    assert_eq!(rig.block(7), ends_group);
}

#[test]
fn batch_writes_entries_at_the_call_and_rings_at_its_end() {
    let rig = Rig::new(16);
    let (core, ends) = (rig.core(0), rig.ends());
    core.queues().start_batch();
    for index in 0..3 {
        assert_eq!(rig.call(&core, ends, write(64)), (index != 0, Ok(())));
        assert_ne!(rig.block(index).0[0], 0xa5a5_a5a5_a5a5_a5a5, "written at the call");
    }
    assert_eq!(rig.doorbells(0), []);
    assert_eq!(rig.end_batch(&core), Ok(()));
    assert_eq!(rig.doorbells(0), [1, 2, 3]);
    // The next batch and eager calls go on behind it.
    assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    assert_eq!(rig.doorbells(0), [1, 2, 3, 4]);
}

/// Case 373.
#[test]
fn dropped_batch_takes_its_entries_back() {
    let rig = Rig::new(4);
    let (core, ends) = (rig.core(0), rig.ends());
    assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    for _ in 0..3 {
        core.queues().start_batch();
        for _ in 0..3 {
            assert_eq!(rig.call(&core, ends, read(64)).1, Ok(()));
        }
        assert!(core.queues().discard_batch(rig.device.queues()));
    }
    // None of the nine blocks counts, and the next doorbell starts none of them.
    assert_eq!(rig.call(&core, ends, Record { index: 0 }).1, Ok(()));
    assert_eq!(rig.doorbells(0), [1, 2]);
    assert_eq!(rig.block(1), NotifyRecord::new(peer(), notify(0)).build(1, rig.depth(), Order::LAST));
    // Nor are they missing: two more fit.
    for index in [3, 4] {
        assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()), "{index}");
    }
    assert!(matches!(rig.call(&core, ends, write(64)).1, Err(Error::WorkRingFull { .. })));
}

/// Case 373.
#[test]
fn refused_doorbell_leaves_no_entry() {
    let rig = Rig::new(4);
    let (core, ends) = (rig.core(0), rig.ends());
    assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    rig.port.refuse_ring.set(true);
    for _ in 0..10 {
        assert_eq!(rig.call(&core, ends, write(64)), (true, Err(Error::DoorbellRefused { sq_id: 0 })));
        let refused = rig.run(&core, ends, &[copy(TransferKind::Write, 64, Some(0))], false);
        assert_eq!(refused, Err(Error::DoorbellRefused { sq_id: 0 }));
    }
    core.queues().start_batch();
    assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    assert_eq!(rig.end_batch(&core), Err(Error::DoorbellRefused { sq_id: 0 }));
    rig.port.refuse_ring.set(false);
    assert_eq!(rig.call(&core, ends, read(8)).1, Ok(()));
    assert_eq!(rig.doorbells(0), [1, 2]);
    assert_eq!(rig.block(1), Read::new(peer(), remote(0), local(0), 8).build(1, rig.depth(), Order::LAST));
}

/// Case 377.
#[test]
fn two_threads_share_a_channel_and_its_order() {
    let rig = Rig::new(4);
    let (core, other) = (rig.core(0), rig.core(1));
    let (first, second) = (rig.ends(), Ends { thread: rig.thread(1), ..rig.ends() });
    assert_eq!(rig.call(&core, first, write(64)).1, Ok(()));
    assert_eq!(rig.call(&other, second, write(64)).1, Ok(()));
    assert_eq!((rig.doorbells(0), rig.doorbells(1)), (vec![1], vec![2]));
    // What one core has staged is published before the doorbell of the other starts it.
    core.queues().start_batch();
    assert_eq!(rig.call(&core, first, write(64)).1, Ok(()));
    assert_eq!(rig.doorbells(0), [1]);
    assert_eq!(rig.call(&other, second, write(64)).1, Ok(()));
    assert_eq!((rig.doorbells(0), rig.doorbells(1)), (vec![1, 3], vec![2, 4]));
    assert_eq!(rig.end_batch(&core), Ok(()));
    assert_eq!(rig.doorbells(0), [1, 3]);
    // Room is known from the queue that carried the last doorbell.
    rig.port.head[0].set(2);
    assert!(matches!(rig.call(&core, first, write(64)).1, Err(Error::WorkRingFull { .. })));
    rig.port.head[1].set(2);
    assert_eq!(rig.call(&core, first, write(64)).1, Ok(()));
}

#[test]
fn wait_on_another_thread_does_not_hand_it_what_a_batch_has_staged() {
    let rig = Rig::new(8);
    let core = rig.core(0);
    let (first, second) = (rig.ends(), Ends { thread: rig.thread(1), ..rig.ends() });
    core.queues().start_batch();
    // Both queues hold something of the batch, so that a call on either might be quick.
    assert_eq!(wait_on(&rig.port, &core, second, 0, Some(1)), Ok(()));
    assert_eq!(rig.call(&core, first, write(64)).1, Ok(()));
    assert_eq!(wait_on(&rig.port, &core, second, 0, Some(1)), Ok(()));
    assert_eq!(rig.call(&core, second, write(64)), (false, Ok(())));
    assert_eq!(rig.doorbells(0), [1], "published before the doorbell of the other queue is staged");
    assert_eq!(rig.end_batch(&core), Ok(()));
    assert_eq!(rig.doorbells(1).last(), Some(&2));
}

#[test]
fn staged_doorbell_that_a_copy_has_published_is_not_dropped_with_the_next_ones() {
    let rig = Rig::new(8);
    let (core, other, ends) = (rig.core(0), rig.core(1), rig.ends());
    let copy_on = |core: &Core<'_>| {
        let request = Request::transfer(DeviceAddr(64), DeviceAddr(128), 64, 0);
        submit(&rig.port, rig.device.queues(), core.queues(), ends.thread, request, EntryPoint::LOCAL_COPY)
    };
    core.queues().start_batch();
    assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    // The doorbell of the other core's copy is for all that the queue holds.
    assert_eq!(copy_on(&other), Ok(()));
    assert_eq!(rig.doorbells(0)[0], 1);
    // The batch stages on the queue again, first a copy, then an entry of the same channel.
    assert_eq!(copy_on(&core), Ok(()));
    assert_eq!(rig.call(&core, ends, write(64)), (false, Ok(())));
    assert!(core.queues().discard_batch(rig.device.queues()));
    assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    assert_eq!(rig.doorbells(0).last(), Some(&2), "the entry that was dropped does not count, the first one does");
}

/// Case 378.
#[test]
fn reset_of_the_queue_frees_the_work_ring() {
    let rig = Rig::new(4);
    let (core, ends) = (rig.core(0), rig.ends());
    for _ in 0..4 {
        assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    }
    let status = QueueStatus::ENABLED.after_reset().unwrap();
    rig.port.status[0].set(status.with_state(QueueStatus::SUSPENDED));
    assert_eq!(rig.call(&core, ends, write(64)).1, Err(Error::Suspended { sq_id: 0 }));
    rig.port.status[0].set(status);
    rig.port.head[0].set(0);
    rig.port.rung[0].set(0);
    assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    assert_eq!(rig.doorbells(0), [5]);
}

#[test]
fn full_queue_leaves_no_entry() {
    let rig = Rig::new(16);
    let (core, ends) = (rig.core(0), rig.ends());
    for _ in 0..SQ_DEPTH - 1 {
        assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    }
    let full = QueueFull { sq_id: 0, head: 0, tail: 7, wanted: 1, queued_len: 0, timeout_us: 1000 };
    assert_eq!(rig.call(&core, ends, write(64)).1, Err(Error::QueueFull(full)));
    rig.port.run_all();
    for _ in 0..2 {
        assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
    }
    assert_eq!(Rig::read(&rig.queues[0], 0), UbDoorbell::new(Jetty::new(1, 3, 33).unwrap(), 9).build(8));
}

/// Case 375.
#[test]
fn freed_channel_is_refused_at_once_and_the_next_one_starts_again() {
    let mut rig = Rig::new(8);
    let ends = rig.ends();
    {
        let core = rig.core(0);
        for _ in 0..2 {
            assert_eq!(rig.call(&core, ends, write(64)).1, Ok(()));
        }
    }
    let tag = |rig: &mut Rig, tag: ChannelTag| {
        // SAFETY: a descriptor of our own; volatile, since the code under test reads it by its address.
        unsafe { (&raw mut rig.channels[0].tag).write_volatile(tag) };
    };
    tag(&mut rig, ChannelTag { magic: 0, version: 0, generation: 0 });
    assert_eq!(rig.call(&rig.core(0), ends, write(64)), (false, Err(Error::BadChannel(ends.channel))));
    tag(&mut rig, ChannelTag::live(10));
    assert_eq!(rig.call(&rig.core(0), ends, write(64)), (false, Err(Error::BadChannel(ends.channel))));
    let next = Ends { channel: ChannelHandle::new(ends.channel.addr(), 10), ..ends };
    assert_eq!(rig.call(&rig.core(0), next, write(64)), (false, Ok(())));
    assert_eq!(rig.doorbells(0), [1, 2, 1]);
}

/// Case 381.
#[test]
fn fence_makes_every_slice_of_the_next_transfer_strong() {
    let rig = Rig::new(16);
    let (core, ends) = (rig.core(0), rig.ends());
    let fence = || {
        crate::channel::submit::enter(&core, ends).unwrap();
        crate::channel::submit::fence(&core, ends);
    };
    let two_slices = copy(TransferKind::Write, 5000, None);
    let orders =
        |from: u16, count| (from..from + count).map(|index| rig.block(index).0[0] >> 16 & 0x3f).collect::<Vec<_>>();
    assert_eq!(rig.run(&core, ends, &[two_slices], false), Ok(()));
    assert_eq!(orders(0, 2), [0x1d, 0x3e]);
    fence();
    // A record and a call that is refused leave it pending.
    assert_eq!(rig.call(&core, ends, Record { index: 0 }), (false, Ok(())));
    assert!(rig.run(&core, ends, &[copy(TransferKind::Write, REMOTE_LEN + 1, None)], false).is_err());
    assert_eq!(rig.run(&core, ends, &[two_slices], false), Ok(()));
    assert_eq!(orders(3, 2), [0x1e, 0x3e]);
    assert_eq!(rig.run(&core, ends, &[two_slices], false), Ok(()));
    assert_eq!(orders(5, 2), [0x1d, 0x3e]);
    // A batch.
    fence();
    let batch =
        [copy(TransferKind::Write, 8, None), copy(TransferKind::Write, 8, None), copy(TransferKind::Read, 8, None)];
    rig.port.run_all();
    assert_eq!(rig.run(&core, ends, &batch, true), Ok(()));
    assert_eq!(orders(7, 3), [0x1e, 0x19, 0x3e]);
    assert_eq!(rig.call(&core, ends, write(64)), (true, Ok(())));
}

/// Case 380.
#[test]
fn batch_transfer_is_checked_before_its_first_entry_is_written() {
    let rig = Rig::new(16);
    let (core, ends, depth) = (rig.core(0), rig.ends(), rig.depth());
    let good = copy(TransferKind::Write, 64, None);
    let (op, data_type) = (ReduceOp::MAX, DataType(7));
    let reduce = Transfer::Reduce {
        kind: TransferKind::Read,
        dst: DeviceAddr(LOCAL),
        src: DeviceAddr(REMOTE),
        count: 3,
        data_type,
        op,
        notify: None,
    };
    let wrong = [
        (copy(TransferKind::Write, REMOTE_LEN + 1, None), 4),
        (Transfer::Record { notify: 2 }, 2),
        (Transfer::Copy { kind: TransferKind::Write, dst: DeviceAddr(0), src: DeviceAddr(1), len: 1, notify: None }, 2),
    ];
    for (wrong, code) in wrong {
        let error = rig.run(&core, ends, &[good, reduce, wrong], true).unwrap_err();
        assert_eq!((error.code(), rig.block(0).0[0]), (code, 0xa5a5_a5a5_a5a5_a5a5), "{error}");
    }
    assert_eq!(rig.run(&core, ends, &[], true), Err(Error::NoTransfers));
    let transfers = [
        good,
        copy(TransferKind::Read, 0, None),
        reduce,
        Transfer::Record { notify: 1 },
        good,
        copy(TransferKind::Write, 0, None),
    ];
    assert_eq!(rig.run(&core, ends, &transfers, true), Ok(()));
    let middle = Order { place: Place::RELAXED, completion: false, fence: true, cqe: false };
    let max = UbReduce::new(op, data_type).unwrap();
    let expected = [
        Write::new(peer(), remote(0), local(0), 64).build(0, depth, middle),
        Read::new(peer(), remote(0), local(0), 3).reduce(max).build(1, depth, middle),
        // Index 1 announces data: strong and complete wherever it stands.
        NotifyRecord::new(peer(), notify(1)).build(2, depth, Order::LAST),
        Write::new(peer(), remote(0), local(0), 64).build(3, depth, Order::LAST),
    ];
    for (index, expected) in (0..).zip(expected) {
        assert_eq!(rig.block(index), expected, "block {index}");
    }
    assert_eq!(rig.doorbells(0), [4]);
}

#[test]
fn descriptor_that_holds_what_it_cannot_is_refused() {
    type Edit = fn(&mut ChannelDescriptor);
    let edits: [(u64, Edit); 8] = [
        (3, |channel| channel.depth = 3),
        (65_536, |channel| channel.depth = 65_536),
        (0, |channel| channel.ring = DeviceAddr(0)),
        (33, |channel| channel.jetty_function = 128),
        (1 << 24, |channel| channel.path = 1 << 24),
        (2, |channel| channel.max_slice = 2),
        (1 << 20, |channel| channel.remote_token_id = 1 << 20),
        (65, |channel| channel.peer_notify_count = 65),
    ];
    for (value, edit) in edits {
        let rig = Rig::with(16, Soc::Ascend950, edit);
        let error = rig.call(&rig.core(0), rig.ends(), write(64)).1.unwrap_err();
        assert!(matches!(error, Error::BadChannelField { value: found, .. } if found == value), "{error}");
        assert_eq!(error.code(), 16);
    }
    for protocol in [Protocol::HCCS, Protocol(1), Protocol(6), Protocol(-1)] {
        let rig = Rig::with(16, Soc::Ascend950, |channel| channel.protocol = protocol);
        assert_eq!(rig.call(&rig.core(0), rig.ends(), write(64)).1.unwrap_err().code(), 5);
    }
}

#[test]
fn hccs_is_sdma_and_a_write_value() {
    let register = 0x3_0000_0000 + (1 << 32) + 4 * 7;
    let edit = |channel: &mut ChannelDescriptor| {
        (channel.protocol, channel.notify_size) = (Protocol::HCCS, 4);
        (channel.peer_notify, channel.ring, channel.depth) = (DeviceAddr(register), DeviceAddr(0), 0);
    };
    for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
        let rig = Rig::with(2, soc, edit);
        let (core, ends) = (rig.core(0), rig.ends());
        assert_eq!(rig.call(&core, ends, write(64)), (false, Ok(())));
        assert_eq!(rig.call(&core, ends, Record { index: 1 }), (false, Ok(())));
        assert_eq!(wait_on(&rig.port, &core, ends, 2, Some(5)), Ok(()));
        let sqe = |slot| Rig::read(&rig.queues[0], slot).0;
        // Type 11, link type HCCS, QoS 6, source and destination.
        assert_eq!((sqe(0)[0] & 0x3f, sqe(0)[6] as u32, sqe(0)[4], sqe(0)[5]), (11, 1, LOCAL, REMOTE));
        assert_eq!((sqe(1)[0] & 0x3f, sqe(1)[2] as u32), (8, register as u32 + 4));
        assert_eq!((sqe(2)[0] & 0x3f, sqe(2)[1] as u32), (7, 42));
        let not_supported = [
            rig.run(&core, ends, &[copy(TransferKind::Write, 64, Some(0))], false),
            rig.run(&core, ends, &[copy(TransferKind::Write, 64, None)], true),
        ];
        assert_eq!(not_supported.map(|result| result.unwrap_err().code()), [5; 2]);
    }
}

/// The other tasks of the queue lie between the doorbells, over many laps of both rings and of the index.
///
/// Case 374.
#[test]
fn rings_lap_each_other_without_losing_a_block() {
    const ROUNDS: u32 = if cfg!(miri) { 100 } else { 70_000 };
    let rig = Rig::new(4);
    let (core, ends) = (rig.core(0), rig.ends());
    *rig.port.on_delay.borrow_mut() = Some(Box::new(Port::run_all));
    let mut index = 0_u16;
    for round in 0..ROUNDS {
        let notify = (round % 3 == 0).then_some(0);
        assert_eq!(rig.run(&core, ends, &[copy(TransferKind::Write, 8, notify)], false), Ok(()), "round {round}");
        if round % 5 == 0 {
            let copy = Request::transfer(DeviceAddr(LOCAL), DeviceAddr(LOCAL + 64), 64, 0);
            let (queues, entry) = (rig.device.queues(), EntryPoint::LOCAL_COPY);
            submit(&rig.port, queues, core.queues(), ends.thread, copy, entry).unwrap();
        }
        let block = rig.block(index);
        let opcode = if notify.is_some() { 5 } else { 3 };
        let is_owner = u64::from(index == 3);
        assert_eq!((block.0[0] >> 31 & 1, block.0[0] >> 40 & 0xff), (is_owner, opcode), "index {index}");
        index = index.wrapping_add(if notify.is_some() { 2 } else { 1 });
    }
}
