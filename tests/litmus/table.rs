//! The pairs. A name says what orders the fixed one.

use super::Step::*;
use super::{DEPTH, Edge, Ground, Pair, Step, one, pair};
use hcomm_kernel::Call;
use hcomm_testkit::calls;

fn batch(list: Vec<Call>) -> Vec<Call> {
    let (start, end) = (calls::call(Call::BATCH_START, &[]), calls::call(Call::BATCH_END, &[]));
    std::iter::once(start).chain(list).chain([end]).collect()
}

/// Two copies to the same bytes on two threads, with `between` between the calls.
fn writers(g: &Ground, between: Vec<Call>) -> Vec<Call> {
    let (first, second) = (g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (0, 0), (2, 0), 64));
    std::iter::once(first).chain(between).chain([second]).collect()
}

fn notify(g: &Ground, from: usize, to: usize, index: u32) -> Vec<Call> {
    vec![g.record(from, to, index), g.wait(to, index)]
}

/// One launch on each of two streams that write the same bytes.
fn two_launches(g: &Ground, streams: [usize; 2], between: Vec<Step>) -> Vec<Step> {
    let (first, second) = (vec![g.copy(0, (0, 0), (1, 0), 64)], vec![g.copy(1, (0, 0), (2, 0), 64)]);
    std::iter::once(Drained(streams[0], first)).chain(between).chain([Drained(streams[1], second)]).collect()
}

/// Three rounds of a write by thread 0 and a read by thread 1, of which so many order the next write; then a last write.
fn rounds(g: &Ground, ordered: usize) -> Vec<Call> {
    let round = |n| {
        let back = if n < ordered { notify(g, 1, 0, 0) } else { Vec::new() };
        [vec![g.copy(0, (0, 0), (1, 0), 8)], notify(g, 0, 1, 0), vec![g.copy(1, (2, 0), (0, 0), 8)], back].concat()
    };
    (0..3).flat_map(round).chain([g.copy(0, (0, 0), (1, 0), 8)]).collect()
}

/// A write, two readers, and a write that only the first reader comes before, but for what `last` orders.
fn diamond(g: &Ground, last: Vec<Call>) -> Vec<Call> {
    let readers = vec![g.copy(1, (2, 0), (0, 0), 64), g.copy(2, (3, 0), (0, 0), 64)];
    let fork = [vec![g.copy(0, (0, 0), (1, 0), 64)], notify(g, 0, 1, 0), notify(g, 0, 2, 0), readers];
    [fork.concat(), notify(g, 1, 0, 0), last, vec![g.copy(0, (0, 0), (1, 0), 64)]].concat()
}

/// Two threads write a half each, a third one reads both.
fn halves(g: &Ground, between: Vec<Call>) -> Vec<Call> {
    let writes = vec![g.copy(0, (0, 0), (1, 0), 32), g.copy(1, (0, 32), (2, 0), 32)];
    [writes, between, vec![g.copy(2, (3, 0), (0, 0), 64)]].concat()
}

/// As [`two_launches`] on both streams, but the first kernel joins its thread.
fn joined_launch(g: &Ground, between: Vec<Step>) -> Vec<Step> {
    let first = vec![g.copy(0, (0, 0), (1, 0), 64), g.join(0)];
    let second = vec![g.copy(1, (0, 0), (2, 0), 64)];
    std::iter::once(Drained(0, first)).chain(between).chain([Drained(1, second)]).collect()
}

/// A launch on each stream that writes a buffer of its own, then `rest`.
fn on_both_streams(g: &Ground, rest: Vec<Step>) -> Vec<Step> {
    let lists = [vec![g.copy(0, (0, 0), (1, 0), 64)], vec![g.copy(1, (3, 0), (2, 0), 64)]];
    let launches = lists.into_iter().enumerate().map(|(stream, list)| Drained(stream, list));
    launches.chain(rest).collect()
}

