//! A submission queue that the host has made, and that this process may fill.

use core::ptr;

use crate::abi::{
    ANY_TASK, LOGIC, NORMAL, REPORT_VERSION, Report, ReportFn, ReportInfo, ResourceId, STREAM, SqCqFn, SqCqInfo, code,
    property,
};
use crate::error::{HalError, RingError};
use crate::functions::Hal;

/// What it means when the stream can't be restored, that is, made known to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    /// It is an error: on Ascend910B and Ascend910_93 the vendor's library gives up as well.
    Required,
    /// The queue may work all the same: on Ascend950 the vendor's library does not restore at all.
    Tried,
    /// It was restored when the queue was opened first: whether a second time fails is not known.
    Done,
}

/// Ids that the host has asked the runtime for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueIds {
    /// What a failed restore means on the chip.
    pub restore: Restore,
    /// Device, as the host counts it.
    pub host_device: u32,
    /// Stream (`aclrtStreamGetId`).
    pub stream: u32,
    /// Submission queue (`rtStreamGetSqid`).
    pub sq: u32,
    /// Logic completion queue (`rtStreamGetCqid`, the second number).
    pub logic_cq: u32,
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Entry that the device fetches next, below the depth.
    pub head: u32,
    /// Entry behind the last one that was rung for, below the depth.
    pub tail: u32,
}

/// A task that did not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFailure {
    /// Low 16 bits of its id.
    pub task: u16,
    /// What failed, 1 to 63.
    pub kind: u8,
    /// Code of the engine.
    pub code: u32,
    /// Kind of its descriptor.
    pub sqe_type: u8,
}

/// Largest id that a descriptor can carry.
const MAX_ID: u32 = 0xffff;
/// Fewest entries of a ring that can be: below it, the ring is not one that the runtime makes for kernels.
const MIN_DEPTH: u32 = 129;
/// Most entries that can be: head and tail are 16-bit numbers in the driver.
const MAX_DEPTH: u32 = 1 << 16;
/// Reports that one call fetches.
const REPORTS: usize = 32;
/// In a report: what failed.
const FAILED: u8 = 0x3f;

/// An open queue. Good for one launch: the host may reset the queue between two.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    query: SqCqFn,
    config: SqCqFn,
    report: Option<ReportFn>,
    device: u32,
    sq: u32,
    stream: u32,
    logic_cq: u32,
    base: u64,
    depth: u32,
    /// Code of a restore that failed where that is no error.
    restore_code: Option<i32>,
}

impl Queue {
    /// Finds the queue, and checks every number that the HAL returns.
    ///
    /// The device's number is translated from the host's. Then the stream is restored where the HAL has the function; a
    /// failure that is no error is kept for [`restore_code`](Self::restore_code).
    ///
    /// # Errors
    /// [`HalError`].
    pub fn open(hal: &Hal, ids: QueueIds) -> Result<(Self, Position), HalError> {
        let sq = ids.sq;
        for (what, value) in [("sq id", sq), ("stream id", ids.stream), ("logic cq id", ids.logic_cq)] {
            in_range(what, sq, u64::from(value), 0, u64::from(MAX_ID))?;
        }
        let device = local_device(hal, ids.host_device)?;
        let query = hal.query.ok_or(HalError::Missing("halSqCqQuery"))?;
        let config = hal.config.ok_or(HalError::Missing("halSqCqConfig"))?;
        let function = "halResourceIdRestore";
        let restore_code = match ids.restore {
            Restore::Done => None,
            Restore::Tried => restore(hal, device, ids.stream).err(),
            Restore::Required => {
                restore(hal, device, ids.stream).map_err(|code| HalError::Failed { function, code })?;
                None
            }
        };
        let (stream, logic_cq) = (ids.stream, ids.logic_cq);
        let (base, depth) = (0, 0);
        let mut queue =
            Self { query, config, report: hal.report, device, sq, stream, logic_cq, base, depth, restore_code };
        let [low, high, ..] = queue.query(property::BASE)?;
        queue.base = u64::from(low) | u64::from(high) << 32;
        if queue.base == 0 || !queue.base.is_multiple_of(64) {
            return Err(HalError::Base { sq, base: queue.base });
        }
        queue.depth = queue.query(property::DEPTH)?[0];
        in_range("depth", sq, u64::from(queue.depth), u64::from(MIN_DEPTH), u64::from(MAX_DEPTH))?;
        let position = Position { head: queue.head()?, tail: queue.index("tail", property::TAIL)? };
        Ok((queue, position))
    }

