//! The table of Ascend950. Source: docs/spec.md, "Ascend950 descriptors".

use super::layout::Rule::{Any, Only, Reserved};
use super::layout::{Layout, Spec, find, spec, write_value};
use super::table::{Does, Form, Holds, Kind, Meaning, Table};
use super::ub_doorbell::UB_DOORBELL;

/// Bytes 0..8, the same for every type.
pub(super) const HEADER: &[Spec] = &[
    spec("type", 0, 0, 6, Any),
    spec("lock", 0, 6, 1, Only(0)),
    spec("unlock", 0, 7, 1, Only(0)),
    spec("ie", 1, 0, 1, Only(0)),
    spec("pre_p", 1, 1, 1, Only(0)),
    spec("post_p", 1, 2, 1, Only(0)),
    spec("wr_cqe", 1, 3, 1, Only(0)),
    spec("ptr_mode", 1, 4, 1, Only(0)),
    spec("rtt_mode", 1, 5, 1, Only(0)),
    spec("head_update", 1, 6, 1, Only(0)),
    spec("reserved", 1, 7, 1, Reserved),
    spec("num_blocks", 2, 0, 16, Only(0)),
    // One 32-bit task id lies across the fields that the hardware names stream id and task id.
    spec("rt_stream_id", 4, 0, 16, Any),
    spec("task_id", 6, 0, 16, Any),
];

/// Bytes 8..64 of type 11.
pub(super) const SDMA: &[Spec] = &[
    spec("res1", 8, 0, 32, Reserved),
    spec("res2", 12, 0, 16, Reserved),
    spec("kernel_credit", 14, 0, 8, Any),
    spec("res3", 15, 0, 8, Reserved),
    spec("opcode", 16, 0, 8, Any),
    spec("sssv", 17, 0, 1, Only(1)),
    spec("dssv", 17, 1, 1, Only(1)),
    spec("sns", 17, 2, 1, Only(1)),
    spec("dns", 17, 3, 1, Only(1)),
    spec("sro", 17, 4, 1, Only(0)),
    spec("dro", 17, 5, 1, Only(0)),
    spec("stride", 17, 6, 2, Only(0)),
    spec("ie2", 18, 0, 1, Only(0)),
    spec("comp_en", 18, 1, 1, Only(0)),
    spec("res4", 18, 2, 14, Reserved),
    spec("sqe_id", 20, 0, 16, Only(0)),
    spec("part_id", 22, 0, 8, Only(0)),
    spec("mpamns", 23, 0, 1, Only(0)),
    spec("pmg", 23, 1, 2, Only(0)),
    spec("qos", 23, 3, 4, Only(0)),
    spec("d2d_offset_flag", 23, 7, 1, Only(0)),
    spec("src_stream_id", 24, 0, 16, Only(0)),
    spec("src_sub_stream_id", 26, 0, 16, Only(0)),
    spec("dst_stream_id", 28, 0, 16, Only(0)),
    spec("dst_sub_stream_id", 30, 0, 16, Only(0)),
    spec("src_addr", 32, 0, 64, Any),
    spec("dst_addr", 40, 0, 64, Any),
    spec("length_move", 48, 0, 32, Any),
    spec("src_offset_low", 52, 0, 32, Only(0)),
    spec("dst_offset_low", 56, 0, 32, Only(0)),
    spec("src_offset_high", 60, 0, 16, Only(0)),
    spec("dst_offset_high", 62, 0, 16, Only(0)),
];

/// Bytes 8..64 of types 6 and 7.
pub(super) const NOTIFY: &[Spec] = &[
    spec("notify_id", 8, 0, 17, Any),
    spec("res1", 10, 1, 13, Reserved),
    spec("cnt_flag", 11, 6, 1, Any),
    spec("clr_flag", 11, 7, 1, Any),
    spec("sub_type", 12, 0, 16, Any),
    spec("kernel_credit", 14, 0, 8, Any),
    spec("res2", 15, 0, 5, Reserved),
    spec("sqe_length", 15, 5, 3, Only(0)),
    spec("cnt_value", 16, 0, 32, Any),
    spec("wait_mode", 20, 0, 2, Any),
    spec("record_mode", 20, 2, 3, Any),
    spec("bitmap", 20, 5, 1, Any),
    spec("res3", 20, 6, 26, Reserved),
    spec("timeout", 24, 0, 32, Any),
    spec("exe_result", 28, 0, 32, Only(0)),
    spec("res4", 32, 0, 64, Reserved),
    spec("res5", 40, 0, 64, Reserved),
    spec("res6", 48, 0, 64, Reserved),
    spec("res7", 56, 0, 64, Reserved),
];

