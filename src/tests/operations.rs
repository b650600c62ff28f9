//! Arguments of each operation: what is queued, and what is refused in which order.

use crate::error::Error;
use crate::ops::{Operation, aclrt_notify, copy, notify, on_queue, reduce};
use crate::spec::DeviceAddr;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::queue::QueueStatus;
use crate::spec::soc::Soc;
use crate::spec::stars910::{MAX_NOTIFY_ID, Stamp, notify_record, notify_wait};
use crate::spec::stars950::{NotifyRecord, NotifyWait, Sdma};
use crate::task::MAX_CHUNK;
use crate::tests::port::{STALE, TestPort};
use crate::tests::rig::Rig;

const DST: DeviceAddr = DeviceAddr(0x12c0_0010_0001);
const SRC: DeviceAddr = DeviceAddr(0x12c0_8000_0003);
const ALIGNED_DST: DeviceAddr = DeviceAddr(0x12c0_0010_0000);
const ALIGNED_SRC: DeviceAddr = DeviceAddr(0x12c0_8000_0000);
const LARGEST: u64 = MAX_NOTIFY_ID as u64;

impl Rig {
    fn run(&self, operation: impl Operation) -> Result<(), Error> {
        on_queue(&self.port, &self.core(0), self.handle, operation)
    }
}

fn copy(port: &mut TestPort, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
    let device = port.device();
    let handle = port.handle();
    on_queue(port, &crate::context::Core::new(&device, 0), handle, copy::Copy { dst, src, len })
}

fn reduce(port: &mut TestPort, dst: u64, count: u64, data_type: DataType, op: ReduceOp) -> Result<(), Error> {
    let device = port.device();
    let handle = port.handle();
    let reduce = reduce::Reduce { dst: DeviceAddr(dst), src: ALIGNED_SRC, count, data_type, op };
    on_queue(port, &crate::context::Core::new(&device, 0), handle, reduce)
}

/// Case 1.
#[test]
fn chunks_cover_every_byte_once_in_order() {
    let lens = [1, MAX_CHUNK - 1, MAX_CHUNK, MAX_CHUNK + 1, 2 * MAX_CHUNK, 2 * MAX_CHUNK + 1, 1 << 32, (1 << 32) + 1];
    for len in lens.into_iter().chain([16 << 30]) {
        let mut port = TestPort::new(16);
        copy(&mut port, DST, SRC, len).unwrap();
        let count = len.div_ceil(MAX_CHUNK) as usize;
        let mut done = 0;
        for (task_id, sqe) in port.slots()[..count].iter().enumerate() {
            let chunk = (len - done).min(MAX_CHUNK);
            let expected = Sdma::new(DeviceAddr(SRC.0 + done), DeviceAddr(DST.0 + done), chunk as u32);
            assert_eq!(*sqe, expected.build(task_id as u32), "{len} bytes, chunk {task_id}");
            assert!(chunk > 0 && chunk < 1 << 32);
            done += chunk;
        }
        assert_eq!(done, len);
        assert_eq!(port.slots()[count..], vec![STALE; 16 - count]);
    }
}

#[test]
fn nothing_is_queued_for_nothing() {
    let mut port = TestPort::new(4);
    port.status.set(QueueStatus::SUSPENDED);
    assert_eq!(copy(&mut port, DST, SRC, 0), Ok(()));
    assert_eq!((port.take_calls(), port.slots()), (vec![], vec![STALE; 4]));
}

#[test]
fn range_may_end_at_the_end_of_the_address_space_but_not_past_it() {
    let last = DeviceAddr(u64::MAX);
    for (dst, src, len, bad) in [
        (last, SRC, 1, None),
        (SRC, last, 1, None),
        (last, SRC, 2, Some(last)),
        (SRC, last, 2, Some(last)),
        (DST, SRC, u64::MAX, Some(DST)),
        (DeviceAddr(2), DeviceAddr(1), u64::MAX, Some(DeviceAddr(2))),
        (DeviceAddr(1), DeviceAddr(2), u64::MAX, Some(DeviceAddr(2))),
    ] {
        let mut port = TestPort::new(4);
        let expected = bad.map_or(Ok(()), |addr| Err(Error::AddressOverflow { addr, len }));
        assert_eq!(copy(&mut port, dst, src, len), expected, "{dst} {src} {len}");
        assert_eq!(port.slots()[0] == STALE, bad.is_some());
    }
}