    /// Address of the ring: [`depth`](Self::depth) entries of 64 bytes.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Entries of the ring.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Code of a restore that failed where that is no error ([`Restore::Tried`]): for a log.
    pub fn restore_code(&self) -> Option<i32> {
        self.restore_code
    }

    /// Entry that the device fetches next, below the depth. [`barrier::load`](crate::barrier::load) before an entry in front of it
    /// is written again.
    ///
    /// # Errors
    /// [`HalError`].
    #[inline]
    pub fn head(&self) -> Result<u32, HalError> {
        self.index("head", property::HEAD)
    }

    /// Function of the doorbell, device and number of the queue: what [`ring`](Self::ring) uses.
    pub(crate) fn doorbell(&self) -> (SqCqFn, u32, u32) {
        (self.config, self.device, self.sq)
    }

    /// Rings the doorbell: the device may run everything before entry `tail`.
    /// [`barrier::store`](crate::barrier::store) before it.
    ///
    /// # Errors
    /// [`RingError`]; the entries stay unknown to the device.
    #[inline]
    pub fn ring(&self, tail: u32) -> Result<(), RingError> {
        let sq = self.sq;
        let mut info = tail_of(sq, tail);
        // SAFETY: the function has this signature in the HAL's header, and `info` is its whole argument, ours for the call.
        match unsafe { (self.config)(self.device, &raw mut info) } {
            code::OK => Ok(()),
            code::STATUS => Err(RingError::Suspended { sq }),
            code => Err(RingError::Refused { sq, code }),
        }
    }

    /// Fetches what the device has reported, and gives the first task that failed. The others are dropped: a queue stops at
    /// its first failure. Tasks that succeed report nothing. Ends after as many calls as the ring has room for.
    ///
    /// # Errors
    /// [`HalError`].
    pub fn failed_task(&self) -> Result<Option<TaskFailure>, HalError> {
        let function = "halCqReportRecv";
        let report = self.report.ok_or(HalError::Missing(function))?;
        let mut failure = None;
        for _ in 0..=self.depth as usize / REPORTS {
            let mut reports = [Report::default(); REPORTS];
            let mut info = ReportInfo {
                kind: LOGIC,
                ts_id: 0,
                cq_id: self.logic_cq,
                timeout: 0,
                reports: reports.as_mut_ptr(),
                capacity: REPORTS as u32,
                count: 0,
                stream_id: self.stream,
                task_id: ANY_TASK,
                reserved: [REPORT_VERSION, 0, 0, 0, 0, 0, 0, 0],
            };
            // SAFETY: the function has this signature in the HAL's header; it writes `info` and at most `capacity` reports, for which
            // there is room until the end of this round.
            let code = unsafe { report(self.device, ptr::from_mut(&mut info)) };
            match code {
                code::OK if info.count == 0 => break,
                code::OK => {}
                code::TIMEOUT => break,
                code => return Err(HalError::Failed { function, code }),
            }
            in_range("number of reports", self.sq, u64::from(info.count), 0, REPORTS as u64)?;
            let failed = reports[..info.count as usize].iter().find(|report| report.error_type & FAILED != 0);
            failure = failure.or(failed.map(|report| TaskFailure {
                task: report.task_id,
                kind: report.error_type & FAILED,
                code: report.error_code,
                sqe_type: report.sqe_type,
            }));
        }
        Ok(failure)
    }

