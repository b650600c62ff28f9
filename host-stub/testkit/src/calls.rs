//! Calls of kernel `call_list`, and threads for them.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{Call, CallListParams};
use host_stub::{DeviceBuffer, Error, LaunchOptions, Stream, ThreadConfig};
use zerocopy::IntoBytes;

use crate::Rig;

/// A call of any function.
///
/// # Panics
/// If there are more than 6 arguments.
pub fn call(function: u64, args: &[u64]) -> Call {
    let mut call = Call { function, args: [0; 6] };
    call.args[..args.len()].copy_from_slice(args);
    call
}

/// A copy of `len` bytes.
pub fn copy(thread: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Call {
    call(Call::LOCAL_COPY, &[thread.0, dst.0, src.0, len])
}

/// A reduce of `count` elements.
pub fn reduce(
    thread: ThreadHandle,
    dst: DeviceAddr,
    src: DeviceAddr,
    count: u64,
    data_type: DataType,
    op: ReduceOp,
) -> Call {
    call(Call::LOCAL_REDUCE, &[thread.0, dst.0, src.0, count, data_type.0 as u64, op.0 as u64])
}

/// A record of notify `index` of thread `to`.
pub fn record(thread: ThreadHandle, to: ThreadHandle, index: u32) -> Call {
    call(Call::NOTIFY_RECORD, &[thread.0, to.0, index.into()])
}

/// A wait for notify `index` of the thread, of at most `timeout_s` seconds; 0: without limit.
pub fn wait(thread: ThreadHandle, index: u32, timeout_s: u32) -> Call {
    call(Call::NOTIFY_WAIT, &[thread.0, index.into(), timeout_s.into()])
}

/// A record of the notify with this id, which the host has created.
pub fn aclrt_record(thread: ThreadHandle, id: u64) -> Call {
    call(Call::ACLRT_NOTIFY_RECORD, &[thread.0, id])
}

/// A wait for the notify with this id, which the host has created.
pub fn aclrt_wait(thread: ThreadHandle, id: u64, timeout_s: u32) -> Call {
    call(Call::ACLRT_NOTIFY_WAIT, &[thread.0, id, timeout_s.into()])
}

/// Device memory of a launch of `call_list`: keep it until the launch has completed.
pub struct Launched {
    _list: DeviceBuffer,
    codes: DeviceBuffer,
}

impl Rig {
    /// `count` threads with `notifies` notifies each and rings of `depth` entries.
    ///
    /// # Panics
    /// If the communicator refuses them.
    #[track_caller]
    pub fn threads(&self, count: u32, notifies: u32, depth: u32) -> Vec<ThreadHandle> {
        self.comm.acquire_threads_with(&ThreadConfig::new(count).notifies(notifies).depth(depth)).unwrap()
    }

    /// Launches kernel `call_list`, whose launch completes when its kernel has returned.
    ///
    /// # Panics
    /// If it can't be launched.
    pub fn launch_calls(&self, list: &[Call]) -> Launched {
        self.launch_calls_on(&self.stream, list, false)
    }

    /// Launches kernel `call_list` on `stream`, where the launch completes with all that it queues.
    ///
    /// # Panics
    /// If it can't be launched.
    pub fn launch_calls_and_drain(&self, stream: &Stream, list: &[Call]) -> Launched {
        self.launch_calls_on(stream, list, true)
    }

    /// Launches kernel `call_list` on `stream`. `drain`: the launch completes with all that it queues.
    ///
    /// # Panics
    /// If it can't be launched.
    pub fn launch_calls_on(&self, stream: &Stream, list: &[Call], drain: bool) -> Launched {
        let (entries, codes) = (self.buffer(list.as_bytes()), self.buffer(&vec![0xee; list.len() * 4]));
        let (header, count) = (CallListParams::HEADER, list.len() as u64);
        let params = CallListParams { header, list: entries.addr(), count, codes: codes.addr() };
        self.launch_call_list(stream, &params, drain);
        Launched { _list: entries, codes }
    }

    /// Launches kernel `call_list`, waits for all that it queues, and returns the codes of the calls.
    ///
    /// # Errors
    /// Those of the wait.
    ///
    /// # Panics
    /// If it can't be launched.
    pub fn calls(&self, list: &[Call]) -> Result<Vec<i32>, Error> {
        let codes = self.buffer(&vec![0xee; list.len().max(1) * 4]);
        self.calls_with_codes_at(list, &codes)?;
        Ok(self.read_codes(&codes)[..list.len()].to_vec())
    }

    /// As [`calls`](Self::calls), with the codes stored at the start of `codes`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn calls_with_codes_at(&self, list: &[Call], codes: &DeviceBuffer) -> Result<(), Error> {
        // An allocation has at least one byte.
        let entries = self.buffer(if list.is_empty() { &[0] } else { list.as_bytes() });
        let (header, count) = (CallListParams::HEADER, list.len() as u64);
        let params = CallListParams { header, list: entries.addr(), count, codes: codes.addr() };
        self.launch_call_list(&self.stream, &params, true);
        self.stream.synchronize()
    }

    /// Codes of the calls of a launch.
    pub fn codes(&self, launched: &Launched) -> Vec<i32> {
        self.read_codes(&launched.codes)
    }

    /// The caller looks at the codes: calls may be refused.
    fn launch_call_list(&self, stream: &Stream, params: &CallListParams, drain: bool) {
        let options = LaunchOptions { drain, expects_refusals: true, ..LaunchOptions::default() };
        let kernel = self.device.load_kernel("call_list").unwrap();
        stream.launch_bytes_with(&kernel, params.as_bytes(), options).unwrap();
    }

    fn read_codes(&self, codes: &DeviceBuffer) -> Vec<i32> {
        self.read(codes).chunks_exact(4).map(|word| i32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// [`calls`](Self::calls) that must all return 0.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// If a call returns another code.
    pub fn good_calls(&self, list: &[Call]) -> Result<(), Error> {
        assert_eq!(self.calls(list)?, vec![0; list.len()]);
        Ok(())
    }
}
