//! A process without the HAL: the references are weak, so the program links and starts, and each call says what is missing.

use hcomm_hal::{Hal, HalError, Queue, QueueIds, Restore};

#[test]
fn a_missing_function_is_an_error_of_the_call_that_needs_it() {
    let ids = QueueIds { restore: Restore::Tried, host_device: 0, stream: 1, sq: 1, logic_cq: 1 };
    for hal in [Hal::of_process(), Hal::default()] {
        let error = Queue::open(&hal, ids).unwrap_err();
        assert_eq!(error, HalError::Missing("drvGetLocalDevIDByHostDevID"));
        assert!(error.to_string().contains("no library of this process has drvGetLocalDevIDByHostDevID"));
    }
}
