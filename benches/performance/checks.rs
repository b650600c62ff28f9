//! What the checks cost, beside the same work without them.

use std::error::Error;
use std::time::Instant;

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{ListedCopy, OwnAccessParams, OwnStep};
use hcomm_testkit::{Rig, at};
use host_stub::{Check, Checks, DeviceOptions};
use zerocopy::IntoBytes;

use crate::footprint::resident_mib;
use crate::row::Row;

/// Bytes of floats that a kernel adds.
const ADDED: usize = 1 << 20;
/// Bytes of one large copy.
const BIG: u64 = 256 << 20;
/// Runs that are measured, behind one that is not.
const SAMPLES: usize = 9;
/// Queues, and places of 64 bytes that they write again and again, each those that no other one does.
const QUEUES: usize = 16;
const PLACES: usize = 64;
const PLACE: usize = 64;
/// Tasks of the small and of the large measurement.
const FEW: usize = 20_000;
const MANY: usize = 1_000_000;
/// Launches, each synchronised, before and after memory is looked at.
const LAUNCHES: usize = 1000;

/// The checks that are made without an emulated processor.
fn all() -> Checks {
    Checks::ALL.without(Check::Core)
}

/// Median of the seconds that `run` takes.
fn median(samples: usize, mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut seconds = Vec::new();
    for _ in 0..=samples {
        let started = Instant::now();
        run()?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    seconds.remove(0);
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[samples / 2])
}

/// Seconds that a kernel takes to add two buffers on QEMU.
fn add(checks: Checks) -> Result<f64, Box<dyn Error>> {
    let rig = Rig::with_options(DeviceOptions { checks: Some(checks), ..DeviceOptions::default() });
    let (sum, data) = (rig.buffer(&vec![0; ADDED]), rig.buffer(&vec![0; ADDED]));
    let step = OwnStep { kind: OwnStep::ADD, thread: 0, dst: sum.addr(), src: data.addr(), len: ADDED as u64 };
    let steps = rig.buffer(step.as_bytes());
    let params = OwnAccessParams { header: OwnAccessParams::HEADER, steps: steps.addr(), count: 1 };
    let kernel = rig.device.load_kernel("own_access")?;
    median(SAMPLES, || {
        rig.stream.launch(&kernel, &params)?;
        Ok(rig.stream.synchronize()?)
    })
}

fn native(checks: Checks) -> Rig {
    Rig::with_options(DeviceOptions { checks: Some(checks), hbm_size: 2 << 30, ..DeviceOptions::native() })
}

/// Seconds for `count` tasks over all queues, natively.
fn tasks(checks: Checks, count: usize, samples: usize) -> Result<f64, Box<dyn Error>> {
    let rig = native(checks);
    let threads: Vec<_> = (0..QUEUES).map(|_| rig.thread(2048).0).collect();
    let [src, dst] = [1, 2].map(|fill| rig.buffer(&[fill; PLACES * PLACE]));
    let list: Vec<_> = (0..count)
        .map(|index| {
            let offset = index % PLACES * PLACE;
            let (dst, src) = (at(&dst, offset), at(&src, offset));
            ListedCopy { thread: threads[index % QUEUES], dst, src, len: PLACE as u64 }
        })
        .collect();
    median(samples, || Ok(rig.copy_list(&list, false).map(drop)?))
}

/// Seconds for one large copy, natively.
fn big_copy(checks: Checks) -> Result<f64, Box<dyn Error>> {
    let rig = native(checks);
    let thread = rig.thread(2048).0;
    let [src, dst] = [1, 2].map(|fill| rig.buffer(&vec![fill; BIG as usize]));
    let copy = ListedCopy { thread, dst: dst.addr(), src: src.addr(), len: BIG };
    median(SAMPLES, || Ok(rig.copy_list(&[copy], false).map(drop)?))
}

/// MiB that this process grows by from one thousand launches to two.
fn growth() -> Result<f64, Box<dyn Error>> {
    let rig = native(all());
    let (thread, src, dst) = (rig.thread(2048).0, rig.buffer(&[1; PLACE]), rig.buffer(&[2; PLACE]));
    let copy = ListedCopy { thread, dst: dst.addr(), src: src.addr(), len: PLACE as u64 };
    let launch = || -> Result<(), Box<dyn Error>> {
        for _ in 0..LAUNCHES {
            rig.copy_list(&[copy], false)?;
        }
        Ok(())
    };
    launch()?;
    let before = resident_mib();
    launch()?;
    Ok(resident_mib() - before)
}

/// All rows of checks.
///
/// # Errors
/// A device that does not open.
pub fn measure() -> Result<Vec<Row>, Box<dyn Error>> {
    let few = tasks(all(), FEW, SAMPLES)? - tasks(Checks::NONE, FEW, SAMPLES)?;
    let many = tasks(all(), MANY, 1)? - tasks(Checks::NONE, MANY, 1)?;
    Ok(vec![
        Row::new("check_tasks", few * 1e3),
        Row::new("check_tasks_linear", many / MANY as f64 / (few / FEW as f64)),
        Row::new("big_copy_checked", big_copy(Checks::NONE)? / big_copy(all())?),
        Row::new("check_growth", growth()?),
        Row::new("check_core_add", add(Checks::NONE.with(Check::Core))? / add(Checks::NONE)?),
    ])
}