/// Bytes 8..64 of type 8.
pub(super) const WRITE_VALUE: &[Spec] = &write_value(Any, 1, 0, Any);

const ID: &Spec = find(NOTIFY, "notify_id");
const COUNTS: &Spec = find(NOTIFY, "cnt_flag");
const CLEARS: &Spec = find(NOTIFY, "clr_flag");
const SUB_TYPE: &Spec = find(NOTIFY, "sub_type");
const CREDIT: &Spec = find(NOTIFY, "kernel_credit");
const VALUE: &Spec = find(NOTIFY, "cnt_value");
const WAIT_MODE: &Spec = find(NOTIFY, "wait_mode");
const RECORD_MODE: &Spec = find(NOTIFY, "record_mode");
const BITMAP: &Spec = find(NOTIFY, "bitmap");
const TIMEOUT: &Spec = find(NOTIFY, "timeout");

/// A form of a notify: what the fields hold that tell the forms apart. `None`: its parameters.
const fn form(when: &'static [Holds], flags: [u64; 6], value: Option<u64>, timeout: Option<u64>, does: Does) -> Form {
    let [clears, sub_type, credit, wait_mode, record_mode, bitmap] = flags;
    let flags = [
        Some((CLEARS, clears)),
        Some((SUB_TYPE, sub_type)),
        Some((CREDIT, credit)),
        Some((WAIT_MODE, wait_mode)),
        Some((RECORD_MODE, record_mode)),
        Some((BITMAP, bitmap)),
        holds(VALUE, value),
        holds(TIMEOUT, timeout),
    ];
    Form::new(when, flags, ID, does)
}

const fn holds(spec: &'static Spec, value: Option<u64>) -> Option<Holds> {
    match value {
        Some(value) => Some((spec, value)),
        None => None,
    }
}

const RECORDS: &[Form] = &[
    form(&[(COUNTS, 0)], [0, 0, 254, 0, 0, 0], Some(0), Some(0), Does::Set),
    form(&[(RECORD_MODE, 0)], [0, 2, 254, 0, 0, 0], None, Some(0), Does::SetBits { bits: VALUE }),
    form(&[], [0, 2, 254, 0, 2, 0], None, Some(0), Does::Write { value: VALUE }),
];
/// A wait needs the credit "never": the queue's own timer would end it, and it would miss its record.
const WAITS: &[Form] = &[
    form(&[(COUNTS, 0)], [1, 1, 255, 0, 0, 0], Some(0), None, Does::AwaitSet { timeout: TIMEOUT }),
    form(&[(BITMAP, 1)], [1, 3, 255, 0, 0, 1], None, Some(0), Does::AwaitAnyOf { bits: VALUE, timeout: TIMEOUT }),
    form(&[], [1, 3, 255, 1, 0, 0], None, Some(0), Does::AwaitEqual { value: VALUE, timeout: TIMEOUT }),
];

pub(super) static TABLE: Table = Table {
    // One 32-bit number across the fields that the hardware names stream id and task id.
    task_id: spec("task_id", 4, 0, 32, Any),
    kinds: &[
        Kind {
            number: 11,
            layout: Layout::new(HEADER, SDMA),
            meaning: Meaning::Sdma {
                src: find(SDMA, "src_addr"),
                dst: find(SDMA, "dst_addr"),
                len: find(SDMA, "length_move"),
            },
        },
        Kind { number: 6, layout: Layout::new(HEADER, NOTIFY), meaning: Meaning::Notify(RECORDS) },
        Kind { number: 7, layout: Layout::new(HEADER, NOTIFY), meaning: Meaning::Notify(WAITS) },
        Kind {
            number: 8,
            layout: Layout::new(HEADER, WRITE_VALUE),
            meaning: Meaning::WriteValue {
                addr: [find(WRITE_VALUE, "addr_low"), find(WRITE_VALUE, "addr_high")],
                value: find(WRITE_VALUE, "value0"),
            },
        },
        Kind { number: 9, layout: Layout::new(HEADER, UB_DOORBELL), meaning: Meaning::UbDoorbell },
    ],
};
