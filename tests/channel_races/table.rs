//! The bugs. Rank 0 sends to rank 1 unless told otherwise.

use super::{Bug, Ground, Op, Programs};

/// First and second thread of a rank.
const A: usize = 0;
const B: usize = 1;

/// Programs of ranks 0 and 1.
fn two(first: Vec<Op>, second: Vec<Op>) -> Programs {
    [first, second, Vec::new()]
}

/// Rank 1 copies its cclBuf out behind a wait for notify 0.
fn receives(g: &Ground) -> Vec<Op> {
    vec![g.wait((1, A), 0, 0), g.copy_out((1, A))]
}

fn sends(g: &Ground) -> Vec<Op> {
    vec![g.write((0, A), 1, 0), g.record((0, A), 1, 0)]
}

const RACE: &str = "race on 64 bytes";

pub const BUGS: &[Bug] = &[
    Bug {
        name: "missing record",
        planted: |g| two(vec![g.write((0, A), 1, 0)], receives(g)),
        texts: &["507048", "(index 0 of the channel to rank 0)", "which nothing is left to record"],
        fixed: |g| two(sends(g), receives(g)),
    },
    Bug {
        name: "missing wait",
        planted: |g| two(sends(g), vec![g.copy_out((1, A))]),
        texts: &[
            RACE,
            "(write, channel to rank 1) on rank 0, thread 0",
            "(sdma copy) on rank 1, thread 0",
            "no notify of a channel from rank",
        ],
        fixed: |g| two(sends(g), receives(g)),
    },
    Bug {
        name: "record before the write",
        planted: |g| two(vec![g.record((0, A), 1, 0), g.write((0, A), 1, 0)], receives(g)),
        texts: &[RACE, "(write, channel to rank 1) on rank 0", "records behind the former"],
        fixed: |g| two(sends(g), receives(g)),
    },
    Bug {
        name: "wrong index",
        planted: |g| two(vec![g.write((0, A), 1, 0), g.record((0, A), 1, 1)], receives(g)),
        texts: &["507048", "(index 0 of the channel to rank 0)", "which nothing is left to record"],
        fixed: |g| two(sends(g), receives(g)),
    },
    Bug {
        name: "wrong peer",
        planted: |g| two(vec![g.write((0, A), 1, 0), g.record((0, A), 2, 0)], receives(g)),
        texts: &["507048", "(index 0 of the channel to rank 0)", "which nothing is left to record"],
        fixed: |g| two(sends(g), receives(g)),
    },
    Bug {
        name: "waits of two ranks before their records",
        planted: |g| {
            let rank = |rank, peer| vec![g.wait((rank, A), peer, 0), g.record((rank, A), peer, 0)];
            two(rank(0, 1), rank(1, 0))
        },
        texts: &["507048", "of the channel to rank", "which is to be recorded behind the wait of rank"],
        fixed: |g| {
            let rank = |rank, peer| vec![g.record((rank, A), peer, 0), g.wait((rank, A), peer, 0)];
            two(rank(0, 1), rank(1, 0))
        },
    },
    Bug {
        name: "early overwrite of the peer's cclBuf",
        planted: |g| two([sends(g), sends(g)].concat().into_iter().take(3).collect(), receives(g)),
        texts: &[RACE, "the read of task 2 (sdma copy) on rank 1", "(write, channel to rank 1) on rank 0"],
        fixed: |g| {
            let again = vec![g.wait((0, A), 1, 1), g.write((0, A), 1, 0)];
            two([sends(g), again].concat(), [receives(g), vec![g.record((1, A), 0, 1)]].concat())
        },
    },
    Bug {
        name: "read before the write with notify",
        planted: |g| two(vec![g.write_notify((0, A), 1, 0, 0)], vec![g.copy_out((1, A)), g.wait((1, A), 0, 0)]),
        texts: &[RACE, "(write with notify, channel to rank 1)", "the read of task 1 (sdma copy)"],
        fixed: |g| two(vec![g.write_notify((0, A), 1, 0, 0)], receives(g)),
    },
    Bug {
        name: "source changed before the peer has read it",
        planted: |g| {
            let sender = vec![g.copy_in((0, A)), g.record((0, A), 1, 0), g.copy_in((0, A))];
            two(sender, vec![g.wait((1, A), 0, 0), g.read((1, A), 0)])
        },
        texts: &[RACE, "(read, channel to rank 0) on rank 1", "(sdma copy) on rank 0"],
        fixed: |g| {
            let sender = vec![g.copy_in((0, A)), g.record((0, A), 1, 0), g.wait((0, A), 1, 1), g.copy_in((0, A))];
            two(sender, vec![g.wait((1, A), 0, 0), g.read((1, A), 0), g.record((1, A), 0, 1)])
        },
    },
    Bug {
        name: "peer writes before the own input is in place",
        planted: |g| {
            let receiver = vec![g.copy_in((1, A)), g.wait((1, A), 0, 0)];
            two(sends(g), receiver)
        },
        texts: &[RACE, "the write of task 1 (sdma copy) on rank 1", "the write of task 1 (write, channel to rank 1)"],
        fixed: |g| {
            let receiver = vec![g.copy_in((1, A)), g.record((1, A), 0, 1), g.wait((1, A), 0, 0)];
            two([vec![g.wait((0, A), 1, 1)], sends(g)].concat(), receiver)
        },
    },
    Bug {
        name: "two threads on one channel",
        planted: |g| two(vec![g.write((0, A), 1, 0), g.write((0, B), 1, 64)], vec![]),
        texts: &["race on the channel from rank 0 to rank 1", "thread 0", "thread 1", "give each a channel of its own"],
        fixed: |g| {
            let [record, wait] = g.thread_notify(0, A, B);
            two(vec![g.write((0, A), 1, 0), record, wait, g.write((0, B), 1, 64)], vec![])
        },
    },
    Bug {
        name: "write over one channel, record over another on another thread",
        planted: |g| {
            let sender = vec![g.write((0, A), 1, 0), g.second(g.record((0, B), 1, 0), 0, 1)];
            two(sender, vec![g.second(g.wait((1, A), 0, 0), 1, 0), g.copy_out((1, A))])
        },
        texts: &[RACE, "(write, channel to rank 1) on rank 0, thread 0"],
        fixed: |g| {
            let [record, wait] = g.thread_notify(0, A, B);
            let sender = vec![g.write((0, A), 1, 0), record, wait, g.second(g.record((0, B), 1, 0), 0, 1)];
            two(sender, vec![g.second(g.wait((1, A), 0, 0), 1, 0), g.copy_out((1, A))])
        },
    },
    Bug {
        name: "wait on one thread, use on another",
        planted: |g| two(sends(g), vec![g.wait((1, A), 0, 0), g.copy_out((1, B))]),
        texts: &[RACE, "(sdma copy) on rank 1, thread 1"],
        fixed: |g| {
            let [record, wait] = g.thread_notify(1, A, B);
            two(sends(g), vec![g.wait((1, A), 0, 0), record, wait, g.copy_out((1, B))])
        },
    },
    Bug {
        name: "overlapping writes of one batch",
        planted: |g| {
            two(g.batch(vec![g.write((0, A), 1, 0), g.write((0, A), 1, 32), g.record((0, A), 1, 0)]), receives(g))
        },
        texts: &["race on 32 bytes", "entries of one batch, which go in any order"],
        fixed: |g| {
            two(g.batch(vec![g.write((0, A), 1, 0), g.write((0, A), 1, 64), g.record((0, A), 1, 0)]), receives(g))
        },
    },
    Bug {
        name: "read and write of the same bytes in one batch",
        planted: |g| {
            let from = Op { src: g.user(0, 1), ..g.write((0, A), 1, 64) };
            two(
                [vec![g.wait((0, A), 1, 1)], g.batch(vec![g.read((0, A), 1), from, g.record((0, A), 1, 0)])].concat(),
                vec![g.copy_in((1, A)), g.record((1, A), 0, 1)],
            )
        },
        texts: &[RACE, "(read, channel to rank 1)", "entries of one batch, which go in any order"],
        fixed: |g| {
            let from = Op { src: g.user(0, 1), ..g.write((0, A), 1, 64) };
            two(
                vec![g.wait((0, A), 1, 1), g.read((0, A), 1), from, g.record((0, A), 1, 0)],
                vec![g.copy_in((1, A)), g.record((1, A), 0, 1)],
            )
        },
    },
    Bug {
        name: "record in the middle of a batch",
        planted: |g| {
            two(g.batch(vec![g.write((0, A), 1, 0), g.record((0, A), 1, 0), g.write((0, A), 1, 64)]), receives(g))
        },
        texts: &[RACE, "(write, channel to rank 1) on rank 0", "(in a batch: as its last entry)"],
        fixed: |g| {
            two(g.batch(vec![g.write((0, A), 1, 64), g.write((0, A), 1, 0), g.record((0, A), 1, 0)]), receives(g))
        },
    },
    Bug {
        name: "write with notify in a batch announces no other write",
        planted: |g| {
            two(
                g.batch(vec![g.write((0, A), 1, 0), g.write_notify((0, A), 1, 64, 0), g.write((0, A), 1, 128)]),
                receives(g),
            )
        },
        texts: &[RACE, "(write, channel to rank 1) on rank 0"],
        fixed: |g| {
            two(
                g.batch(vec![g.write_notify((0, A), 1, 0, 0), g.write((0, A), 1, 64), g.write((0, A), 1, 128)]),
                receives(g),
            )
        },
    },
    Bug {
        name: "two records before a wait",
        planted: |g| {
            let sender = vec![g.record((0, A), 1, 0), g.record((0, A), 1, 0), g.record((0, A), 1, 1)];
            two(sender, vec![g.wait((1, A), 0, 1), g.wait((1, A), 0, 0), g.wait((1, A), 0, 0)])
        },
        texts: &["507048", "was recorded by rank 0 while it was still set: that record was lost"],
        fixed: |g| {
            let sender = vec![g.record((0, A), 1, 0), g.wait((0, A), 1, 2), g.record((0, A), 1, 0)];
            two(sender, vec![g.wait((1, A), 0, 0), g.record((1, A), 0, 2), g.wait((1, A), 0, 0)])
        },
    },
    Bug {
        name: "two ranks reduce into the same bytes",
        planted: |g| {
            let receiver = vec![g.copy_in((1, A)), g.record((1, A), 0, 0), g.record((1, A), 2, 0)];
            let rank = |rank| vec![g.wait((rank, A), 1, 0), g.reduce((rank, A), 1, 0)];
            [rank(0), receiver, rank(2)]
        },
        texts: &[RACE, "(write reduce, channel to rank 1) on rank 0", "(write reduce, channel to rank 1) on rank 2"],
        fixed: |g| {
            let receiver =
                vec![g.copy_in((1, A)), g.record((1, A), 0, 0), g.wait((1, A), 0, 1), g.record((1, A), 2, 0)];
            let first = vec![g.wait((0, A), 1, 0), g.reduce((0, A), 1, 0), g.record((0, A), 1, 1)];
            [first, receiver, vec![g.wait((2, A), 1, 0), g.reduce((2, A), 1, 0)]]
        },
    },
    Bug {
        name: "reduce into bytes of the peer that were never written",
        planted: |g| two(vec![g.reduce((0, A), 1, 0)], vec![]),
        texts: &["uninitialised read", "(write reduce,", "that were never written"],
        fixed: |g| {
            let sender = vec![g.wait((0, A), 1, 0), g.reduce((0, A), 1, 0)];
            two(sender, vec![g.copy_in((1, A)), g.record((1, A), 0, 0)])
        },
    },
    Bug {
        name: "what the peer reads was never written",
        planted: |g| {
            two(
                vec![g.record((0, A), 1, 0)],
                vec![g.wait((1, A), 0, 0), g.read((1, A), 0), Op { src: g.user(1, 1), ..g.reduce((1, A), 2, 0) }],
            )
        },
        texts: &["uninitialised read", "that a task has copied there from memory that was never written"],
        fixed: |g| {
            let reader = vec![
                g.wait((1, A), 2, 0),
                g.wait((1, A), 0, 0),
                g.read((1, A), 0),
                Op { src: g.user(1, 1), ..g.reduce((1, A), 2, 0) },
            ];
            [vec![g.copy_in((0, A)), g.record((0, A), 1, 0)], reader, vec![g.copy_in((2, A)), g.record((2, A), 1, 0)]]
        },
    },
];
