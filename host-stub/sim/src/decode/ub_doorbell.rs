//! The descriptor that starts the entries of a UB channel.

use super::layout::Rule::{Any, Only, Reserved};
use super::layout::{Spec, extract, find, spec};
use super::task::{Action, Jetty, SQE_LEN};

/// Bytes 8..64 of type 9, in the form that rings for one jetty.
pub(super) const UB_DOORBELL: &[Spec] = &[
    spec("mode", 8, 0, 1, Only(1)),
    spec("doorbell_num", 8, 1, 2, Only(1)),
    spec("res1", 8, 3, 29, Reserved),
    spec("res2", 12, 0, 16, Reserved),
    spec("kernel_credit", 14, 0, 8, Only(254)),
    spec("res3", 15, 0, 5, Reserved),
    spec("sqe_length", 15, 5, 3, Only(0)),
    spec("jetty_id1", 16, 0, 16, Any),
    spec("res4", 18, 0, 9, Reserved),
    spec("func_id1", 19, 1, 7, Any),
    spec("pi_value1", 20, 0, 16, Any),
    spec("res5", 22, 0, 15, Reserved),
    spec("die_id1", 23, 7, 1, Any),
    spec("jetty_id2", 24, 0, 16, Only(0)),
    spec("res6", 26, 0, 9, Reserved),
    spec("func_id2", 27, 1, 7, Only(0)),
    spec("pi_value2", 28, 0, 16, Only(0)),
    spec("res7", 30, 0, 15, Reserved),
    spec("die_id2", 31, 7, 1, Only(0)),
    spec("res8", 32, 0, 64, Reserved),
    spec("res9", 40, 0, 64, Reserved),
    spec("res10", 48, 0, 64, Reserved),
    spec("res11", 56, 0, 64, Reserved),
];

const JETTY: &Spec = find(UB_DOORBELL, "jetty_id1");
const FUNCTION: &Spec = find(UB_DOORBELL, "func_id1");
const INDEX: &Spec = find(UB_DOORBELL, "pi_value1");
const DIE: &Spec = find(UB_DOORBELL, "die_id1");

/// The task of a descriptor that keeps the rules.
pub(super) fn action(sqe: &[u8; SQE_LEN]) -> Action {
    let field = |spec| extract(sqe, spec);
    let jetty = Jetty { die: field(DIE) as u8, function: field(FUNCTION) as u8, id: field(JETTY) as u16 };
    Action::UbDoorbell { jetty, producer_index: field(INDEX) as u16 }
}
