//! The table of Ascend910B and Ascend910_93. Source: docs/spec.md, "Ascend910 descriptors".

use super::layout::Rule::{self, Any, Only, Reserved};
use super::layout::{Layout, Spec, find, spec, write_value};
use super::table::{Does, FLAGS, Form, Kind, Meaning, Table};

/// Bytes 0..8, with what the type has in three of their fields.
const fn header(pre_p: u64, block_dim: u64, task_id: Rule) -> [Spec; 11] {
    [
        spec("type", 0, 0, 6, Any),
        spec("l1_lock", 0, 6, 1, Only(0)),
        spec("l1_unlock", 0, 7, 1, Only(0)),
        spec("ie", 1, 0, 2, Only(0)),
        spec("pre_p", 1, 2, 2, Only(pre_p)),
        spec("post_p", 1, 4, 2, Only(0)),
        spec("wr_cqe", 1, 6, 1, Only(0)),
        spec("reserved", 1, 7, 1, Reserved),
        spec("block_dim", 2, 0, 16, Only(block_dim)),
        spec("rt_stream_id", 4, 0, 16, Any),
        spec("task_id", 6, 0, 16, task_id),
    ]
}

pub(super) const HEADER: &[Spec] = &header(0, 0, Any);
/// Of a place holder that marks a wrap of task ids.
pub(super) const FLIP_HEADER: &[Spec] = &header(1, 98, Only(0));

/// Bytes 8..64 of type 11.
pub(super) const SDMA: &[Spec] = &[
    spec("res1", 8, 0, 32, Reserved),
    spec("res2", 12, 0, 16, Reserved),
    spec("kernel_credit", 14, 0, 8, Any),
    spec("ptr_mode", 15, 0, 1, Only(0)),
    spec("res3", 15, 1, 7, Reserved),
    spec("opcode", 16, 0, 8, Any),
    spec("ie2", 17, 0, 1, Only(0)),
    spec("sssv", 17, 1, 1, Only(1)),
    spec("dssv", 17, 2, 1, Only(1)),
    spec("sns", 17, 3, 1, Only(1)),
    spec("dns", 17, 4, 1, Only(1)),
    spec("qos", 17, 5, 4, Any),
    spec("sro", 18, 1, 1, Only(0)),
    spec("dro", 18, 2, 1, Only(0)),
    spec("part_id", 18, 3, 8, Only(0)),
    spec("mpam", 19, 3, 5, Only(0)),
    spec("src_stream_id", 20, 0, 16, Only(0)),
    spec("src_sub_stream_id", 22, 0, 16, Only(0)),
    spec("dst_stream_id", 24, 0, 16, Only(0)),
    spec("dst_sub_stream_id", 26, 0, 16, Only(0)),
    spec("length", 28, 0, 32, Any),
    spec("src_addr", 32, 0, 64, Any),
    spec("dst_addr", 40, 0, 64, Any),
    spec("link_type", 48, 0, 8, Any),
    spec("res4", 49, 0, 24, Reserved),
    spec("res5", 52, 0, 32, Reserved),
    spec("res6", 56, 0, 64, Reserved),
];

/// Bytes 8..64 of types 6 and 7, with the credit that the type needs.
const fn notify(kernel_credit: u64, timeout: Rule) -> [Spec; 13] {
    [
        spec("notify_id", 8, 0, 13, Any),
        spec("res1", 9, 5, 19, Reserved),
        spec("res2", 12, 0, 16, Reserved),
        spec("kernel_credit", 14, 0, 8, Only(kernel_credit)),
        spec("res3", 15, 0, 8, Reserved),
        spec("timeout", 16, 0, 32, timeout),
        spec("res4", 20, 0, 32, Reserved),
        spec("res5", 24, 0, 64, Reserved),
        spec("res6", 32, 0, 64, Reserved),
        spec("res7", 40, 0, 64, Reserved),
        spec("res8", 48, 0, 64, Reserved),
        spec("res9", 56, 0, 32, Reserved),
        spec("res10", 60, 0, 32, Reserved),
    ]
}

pub(super) const RECORD: &[Spec] = &notify(254, Only(0));
pub(super) const WAIT: &[Spec] = &notify(255, Any);

/// Bytes 8..64 of type 8, in the one form that the AI CPU queues: a record of another chip's notify.
pub(super) const WRITE_VALUE: &[Spec] = &write_value(Only(254), 0, 3, Only(1));

/// Bytes 8..64 of type 3.
pub(super) const FLIP: &[Spec] = &[
    spec("res1", 8, 0, 32, Reserved),
    spec("res2", 12, 0, 16, Reserved),
    spec("kernel_credit", 14, 0, 8, Only(254)),
    spec("res3", 15, 0, 8, Reserved),
    spec("flip_count", 16, 0, 16, Any),
    spec("res4", 18, 0, 16, Reserved),
    spec("res5", 20, 0, 32, Reserved),
    spec("res6", 24, 0, 64, Reserved),
    spec("res7", 32, 0, 64, Reserved),
    spec("res8", 40, 0, 64, Reserved),
    spec("res9", 48, 0, 64, Reserved),
    spec("res10", 56, 0, 64, Reserved),
];

const RECORDS: &[Form] = &[Form::new(&[], [None; FLAGS], find(RECORD, "notify_id"), Does::Set)];
const WAITS: &[Form] =
    &[Form::new(&[], [None; FLAGS], find(WAIT, "notify_id"), Does::AwaitSet { timeout: find(WAIT, "timeout") })];

pub(super) static TABLE: Table = Table {
    // The 16-bit one of its stream.
    task_id: spec("task_id", 6, 0, 16, Any),
    kinds: &[
        Kind {
            number: 11,
            layout: Layout::new(HEADER, SDMA),
            meaning: Meaning::Sdma {
                src: find(SDMA, "src_addr"),
                dst: find(SDMA, "dst_addr"),
                len: find(SDMA, "length"),
            },
        },
        Kind { number: 6, layout: Layout::new(HEADER, RECORD), meaning: Meaning::Notify(RECORDS) },
        Kind { number: 7, layout: Layout::new(HEADER, WAIT), meaning: Meaning::Notify(WAITS) },
        Kind {
            number: 8,
            layout: Layout::new(HEADER, WRITE_VALUE),
            meaning: Meaning::RemoteRecord { addr: [find(WRITE_VALUE, "addr_low"), find(WRITE_VALUE, "addr_high")] },
        },
        Kind { number: 3, layout: Layout::new(FLIP_HEADER, FLIP), meaning: Meaning::PlaceHolder },
    ],
};