/// Case 46.
#[test]
fn what_is_not_one_good_task_goes_the_slow_path() {
    let (null, high) = (DeviceAddr(0), DeviceAddr(1 << 63));
    let is_one_task = |dst, src, len| copy::Copy { dst, src, len }.is_simple();
    assert!(is_one_task(DST, SRC, 1) && is_one_task(DST, SRC, MAX_CHUNK));
    for (dst, src, len) in [(null, SRC, 1), (DST, null, 1), (high, SRC, 1), (DST, high, 1)] {
        assert!(!is_one_task(dst, src, len), "{dst} {src} {len}");
    }
    for len in [0, MAX_CHUNK + 1, 1 << 32, u64::MAX] {
        assert!(!is_one_task(DST, SRC, len), "{len}");
    }
}

/// Case 3.
#[test]
fn longest_copy_flows_through_a_ring_and_a_dead_device_ends_it() {
    let rig = Rig::new(TestPort::new(4));
    rig.port.expect_delays(&[1000]);
    let core = rig.core(0);
    core.queues().set_sq_full_timeout_us(1);
    let one = DeviceAddr(1);
    let copy = copy::Copy { dst: one, src: one, len: u64::MAX };
    let Err(Error::QueueFull(full)) = on_queue(&rig.port, &core, rig.handle, copy) else { panic!("full") };
    assert_eq!(full.queued_len, 3 * MAX_CHUNK);
}

/// Case 46.
#[test]
fn null_addresses_are_refused_dst_first() {
    let null = DeviceAddr(0);
    assert_eq!(copy::validate(null, null, 0), Err(Error::NullDst));
    assert_eq!(copy::validate(null, SRC, 1), Err(Error::NullDst));
    assert_eq!(copy::validate(DST, null, u64::MAX), Err(Error::NullSrc));
    assert_eq!(copy::validate(DST, SRC, 0), Ok(()));
}

#[test]
fn chunks_keep_elements_whole() {
    let mut port = TestPort::new(8);
    let count = MAX_CHUNK / 4 + 1;
    reduce(&mut port, ALIGNED_DST.0, count, DataType::FP32, ReduceOp::MAX).unwrap();
    let at = |addr: DeviceAddr, done| DeviceAddr(addr.0 + done);
    let chunk = |done, len| {
        Sdma::new(at(ALIGNED_SRC, done), at(ALIGNED_DST, done), len).reduce(ReduceOp::MAX, DataType::FP32).unwrap()
    };
    let expected = [chunk(0, MAX_CHUNK as u32).build(0), chunk(MAX_CHUNK, 4).build(1), STALE];
    assert_eq!(port.slots()[..3], expected);
}

#[test]
fn refusals_in_their_order_leave_the_ring_alone() {
    let mut port = TestPort::new(4);
    let prod = Error::ReduceNotSupported { op: ReduceOp::PROD, data_type: DataType::FP32 };
    assert_eq!(reduce(&mut port, ALIGNED_DST.0 + 1, u64::MAX, DataType::FP32, ReduceOp::PROD), Err(prod));
    assert_eq!((prod.code(), prod.to_string().as_str()), (5, "reduce prod over fp32 is not supported"));
    for odd in [-1, 5, 13, 17, 18, 255] {
        let error = reduce(&mut port, ALIGNED_DST.0, 1, DataType(odd), ReduceOp::SUM).unwrap_err();
        assert_eq!(error.code(), 5, "type {odd}");
    }
    let too_large = Error::CountTooLarge { count: 1 << 62, size: 4 };
    assert_eq!(reduce(&mut port, ALIGNED_DST.0 + 1, 1 << 62, DataType::INT32, ReduceOp::SUM), Err(too_large));
    let misaligned = Error::Misaligned { addr: DeviceAddr(ALIGNED_DST.0 + 2), size: 4 };
    assert_eq!(reduce(&mut port, ALIGNED_DST.0 + 2, 1, DataType::INT32, ReduceOp::SUM), Err(misaligned));
    let last = u64::MAX - 3;
    let overflow = Error::AddressOverflow { addr: DeviceAddr(last), len: 8 };
    assert_eq!(reduce(&mut port, last, 2, DataType::INT32, ReduceOp::SUM), Err(overflow));
    assert_eq!(reduce(&mut port, ALIGNED_DST.0, 0, DataType::INT32, ReduceOp::SUM), Ok(()));
    assert_eq!(port.slots(), [STALE; 4]);
}

