//! Streams, and launches of kernels on them.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use hcomm_aicpu::Error as Refused;
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::{self, KernelParams, ParamsError, ParamsHeader};
use hcomm_aicpu::spec::thread::Engine;
use hcomm_aicpu::{copy, reduce};
use hcomm_kernel::MisbehaveParams;
use zerocopy::{FromBytes, IntoBytes};

use crate::card::error::CardError;
use crate::card::stream::{CardStream, End, Ended};
use crate::device::Device;
use crate::error::Error;
use crate::kernel::{Entry, Kernel, misbehaviour};
use crate::options::{LAUNCH_TIMEOUT, LaunchEnd};
use crate::product::Side;
use hcomm_sim::alloc::Kind;
use hcomm_sim::check::findings::Receiver;
use hcomm_sim::deterministic::{HostWait, NoTurn};
use hcomm_sim::event::{Access, AccessKind, HostThread, Object, SiteId, What};
use hcomm_sim::host_transfer::HostWork;
use hcomm_sim::inbox::Command;
use hcomm_sim::reduce::Reduce;
use hcomm_sim::stream::{Waited, Waiting};
use hcomm_sim::{HostTransfer, KernelLaunch, LaunchStats, Op, StreamShared};

/// # Errors
/// The parameters have the head of another type.
pub(crate) fn check_head<P: KernelParams>(params: &P) -> Result<(), ParamsError> {
    let bytes = params.as_bytes();
    let (found, expected) = (bytes.len() as u64, size_of::<ParamsHeader>() as u64);
    let head = ParamsHeader::read_from_prefix(bytes).map_err(|_| ParamsError::BadSize { found, expected })?.0;
    params::check::<P>(&head)
}

/// How a launch differs from others.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchOptions {
    /// Limit of its kernel; `None`: the device's.
    pub timeout: Option<Duration>,
    /// It completes only with the last task that the kernel has queued, see [`Stream::launch_and_drain`].
    pub drain: bool,
    /// Calls of the kernel are there to be refused: the check `calls` does not look at it.
    pub expects_refusals: bool,
}

/// Operations that run one after the other.
pub struct Stream {
    device: Device,
    place: Place,
}

/// Of the simulated device, or of a card.
enum Place {
    Sim(Arc<StreamShared>),
    Card(CardStream),
}

impl Stream {
    /// A new stream. If a card gives none, the calls of the stream return why.
    pub fn new(device: &Device) -> Self {
        if let Some(card) = device.0.card() {
            return Self { device: device.clone(), place: Place::Card(CardStream::new(card)) };
        }
        let shared = Arc::new(StreamShared::with_turn(device.0.stream_ids(1), Arc::clone(&device.0.shared.turn)));
        device.0.shared.inbox.send(Command::AddStream(Arc::clone(&shared)));
        Self { device: device.clone(), place: Place::Sim(shared) }
    }

    /// Its number. On a card, that of the runtime.
    pub fn id(&self) -> u32 {
        match &self.place {
            Place::Sim(shared) => shared.id(),
            Place::Card(stream) => stream.id(),
        }
    }

    fn card(&self) -> Option<&CardStream> {
        match &self.place {
            Place::Sim(_) => None,
            Place::Card(stream) => Some(stream),
        }
    }

    /// # Panics
    /// On a card: the callers have looked for it ([`Stream::card`]) or asked for the simulated device.
    fn shared(&self) -> &Arc<StreamShared> {
        match &self.place {
            Place::Sim(shared) => shared,
            Place::Card(_) => panic!("an operation of the simulated device has reached a card"),
        }
    }

    /// Launches a kernel with `params`, and returns its statistics, which are complete after
    /// [`synchronize`](Self::synchronize). Does not wait.
    ///
    /// The launch completes when the kernel has returned, as on a card. Only the notifies of a control pair order the
    /// kernel's tasks before later operations of the stream, see [`launch_with_control`](Self::launch_with_control);
    /// other tasks are reported when the host synchronises.
    ///
    /// The launch owns a copy of the parameters in device memory, 64-byte aligned, until it has completed.
    ///
    /// # Errors
    /// Parameters with the head of another type, no room for them, a kernel of another CPU, a failed device.
    pub fn launch<P: KernelParams>(&self, kernel: &Kernel, params: &P) -> Result<Arc<LaunchStats>, Error> {
        check_head(params)?;
        self.launch_bytes(kernel, params.as_bytes())
    }

