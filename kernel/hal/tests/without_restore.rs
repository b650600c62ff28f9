//! A HAL that has no `halResourceIdRestore`, as in a process that knows the host's streams already.
#![allow(non_snake_case, reason = "names of the HAL's functions")]

mod fake;

use fake::{HOST_DEVICE, take};
use hcomm_hal::{Hal, Queue, QueueIds, Restore};

#[test]
fn a_stream_needs_no_restore_where_the_hal_has_none() {
    let turn = take();
    let hal = Hal::of_process();
    for restore in [Restore::Required, Restore::Tried] {
        let ids = QueueIds { restore, host_device: HOST_DEVICE, stream: 17, sq: 9, logic_cq: 4 };
        let (queue, _) = Queue::open(&hal, ids).unwrap();
        assert_eq!((queue.depth(), queue.restore_code()), (2048, None));
        assert_eq!(queue.ring(5), Ok(()));
    }
    assert!(turn.with(|state| state.restored.is_empty()));
}