#[test]
fn both_ranges_of_a_reduce_are_checked_and_every_chunk_goes_through_the_split() {
    let last = DeviceAddr(u64::MAX - 3);
    let overflow = Err(Error::AddressOverflow { addr: last, len: 8 });
    assert_eq!(reduce::validate(ALIGNED_DST, last, 2, DataType::INT32, ReduceOp::SUM), overflow);
    let odd = Err(Error::Misaligned { addr: SRC, size: 4 });
    assert_eq!(reduce::validate(ALIGNED_DST, SRC, 2, DataType::INT32, ReduceOp::SUM), odd);
    let one_more = reduce::Reduce {
        dst: ALIGNED_DST,
        src: ALIGNED_SRC,
        count: MAX_CHUNK / 4 + 1,
        data_type: DataType::FP32,
        op: ReduceOp::SUM,
    };
    let rig = Rig::new(TestPort::new(8));
    assert!(one_more.task(&rig.device.queues().shared.table.get(), None).is_none(), "one element more than a chunk");
    assert!(
        reduce::Reduce { count: MAX_CHUNK / 4, ..one_more }
            .task(&rig.device.queues().shared.table.get(), None)
            .is_some()
    );
}

#[test]
fn record_and_wait_name_the_id_of_the_index() {
    let rig = Rig::new(TestPort::new(8));
    rig.run(notify::Record { to: rig.handle, index: 1 }).unwrap();
    rig.run(notify::Wait { index: 0, timeout_s: 77 }).unwrap();
    let expected = [NotifyRecord::new(0x1_ffff).unwrap().build(0), NotifyWait::new(40, 77).unwrap().build(1)];
    assert_eq!(rig.port.slots()[..3], [expected[0], expected[1], STALE]);
}

#[test]
fn index_the_thread_lacks_is_refused_with_ptr() {
    let rig = Rig::new(TestPort::new(8));
    for index in [3, u32::MAX] {
        let error = Error::BadNotifyIndex { index, count: 3 };
        let record = notify::Record { to: rig.handle, index };
        assert_eq!(rig.run(record), Err(error));
        assert_eq!(rig.run(notify::Wait { index, timeout_s: 1 }), Err(error));
        assert_eq!(error.code(), 2);
    }
    assert_eq!(rig.port.slots(), [STALE; 8]);
}

#[test]
fn id_of_a_notify_that_no_descriptor_holds_is_refused() {
    let rig = Rig::new(TestPort::new(8));
    let error = Error::NotifyIdTooLarge { id: 0x2_0000, limit: 0x1_ffff };
    let record = notify::Record { to: rig.handle, index: 2 };
    assert_eq!(rig.run(record), Err(error));
    assert_eq!(rig.run(notify::Wait { index: 2, timeout_s: 1 }), Err(error));
    assert_eq!(rig.port.slots(), [STALE; 8]);
}

#[test]
fn record_and_wait_name_the_id_in_the_stream_of_the_thread() {
    for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
        let rig = Rig::new(TestPort::new(8));
        rig.device.set_soc(soc);
        rig.run(aclrt_notify::Record { id: 5 }).unwrap();
        rig.run(aclrt_notify::Wait { id: LARGEST, timeout_s: 77 }).unwrap();
        let stamp = |task_id| Stamp { stream_id: 3, task_id };
        let expected = [notify_record(5, stamp(0)).unwrap(), notify_wait(MAX_NOTIFY_ID, 77, stamp(1)).unwrap(), STALE];
        assert_eq!(rig.port.slots()[..3], expected, "{soc:?}");
    }
}

#[test]
fn id_that_does_not_fit_is_refused_and_never_cut() {
    for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
        let rig = Rig::new(TestPort::new(8));
        rig.device.set_soc(soc);
        // Each would be a good id if it were cut to 13 or 32 bits.
        for id in [LARGEST + 1, 1 << 17, 1 << 32, u64::MAX] {
            let error = Error::BadNotifyId { id, limit: MAX_NOTIFY_ID };
            assert_eq!(rig.run(aclrt_notify::Record { id }), Err(error));
            assert_eq!(rig.run(aclrt_notify::Wait { id, timeout_s: 77 }), Err(error));
            assert_eq!(error.code(), 1);
        }
        assert_eq!(rig.port.slots(), [STALE; 8]);
    }
}

#[test]
fn ascend950_refuses_every_id() {
    let rig = Rig::new(TestPort::new(8));
    for id in [0, u64::MAX] {
        let error = rig.run(aclrt_notify::Record { id }).unwrap_err();
        assert_eq!(error, Error::AclrtNotifyNotSupported(Soc::Ascend950));
        let text = "notifies that are named by their id are not supported on Ascend950";
        assert_eq!((error.code(), error.to_string().as_str()), (5, text));
    }
    assert_eq!(rig.port.slots(), [STALE; 8]);
}