    /// As [`launch`](Self::launch), with parameters as bytes; for 0 bytes the kernel gets null.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub fn launch_bytes(&self, kernel: &Kernel, params: &[u8]) -> Result<Arc<LaunchStats>, Error> {
        self.launch_bytes_with(kernel, params, LaunchOptions::default())
    }

    /// As [`launch`](Self::launch), but the launch completes only with the last task that the kernel has queued, without any
    /// notify. No card does that: it is for tests of single kernels.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub fn launch_and_drain<P: KernelParams>(&self, kernel: &Kernel, params: &P) -> Result<Arc<LaunchStats>, Error> {
        check_head(params)?;
        self.launch_bytes_with(kernel, params.as_bytes(), LaunchOptions { drain: true, ..LaunchOptions::default() })
    }

    /// As [`launch_bytes`](Self::launch_bytes), with options.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub fn launch_bytes_with(
        &self,
        kernel: &Kernel,
        params: &[u8],
        options: LaunchOptions,
    ) -> Result<Arc<LaunchStats>, Error> {
        if self.card().is_some() {
            return self.launch_on_card(kernel, params, options, End::default());
        }
        let inner = &self.device.0;
        inner.check_alive()?;
        let cpu = inner.options.cpu;
        kernel.entry_on(cpu)?;
        match inner.kernel_fault(self.id()) {
            Some(fault) => {
                let name = format!("misbehave in place of {}", kernel.name());
                let misbehave = Kernel::new(&name, self.device.load_kernel("misbehave")?.entry_on(cpu)?);
                let params = MisbehaveParams { header: MisbehaveParams::HEADER, kind: misbehaviour(fault) };
                self.submit_kernel(&misbehave, params.as_bytes(), options)
            }
            None => self.submit_kernel(kernel, params, options),
        }
    }

    /// Launches on a card. It counts no tasks: the statistics stay 0.
    pub(crate) fn launch_on_card(
        &self,
        kernel: &Kernel,
        params: &[u8],
        options: LaunchOptions,
        end: End,
    ) -> Result<Arc<LaunchStats>, Error> {
        self.device.0.check_owner()?;
        let (Some(stream), Entry::Card(function)) = (self.card(), kernel.entry) else {
            return Err(Error::WrongCpu(kernel.name().to_owned()));
        };
        if options.drain {
            return Err(CardError::NotOnCard("a launch that ends with its last task").into());
        }
        let timeout = options.timeout.or(self.device.options().launch_timeout).unwrap_or(LAUNCH_TIMEOUT);
        stream.launch(&kernel.name, function, params, end, timeout)?;
        Ok(Arc::default())
    }

    fn submit_kernel(&self, kernel: &Kernel, params: &[u8], options: LaunchOptions) -> Result<Arc<LaunchStats>, Error> {
        let inner = &self.device.0;
        inner.shared.lock_alloc().note_launch();
        let args = match params.len() as u64 {
            0 => 0,
            len => {
                let addr = inner.allocate(len, Kind::Args)?;
                inner.shared.memory.write(addr.0, params).inspect_err(|_| inner.free_own(addr))?;
                addr.0
            }
        };
        let stats = Arc::new(LaunchStats::default());
        let launch = KernelLaunch {
            name: Arc::clone(&kernel.name),
            entry: kernel.entry_on(inner.options.cpu)?,
            args,
            timeout: options.timeout.or(inner.options.launch_timeout).unwrap_or(LAUNCH_TIMEOUT),
            drain: options.drain || inner.options.end == Some(LaunchEnd::Queues),
            expects_refusals: options.expects_refusals,
            number: 0,
            stats: Arc::clone(&stats),
        };
        let (host, stream_id) = (HostThread::current(), self.id());
        inner.shared.events.send(|| What::LaunchQueued { host, stream_id, kernel: Arc::clone(&kernel.name) });
        self.submit(Op::KernelLaunch(launch))?;
        Ok(stats)
    }

    /// Queues a copy of `len` bytes of device memory, as a CPU_TS thread of the host does. Does not wait. `len` 0 queues
    /// nothing.
    ///
    /// # Errors
    /// The product does not let the host copy; then those of [`copy::validate`]; a failed device.
    pub fn copy(&self, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        let inner = self.device.0.on_sim("a copy on a stream")?;
        inner.options.product.may_copy(Side::Host, Engine::CPU_TS)?;
        copy::validate(dst, src, len)?;
        self.transfer(HostTransfer { dst: dst.0, src: src.0, len, reduce: None })
    }

    /// Queues `dst[i] = op(dst[i], src[i])` for `count` elements of device memory, as a CPU_TS thread of the host does. Does not
    /// wait. `count` 0 queues nothing.
    ///
    /// # Errors
    /// The product does not let the host reduce; then those of [`reduce::validate`]; a failed device.
    pub fn reduce(
        &self,
        dst: DeviceAddr,
        src: DeviceAddr,
        count: u64,
        data_type: DataType,
        op: ReduceOp,
    ) -> Result<(), Error> {
        let inner = self.device.0.on_sim("a reduce on a stream")?;
        inner.options.product.may_copy(Side::Host, Engine::CPU_TS)?;
        let reduce::Transfer { len, opcode } = reduce::validate(dst, src, count, data_type, op)?;
        self.transfer(HostTransfer { dst: dst.0, src: src.0, len, reduce: Reduce::from_opcode(opcode) })
    }

    fn transfer(&self, transfer: HostTransfer) -> Result<(), Error> {
        if transfer.len == 0 {
            return Ok(());
        }
        self.submit(Op::HostTransfer(transfer)).map(drop)
    }

    /// Queues work on device memory that the device does not do itself, such as a copy from the host. Does not wait.
    ///
    /// # Errors
    /// A failed device. A range that is not inside one live allocation of the user is an error of the device when the
    /// stream comes to it.
    pub fn host_work(&self, work: HostWork) -> Result<(), Error> {
        self.submit(Op::HostWork(work)).map(drop)
    }

    /// Records the notify with this id after the operations of the stream, as a CPU_TS thread of the host does
    /// (`HcommAclrtNotifyRecordOnThread`).
    ///
    /// # Errors
    /// The product has no notifies that are named by their id, or the id is above the product's limit; a failed device.
    /// An id that is not allocated is an error of the stream.
    pub fn aclrt_notify_record(&self, id: u64) -> Result<(), Error> {
        self.record_notify(self.notify_id(id)?)
    }

    /// Makes later operations of the stream wait for the notify with this id for up to `timeout_s` seconds (0 = no limit)
    /// (`HcommAclrtNotifyWaitOnThread`).
    ///
    /// # Errors
    /// As [`aclrt_notify_record`](Self::aclrt_notify_record).
    pub fn aclrt_notify_wait(&self, id: u64, timeout_s: u32) -> Result<(), Error> {
        self.wait_notify(self.notify_id(id)?, timeout_s)
    }

    /// Records the notify with this id after the operations of the stream.
    pub(crate) fn record_notify(&self, id: u32) -> Result<(), Error> {
        match &self.place {
            Place::Card(stream) => Ok(stream.record(id)?),
            Place::Sim(_) => self.submit(Op::NotifyRecord { id }).map(drop),
        }
    }

    /// Makes later operations wait for the notify with this id for up to `timeout_s` seconds (0 = no limit).
    pub(crate) fn wait_notify(&self, id: u32, timeout_s: u32) -> Result<(), Error> {
        match &self.place {
            Place::Card(stream) => Ok(stream.wait(id, timeout_s)?),
            Place::Sim(_) => self.submit(Op::NotifyWait { id, timeout_s }).map(drop),
        }
    }

    fn notify_id(&self, id: u64) -> Result<u32, Error> {
        let limit = self.device.options().product.max_aclrt_notify_id()?;
        let bad = Refused::BadNotifyId { id, limit };
        Ok(u32::try_from(id).ok().filter(|id| *id <= limit).ok_or(bad)?)
    }

    /// Adds an operation to the stream. Gives its place among all operations.
    pub(crate) fn submit(&self, op: Op) -> Result<u64, Error> {
        self.device.0.on_sim("this operation of a stream")?.check_alive()?;
        self.device.0.shared.turn.host_point();
        let events = &self.device.0.shared.events;
        let _call = events.host_call();
        let (host, stream_id, operation) = (HostThread::current(), self.id(), op.name());
        let site = if matches!(op, Op::HostTransfer(_) | Op::HostWork(_)) { events.site() } else { SiteId::UNKNOWN };
        events.send(|| What::Submitted { host, stream_id, operation, site });
        let place = self.shared().submit();
        self.touch_place(place);
        self.device.0.shared.inbox.send(Command::Submit(self.id(), op));
        self.device.0.shared.turn.host_passes();
        Ok(place)
    }

    /// The operation in this place is about to be handed over.
    fn touch_place(&self, place: u64) {
        let access = Access::of(Object::Operations(self.id()), place, 1, AccessKind::Write);
        self.device.0.shared.turn.touch(access);
    }

    /// The device that it belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all operations of the stream have completed, and the tasks that its kernels have queued. Every
    /// operation has a limit of its own ([`DeviceOptions::launch_timeout`](crate::DeviceOptions::launch_timeout)), so
    /// the wait is bounded.
    ///
    /// # Errors
    /// The first error since the last call; the message says if the device had failed before.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.synchronize_for(Duration::MAX)
    }

    /// As [`synchronize`](Self::synchronize), but for at most `timeout`.
    ///
    /// # Errors
    /// Also [`Error::Timeout`]; the operations continue then.
    pub fn synchronize_for(&self, timeout: Duration) -> Result<(), Error> {
        self.device.0.check_owner()?;
        if let Some(stream) = self.card() {
            return match stream.synchronize(timeout)? {
                Ended::Complete => Ok(()),
                Ended::TimedOut(outstanding) => Err(Error::Timeout { stream_id: self.id(), outstanding, timeout }),
            };
        }
        let call = self.device.0.shared.events.host_call();
        let result = self.wait_for(timeout);
        if !matches!(result, Err(Error::Timeout { .. } | Error::SchedulerGone | Error::Deadlock { .. })) {
            let (host, stream_id) = (HostThread::current(), self.id());
            let failed = result.is_err();
            self.device.0.shared.events.send(|| What::Synchronized { host, stream_id, failed });
        }
        drop(call);
        result.and_then(|()| self.device.0.check_findings(Receiver::Stream(self.id())))
    }

    /// Waits until the operation in `place`, which [`submit`](Self::submit) gave, has completed, without a look at what
    /// kernels have left.
    pub(crate) fn wait_until(&self, place: u64, timeout: Duration) -> Result<(), Error> {
        self.wait_with(&self.shared().begin_wait_until(place, timeout != Duration::MAX), timeout)
    }

    /// Place of the operation that was submitted last.
    pub(crate) fn last_place(&self) -> u64 {
        self.shared().submitted()
    }

    /// Looks whether the checks have found something on this stream that no synchronise has returned, without waiting.
    ///
    /// # Errors
    /// The oldest of the findings, once.
    pub fn check_findings(&self) -> Result<(), Error> {
        self.device.0.check_owner()?;
        match self.device.0.card() {
            Some(_) => Ok(()),
            None => self.device.0.check_findings(Receiver::Stream(self.id())),
        }
    }

    fn wait_for(&self, timeout: Duration) -> Result<(), Error> {
        let waiting = self.shared().begin_wait(timeout != Duration::MAX);
        if waiting.needs_look() {
            self.touch_place(waiting.target());
            let (host, stream_id, operation) = (HostThread::current(), self.id(), Op::Synchronize.name());
            let site = SiteId::UNKNOWN;
            self.device.0.shared.events.send(|| What::Submitted { host, stream_id, operation, site });
            self.device.0.shared.inbox.send(Command::Submit(self.id(), Op::Synchronize));
        }
        self.wait_with(&waiting, timeout)
    }

    fn wait_with(&self, waiting: &Waiting<'_>, timeout: Duration) -> Result<(), Error> {
        let (stream_id, mut outstanding, mut ended) = (self.id(), 0, None);
        let wait = HostWait::Operations { limit: timeout, stream: stream_id, place: waiting.target() };
        let waited = self.device.0.shared.turn.host_waits(wait, &mut |slice| {
            let mut is_done = |slice| {
                match waiting.wait(slice) {
                    Waited::Done(Some(error)) => ended = Some(Err(Error::Device(error))),
                    Waited::Done(None) => ended = Some(self.device.0.check_alive()),
                    Waited::TimedOut(left) => outstanding = left,
                }
                ended.is_some()
            };
            // A scheduler that is gone has ended what it knew of. Nothing else will end.
            is_done(Duration::ZERO) || !slice.is_zero() && (self.device.0.scheduler_gone() || is_done(slice))
        });
        match (waited, ended) {
            (_, Some(ended)) => ended,
            (Err(NoTurn::TimedOut), None) => Err(Error::Timeout { stream_id, outstanding, timeout }),
            (Err(NoTurn::Deadlock), None) => Err(Error::Deadlock { stream_id, outstanding }),
            (Ok(()) | Err(NoTurn::Gone), None) => {
                self.device.0.check_alive()?;
                Err(Error::SchedulerGone)
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.card().is_some() || self.device.0.is_forked() {
            return;
        }
        // Operations that are left continue: the scheduler removes the stream when it is empty.
        self.device.0.shared.inbox.send(Command::RemoveStream(self.id()));
    }
}
