//! Exploration: how many schedules of a small kernel a second.

use std::error::Error;
use std::time::Instant;

use hcomm_testkit::calls::{copy, record, wait};
use hcomm_testkit::{Rig, at};
use host_stub::{Checks, DeviceOptions, explore};

use crate::row::Row;

const SCHEDULES: u64 = 4000;

/// Schedules of a kernel that queues three tasks on each of two threads, in this process. A schedule opens and closes its device.
///
/// # Errors
/// None so far: the signature is that of the other rows.
pub fn measure() -> Result<Vec<Row>, Box<dyn Error>> {
    let test = || {
        let rig = Rig::with_options(DeviceOptions { checks: Some(Checks::NONE), ..DeviceOptions::native() });
        let threads = rig.threads(2, 1, 8);
        let bytes = rig.buffer(&[1; 128]);
        let calls = [
            copy(threads[0], at(&bytes, 64), at(&bytes, 0), 16),
            copy(threads[0], at(&bytes, 80), at(&bytes, 0), 16),
            record(threads[0], threads[1], 0),
            copy(threads[1], at(&bytes, 96), at(&bytes, 0), 16),
            wait(threads[1], 0, 0),
            copy(threads[1], at(&bytes, 112), at(&bytes, 64), 16),
        ];
        rig.good_calls(&calls).map_err(|error| error.to_string())
    };
    let started = Instant::now();
    explore::random(SCHEDULES, test);
    Ok(vec![Row::new("schedules", SCHEDULES as f64 / started.elapsed().as_secs_f64())])
}