    /// A property that is the number of an entry.
    #[inline]
    fn index(&self, what: &'static str, property: u32) -> Result<u32, HalError> {
        let index = self.query(property)?[0];
        in_range(what, self.sq, u64::from(index), 0, u64::from(self.depth) - 1)?;
        Ok(index)
    }

    #[inline]
    fn query(&self, property: u32) -> Result<[u32; 8], HalError> {
        let mut info = self.info(property);
        // SAFETY: the function has this signature in the HAL's header, and `info` is its whole argument, ours for the call.
        match unsafe { (self.query)(self.device, &raw mut info) } {
            code::OK => Ok(info.value),
            code => Err(HalError::Query { property, sq: self.sq, code }),
        }
    }

    #[inline]
    fn info(&self, property: u32) -> SqCqInfo {
        info(self.sq, property, 0)
    }
}

/// The words that no call sets must be 0: the HAL reads some of them.
#[inline(always)]
fn info(sq_id: u32, property: u32, value: u32) -> SqCqInfo {
    SqCqInfo { kind: NORMAL, ts_id: 0, sq_id, cq_id: 0, property, value: [value, 0, 0, 0, 0, 0, 0, 0] }
}

/// Argument of the doorbell.
#[inline(always)]
pub(crate) fn tail_of(sq_id: u32, tail: u32) -> SqCqInfo {
    info(sq_id, property::TAIL, tail)
}

fn local_device(hal: &Hal, host_device: u32) -> Result<u32, HalError> {
    let function = "drvGetLocalDevIDByHostDevID";
    let local_device = hal.local_device.ok_or(HalError::Missing(function))?;
    let mut device = 0;
    // SAFETY: the function has this signature in the HAL's header, and writes the one number.
    match unsafe { local_device(host_device, &raw mut device) } {
        code::OK => Ok(device),
        code => Err(HalError::Failed { function, code }),
    }
}

/// Makes the stream known to this process. If the HAL does not have the function, the stream is known already.
fn restore(hal: &Hal, device: u32, stream: u32) -> Result<(), i32> {
    let Some(restore) = hal.restore else { return Ok(()) };
    let mut id = ResourceId { device, kind: STREAM, id: stream, ..ResourceId::default() };
    // SAFETY: the function has this signature in the HAL's header, and `id` is its whole argument.
    match unsafe { restore(&raw mut id) } {
        code::OK => Ok(()),
        code => Err(code),
    }
}

#[inline]
fn in_range(what: &'static str, sq: u32, value: u64, min: u64, max: u64) -> Result<(), HalError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(HalError::Range { what, sq, value, min, max }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn local_device_0(_: u32, device: *mut u32) -> i32 {
        // SAFETY: the caller passes a number to write to.
        unsafe { device.write(0) };
        0
    }

    unsafe extern "C" fn query(_: u32, info: *mut SqCqInfo) -> i32 {
        // SAFETY: the caller passes its whole argument.
        let info = unsafe { &mut *info };
        info.value[0] = match info.property {
            property::BASE => 0x1000,
            property::DEPTH => 256,
            _ => 0,
        };
        0
    }

    #[test]
    fn each_function_that_is_missing_is_named() {
        let ids = QueueIds { restore: Restore::Tried, host_device: 0, stream: 1, sq: 1, logic_cq: 1 };
        let missing = |hal: &Hal| Queue::open(hal, ids).map(|(queue, _)| queue.failed_task());
        let mut hal = Hal::default();
        assert_eq!(missing(&hal), Err(HalError::Missing("drvGetLocalDevIDByHostDevID")));
        hal.local_device = Some(local_device_0);
        assert_eq!(missing(&hal), Err(HalError::Missing("halSqCqQuery")));
        hal.query = Some(query);
        assert_eq!(missing(&hal), Err(HalError::Missing("halSqCqConfig")));
        hal.config = Some(query);
        assert_eq!(missing(&hal), Ok(Err(HalError::Missing("halCqReportRecv"))));
    }
}