pub const PAIRS: &[Pair] = &[
    pair(
        "two writers: notify",
        Edge::Notify,
        |g| one(writers(g, vec![])),
        &["race on 64 bytes", "the write of task 1 (sdma copy) on thread 0", "on thread 1 of the 3"],
        |g| one(writers(g, notify(g, 0, 1, 0))),
    ),
    pair(
        "two writers: one thread",
        Edge::Queue,
        |g| one(writers(g, vec![])),
        &["race on 64 bytes"],
        |g| one(vec![g.copy(0, (0, 0), (1, 0), 64), g.copy(0, (0, 0), (2, 0), 64)]),
    ),
    pair(
        "read after write: notify",
        Edge::Notify,
        |g| one(vec![g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (2, 0), (0, 8), 32)]),
        &["race on 32 bytes", "offset 8 of the allocation of 256 bytes", "the read of task", "the write of task"],
        |g| one([vec![g.copy(0, (0, 0), (1, 0), 64)], notify(g, 0, 1, 1), vec![g.copy(1, (2, 0), (0, 8), 32)]].concat()),
    ),
    pair(
        "write after read: notify",
        Edge::Notify,
        |g| one(vec![g.copy(0, (1, 0), (0, 0), 64), g.copy(1, (0, 0), (2, 0), 64)]),
        &["the read of task", "the write of task"],
        |g| one([vec![g.copy(0, (1, 0), (0, 0), 64)], notify(g, 0, 1, 0), vec![g.copy(1, (0, 0), (2, 0), 64)]].concat()),
    ),
    pair(
        "record before the access and after it: notify",
        Edge::Notify,
        |g| one([vec![g.record(0, 1, 0)], writers(g, vec![g.wait(1, 0)])].concat()),
        &["race on 64 bytes"],
        |g| one(writers(g, notify(g, 0, 1, 0))),
    ),
    pair(
        "wait after the access and before it: notify",
        Edge::Notify,
        |g| one([writers(g, vec![g.record(0, 1, 0)]), vec![g.wait(1, 0)]].concat()),
        &["race on 64 bytes"],
        |g| one(writers(g, notify(g, 0, 1, 0))),
    ),
    pair(
        "wait of another thread, and of the right one: notify",
        Edge::Notify,
        |g| one(writers(g, notify(g, 0, 2, 0))),
        &["from thread"],
        |g| one(writers(g, notify(g, 0, 1, 3))),
    ),
    pair(
        "through a third thread: notify",
        Edge::Notify,
        |g| one(writers(g, [notify(g, 2, 1, 1), notify(g, 0, 2, 0)].concat())),
        &["race on 64 bytes"],
        |g| one(writers(g, [notify(g, 0, 2, 0), notify(g, 2, 1, 1)].concat())),
    ),
    pair(
        "fork: notify to each of two",
        Edge::Notify,
        |g| {
            one([
                vec![g.copy(0, (0, 0), (1, 0), 64)],
                notify(g, 0, 1, 0),
                vec![g.copy(1, (2, 0), (0, 0), 64), g.copy(2, (3, 0), (0, 0), 64)],
            ]
            .concat())
        },
        &["on thread 2 of the 3"],
        |g| {
            one([
                vec![g.copy(0, (0, 0), (1, 0), 64)],
                notify(g, 0, 1, 0),
                notify(g, 0, 2, 0),
                vec![g.copy(1, (2, 0), (0, 0), 64), g.copy(2, (3, 0), (0, 0), 64)],
            ]
            .concat())
        },
    ),
    pair(
        "join: notify from each of two",
        Edge::Notify,
        |g| {
            one([
                vec![g.copy(1, (2, 0), (1, 0), 64), g.copy(2, (3, 0), (1, 0), 64)],
                notify(g, 1, 0, 0),
                vec![g.copy(0, (0, 0), (3, 0), 64)],
            ]
            .concat())
        },
        &["on thread 2 of the 3"],
        |g| {
            one([
                vec![g.copy(1, (2, 0), (1, 0), 64), g.copy(2, (3, 0), (1, 0), 64)],
                notify(g, 1, 0, 0),
                notify(g, 2, 0, 1),
                vec![g.copy(0, (0, 0), (3, 0), 64)],
            ]
            .concat())
        },
    ),
    pair(
        "reused notify: the way back, too",
        Edge::Notify,
        |g| {
            let round =
                [vec![g.copy(0, (0, 0), (1, 0), 8)], notify(g, 0, 1, 0), vec![g.copy(1, (2, 0), (0, 0), 8)]].concat();
            one([round, vec![g.copy(0, (0, 0), (1, 0), 8)], notify(g, 1, 0, 0)].concat())
        },
        &["race on 8 bytes"],
        |g| {
            let round = [
                vec![g.copy(0, (0, 0), (1, 0), 8)],
                notify(g, 0, 1, 0),
                vec![g.copy(1, (2, 0), (0, 0), 8)],
                notify(g, 1, 0, 0),
            ]
            .concat();
            one([round.clone(), round].concat())
        },
    ),
    pair(
        "overlap of one byte: adjacent bytes",
        Edge::None,
        |g| one(vec![g.copy(0, (0, 0), (1, 0), 33), g.copy(1, (0, 32), (2, 32), 32)]),
        &["race on 1 bytes", "offset 32 of"],
        |g| one(vec![g.copy(0, (0, 0), (1, 0), 32), g.copy(1, (0, 32), (2, 32), 32)]),
    ),
    pair(
        "a write inside a read: two reads",
        Edge::None,
        |g| one(vec![g.copy(0, (1, 0), (0, 0), 128), g.copy(1, (0, 64), (2, 0), 1)]),
        &["race on 1 bytes", "offset 64 of"],
        |g| one(vec![g.copy(0, (1, 0), (0, 0), 128), g.copy(1, (2, 0), (0, 64), 1)]),
    ),
    pair(
        "two reduces: notify",
        Edge::Notify,
        |g| one(vec![g.sum(0, 0, 1), g.sum(1, 0, 2)]),
        &["race on 64 bytes", "sdma reduce"],
        |g| one([vec![g.sum(0, 0, 1)], notify(g, 0, 1, 0), vec![g.sum(1, 0, 2)]].concat()),
    ),
    pair(
        "two reduces: one thread",
        Edge::Queue,
        |g| one(vec![g.sum(0, 0, 1), g.sum(1, 0, 2)]),
        &["the write of task"],
        |g| one(vec![g.sum(0, 0, 1), g.sum(0, 0, 2)]),
    ),
    pair(
        "reduce and a reader of its result: notify",
        Edge::Notify,
        |g| one(vec![g.sum(0, 0, 1), g.copy(1, (2, 0), (0, 0), 64)]),
        &["the read of task"],
        |g| one([vec![g.sum(0, 0, 1)], notify(g, 0, 1, 0), vec![g.copy(1, (2, 0), (0, 0), 64)]].concat()),
    ),
    pair(
        "reduce and a writer of its source: notify",
        Edge::Notify,
        |g| one(vec![g.sum(0, 0, 1), g.copy(1, (1, 0), (2, 0), 64)]),
        &["race on 64 bytes"],
        |g| one([vec![g.sum(0, 0, 1)], notify(g, 0, 1, 0), vec![g.copy(1, (1, 0), (2, 0), 64)]].concat()),
    ),
    pair(
        "reduces into the same bytes: different bytes",
        Edge::None,
        |g| one(vec![g.sum(0, 0, 1), g.sum(1, 0, 1)]),
        &["race on 64 bytes"],
        |g| one(vec![g.sum(0, 0, 1), g.sum(1, 2, 1)]),
    ),
    pair(
        "chunks of other threads: notify to each",
        Edge::Notify,
        |g| one(vec![g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (2, 0), (0, 0), 32), g.copy(2, (2, 32), (0, 32), 32)]),
        &["race on 32 bytes"],
        |g| {
            one([
                vec![g.copy(0, (0, 0), (1, 0), 64)],
                notify(g, 0, 1, 0),
                notify(g, 0, 2, 0),
                vec![g.copy(1, (2, 0), (0, 0), 32), g.copy(2, (2, 32), (0, 32), 32)],
            ]
            .concat())
        },
    ),
    pair(
        "chunks that are shifted by one: each its own",
        Edge::None,
        |g| one((0..3).map(|n| g.copy(n, (0, 32 * n), (1, 32 * n), 33)).collect()),
        &["race on 1 bytes"],
        |g| one((0..3).map(|n| g.copy(n, (0, 32 * n), (1, 32 * n), 32)).collect()),
    ),
    pair(
        "batch: notify inside",
        Edge::Notify,
        |g| one(batch(writers(g, vec![]))),
        &["race on 64 bytes"],
        |g| one(batch(writers(g, notify(g, 0, 1, 0)))),
    ),
    pair(
        "a batch of each of two: notify across",
        Edge::Notify,
        |g| one([batch(vec![g.copy(0, (0, 0), (1, 0), 64)]), batch(vec![g.copy(1, (0, 0), (2, 0), 64)])].concat()),
        &["race on 64 bytes"],
        |g| {
            one([
                batch(vec![g.copy(0, (0, 0), (1, 0), 64), g.record(0, 1, 2)]),
                batch(vec![g.wait(1, 2), g.copy(1, (0, 0), (2, 0), 64)]),
            ]
            .concat())
        },
    ),
    pair(
        "around the end of the ring: notify",
        Edge::Notify,
        |g| {
            let fill = (0..2 * DEPTH as usize).map(|n| g.copy(0, (3, 8 * (n % 8)), (1, 0), 8));
            one(fill.chain(writers(g, vec![])).collect())
        },
        &["task 17 (sdma copy) on thread 0"],
        |g| {
            let fill = (0..2 * DEPTH as usize).map(|n| g.copy(0, (3, 8 * (n % 8)), (1, 0), 8));
            one(fill.chain(writers(g, notify(g, 0, 1, 0))).collect())
        },
    ),
    pair(
        "join of the thread",
        Edge::Drained,
        |g| one(writers(g, vec![])),
        &["race on 64 bytes"],
        |g| one(writers(g, vec![g.join(0)])),
    ),
    pair(
        "synchronise of the thread",
        Edge::Drained,
        |g| one(writers(g, vec![g.synchronize(1)])),
        &["race on 64 bytes"],
        |g| one(writers(g, vec![g.synchronize(0)])),
    ),
    pair(
        "join before the access and after it",
        Edge::Drained,
        |g| one([vec![g.join(0)], writers(g, vec![])].concat()),
        &["race on 64 bytes"],
        |g| one(writers(g, vec![g.join(0)])),
    ),
    pair(
        "join of a chain",
        Edge::Drained,
        |g| one([writers(g, notify(g, 0, 1, 0)), vec![g.join(0), g.copy(2, (0, 0), (3, 0), 64)]].concat()),
        &["on thread 2 of the 3"],
        |g| one([writers(g, notify(g, 0, 1, 0)), vec![g.join(1), g.copy(2, (0, 0), (3, 0), 64)]].concat()),
    ),
    pair(
        "two streams: synchronise between",
        Edge::Synchronize,
        |g| two_launches(g, [0, 1], vec![]),
        &["in launch", "kernel call_list"],
        |g| two_launches(g, [0, 1], vec![Sync(0)]),
    ),
    pair(
        "two streams: notify of the host",
        Edge::Notify,
        |g| two_launches(g, [0, 1], vec![]),
        &["race on 64 bytes"],
        |g| two_launches(g, [0, 1], vec![Record(0), Wait(1)]),
    ),
    pair(
        "one stream: the launch ends with its tasks",
        Edge::LaunchEnd,
        |g| vec![Launch(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Drained(0, vec![g.copy(1, (0, 0), (2, 0), 64)])],
        &["race on 64 bytes"],
        |g| two_launches(g, [0, 0], vec![]),
    ),
    pair(
        "one stream: two streams race",
        Edge::Stream,
        |g| two_launches(g, [0, 1], vec![]),
        &["race on 64 bytes"],
        |g| two_launches(g, [1, 1], vec![]),
    ),
    pair(
        "one thread for two launches on two streams",
        Edge::Queue,
        |g| two_launches(g, [0, 1], vec![]),
        &["race on 64 bytes"],
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Drained(1, vec![g.copy(0, (0, 0), (2, 0), 64)])],
    ),
    pair(
        "free: synchronise before",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Poll(0, 1), Renew(0)],
        &["the free by host thread", "the write of task 1"],
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(0), Renew(0)],
    ),
    pair(
        "free of what a task reads: synchronise before",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]), Poll(0, 1), Renew(0)],
        &["the free by host thread", "the read of task 1"],
        |g| vec![Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]), Sync(0), Renew(0)],
    ),
    pair(
        "free and allocated again, and a late reader: synchronise before",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Poll(0, 1), Renew(0), Sync(0), CopyOut(0)],
        &["the free by host thread"],
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(0), Renew(0), CopyOut(0)],
    ),
    pair(
        "copy in before the launch and after it",
        Edge::Submit,
        |g| vec![Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]), CopyIn(0)],
        &["copy by host thread", "the read of task"],
        |g| {
            vec![
                Drained(0, vec![g.copy(2, (3, 0), (3, 64), 8)]),
                Sync(0),
                CopyIn(0),
                Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]),
            ]
        },
    ),
    pair(
        "copy out: synchronise before",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), CopyOut(0)],
        &["copy by host thread", "race on 64 bytes"],
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(0), CopyOut(0)],
    ),
    pair(
        "copy in: synchronise before",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]), CopyIn(0)],
        &["the read of task"],
        |g| vec![Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]), Sync(0), CopyIn(0)],
    ),
    pair(
        "copy within: synchronise before",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), CopyWithin(2, 0)],
        &["copy by host thread"],
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(0), CopyWithin(2, 0)],
    ),
    pair(
        "copy out: of the other stream",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(1), CopyOut(0)],
        &["race on 64 bytes"],
        |g| vec![Drained(1, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(1), CopyOut(0)],
    ),
    pair(
        "copy out while a task reads: synchronise before a write",
        Edge::Synchronize,
        |g| vec![Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]), CopyIn(0)],
        &["race on 64 bytes"],
        |g| vec![Drained(0, vec![g.copy(0, (1, 0), (0, 0), 64)]), CopyOut(0), Sync(0), CopyIn(0)],
    ),
    pair(
        "launch without its tasks, copy out: end of the launch",
        Edge::LaunchEnd,
        |g| vec![Launch(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(0), CopyOut(0)],
        &["copy by host thread"],
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Sync(0), CopyOut(0)],
    ),
    pair(
        "copy and a reduce into its destination: notify",
        Edge::Notify,
        |g| one(vec![g.copy(0, (0, 0), (1, 0), 64), g.sum(1, 0, 2)]),
        &["sdma reduce", "sdma copy"],
        |g| one([vec![g.copy(0, (0, 0), (1, 0), 64)], notify(g, 0, 1, 0), vec![g.sum(1, 0, 2)]].concat()),
    ),
    pair(
        "copy and a reduce of its destination: notify",
        Edge::Notify,
        |g| one(vec![g.copy(0, (1, 0), (2, 0), 64), g.sum(1, 0, 1)]),
        &["the read of task"],
        |g| one([vec![g.copy(0, (1, 0), (2, 0), 64)], notify(g, 0, 1, 0), vec![g.sum(1, 0, 1)]].concat()),
    ),
    pair(
        "two reduces: join of the thread",
        Edge::Drained,
        |g| one(vec![g.sum(0, 0, 1), g.sum(1, 0, 2)]),
        &["race on 64 bytes"],
        |g| one(vec![g.sum(0, 0, 1), g.join(0), g.sum(1, 0, 2)]),
    ),
    pair(
        "one byte in the middle of a copy: notify",
        Edge::Notify,
        |g| one(vec![g.copy(0, (0, 0), (1, 0), 256), g.copy(1, (0, 100), (2, 0), 1)]),
        &["race on 1 bytes", "offset 100 of"],
        |g| {
            one([vec![g.copy(0, (0, 0), (1, 0), 256)], notify(g, 0, 1, 0), vec![g.copy(1, (0, 100), (2, 0), 1)]]
                .concat())
        },
    ),
    pair(
        "record before the access and another after it: notify of the latter",
        Edge::Notify,
        |g| {
            let (first, second) = (g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (0, 0), (2, 0), 64));
            one(vec![g.record(0, 1, 0), first, g.record(0, 1, 1), g.wait(1, 0), second, g.wait(1, 1)])
        },
        &["race on 64 bytes"],
        |g| {
            let (first, second) = (g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (0, 0), (2, 0), 64));
            one(vec![g.record(0, 1, 0), first, g.record(0, 1, 1), g.wait(1, 0), g.wait(1, 1), second])
        },
    ),
    pair(
        "three rounds: notify back in the last one",
        Edge::Notify,
        |g| one(rounds(g, 2)),
        &["the read of task", "the write of task"],
        |g| one(rounds(g, 3)),
    ),
    pair(
        "chain of three threads: notify of the second link",
        Edge::Notify,
        |g| {
            let read = vec![g.copy(1, (3, 0), (0, 0), 64)];
            one([vec![g.copy(0, (0, 0), (1, 0), 64)], notify(g, 0, 1, 0), read, vec![g.copy(2, (0, 0), (2, 0), 64)]]
                .concat())
        },
        &["on thread 2 of the 3"],
        |g| {
            let read = vec![g.copy(1, (3, 0), (0, 0), 64)];
            let last = vec![g.copy(2, (0, 0), (2, 0), 64)];
            one([vec![g.copy(0, (0, 0), (1, 0), 64)], notify(g, 0, 1, 0), read, notify(g, 1, 2, 0), last].concat())
        },
    ),
    pair(
        "diamond: notify back from both",
        Edge::Notify,
        |g| one(diamond(g, vec![])),
        &["on thread 2 of the 3"],
        |g| one(diamond(g, notify(g, 2, 0, 1))),
    ),
    pair(
        "chunks: join after each",
        Edge::Drained,
        |g| {
            one((0..4).flat_map(|n| [g.copy(0, (0, 16 * n), (1, 0), 16), g.copy(1, (2, 0), (0, 16 * n), 16)]).collect())
        },
        &["race on 16 bytes"],
        |g| {
            let chunk = |n: usize| [g.copy(0, (0, 16 * n), (1, 0), 16), g.join(0), g.copy(1, (2, 0), (0, 16 * n), 16)];
            one((0..4).flat_map(chunk).collect())
        },
    ),
    pair(
        "join of two threads",
        Edge::Drained,
        |g| one(halves(g, vec![g.join(0)])),
        &["on thread 1 of the 3", "on thread 2 of the 3"],
        |g| one(halves(g, vec![g.join(0), g.join(1)])),
    ),
    pair(
        "batch: join after its end",
        Edge::Drained,
        |g| one([batch(vec![g.copy(0, (0, 0), (1, 0), 64)]), vec![g.copy(1, (0, 0), (2, 0), 64)]].concat()),
        &["race on 64 bytes"],
        |g| one([batch(vec![g.copy(0, (0, 0), (1, 0), 64)]), vec![g.join(0), g.copy(1, (0, 0), (2, 0), 64)]].concat()),
    ),
    pair(
        "batch: notify out of it",
        Edge::Notify,
        |g| one([batch(vec![g.copy(0, (0, 0), (1, 0), 64)]), vec![g.copy(1, (0, 0), (2, 0), 64)]].concat()),
        &["race on 64 bytes"],
        |g| {
            let inside = batch(vec![g.copy(0, (0, 0), (1, 0), 64), g.record(0, 1, 0)]);
            one([inside, vec![g.wait(1, 0), g.copy(1, (0, 0), (2, 0), 64)]].concat())
        },
    ),
    pair(
        "batch: notify into it",
        Edge::Notify,
        |g| one([vec![g.copy(0, (0, 0), (1, 0), 64)], batch(vec![g.copy(1, (0, 0), (2, 0), 64)])].concat()),
        &["race on 64 bytes"],
        |g| {
            let inside = batch(vec![g.wait(1, 0), g.copy(1, (0, 0), (2, 0), 64)]);
            one([vec![g.copy(0, (0, 0), (1, 0), 64), g.record(0, 1, 0)], inside].concat())
        },
    ),
    pair(
        "around the end of the ring that waits: notify",
        Edge::Notify,
        |g| {
            let fill = (0..2 * DEPTH as usize).map(|n| g.copy(1, (3, 8 * (n % 8)), (1, 0), 8));
            one(fill.chain(writers(g, vec![])).collect())
        },
        &["task 17 (sdma copy) on thread 1"],
        |g| {
            let fill = (0..2 * DEPTH as usize).map(|n| g.copy(1, (3, 8 * (n % 8)), (1, 0), 8));
            one(fill.chain(writers(g, notify(g, 0, 1, 0))).collect())
        },
    ),
    pair(
        "two launches on one stream: notify of the thread",
        Edge::Notify,
        |g| vec![Launch(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Drained(0, vec![g.copy(1, (0, 0), (2, 0), 64)])],
        &["race on 64 bytes"],
        |g| {
            let first = vec![g.copy(0, (0, 0), (1, 0), 64), g.record(0, 1, 0)];
            vec![Launch(0, first), Drained(0, vec![g.wait(1, 0), g.copy(1, (0, 0), (2, 0), 64)])]
        },
    ),
    pair(
        "two streams: notify of the thread",
        Edge::Notify,
        |g| two_launches(g, [0, 1], vec![]),
        &["race on 64 bytes"],
        |g| {
            let first = vec![g.copy(0, (0, 0), (1, 0), 64), g.record(0, 1, 2)];
            vec![Drained(0, first), Drained(1, vec![g.wait(1, 2), g.copy(1, (0, 0), (2, 0), 64)])]
        },
    ),
    pair(
        "two streams and a join in the first kernel: synchronise between",
        Edge::Synchronize,
        |g| joined_launch(g, vec![]),
        &["race on 64 bytes"],
        |g| joined_launch(g, vec![Sync(0)]),
    ),
    pair(
        "copy out behind two streams: synchronise of both",
        Edge::Synchronize,
        |g| on_both_streams(g, vec![Sync(0), CopyOut(3)]),
        &["copy by host thread", "on thread 1 of the 3"],
        |g| on_both_streams(g, vec![Sync(0), Sync(1), CopyOut(3)]),
    ),
    pair(
        "copy out before the launch and after it",
        Edge::Submit,
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), CopyOut(0)],
        &["copy by host thread", "the write of task"],
        |g| {
            vec![
                Drained(0, vec![g.copy(2, (3, 0), (3, 64), 8)]),
                Sync(0),
                CopyOut(0),
                Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]),
            ]
        },
    ),
    pair(
        "one stream, read after write: the launch ends with its tasks",
        Edge::LaunchEnd,
        |g| vec![Launch(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Drained(0, vec![g.copy(1, (2, 0), (0, 0), 64)])],
        &["the read of task"],
        |g| vec![Drained(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Drained(0, vec![g.copy(1, (2, 0), (0, 0), 64)])],
    ),
    pair(
        "one stream, write after read: the launch ends with its tasks",
        Edge::LaunchEnd,
        |g| vec![Launch(0, vec![g.copy(0, (2, 0), (0, 0), 64)]), Drained(0, vec![g.copy(1, (0, 0), (1, 0), 64)])],
        &["the read of task"],
        |g| vec![Drained(0, vec![g.copy(0, (2, 0), (0, 0), 64)]), Drained(0, vec![g.copy(1, (0, 0), (1, 0), 64)])],
    ),
    pair(
        "one stream, two reduces: the launch ends with its tasks",
        Edge::LaunchEnd,
        |g| vec![Launch(0, vec![g.sum(0, 0, 1)]), Drained(0, vec![g.sum(1, 0, 2)])],
        &["sdma reduce"],
        |g| vec![Drained(0, vec![g.sum(0, 0, 1)]), Drained(0, vec![g.sum(1, 0, 2)])],
    ),
    pair(
        "one stream and one thread, launches without their tasks",
        Edge::Queue,
        |g| vec![Launch(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Drained(0, vec![g.copy(1, (0, 0), (2, 0), 64)])],
        &["race on 64 bytes"],
        |g| vec![Launch(0, vec![g.copy(0, (0, 0), (1, 0), 64)]), Drained(0, vec![g.copy(0, (0, 0), (2, 0), 64)])],
    ),
];
