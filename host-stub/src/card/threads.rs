//! Threads of a card: streams whose queues belong to the AI CPU, notifies, and what the card's library calls them.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use hcomm_aicpu::spec::card::{CARD_NOTIFIES, CardInit, CardTask, CardThread};
use hcomm_aicpu::spec::code::HCCL_E_AGAIN;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};

use super::acl::{NotifyHandle, StreamHandle};
use super::device::{CardDevice, lock};
use super::error::CardError;
use super::known_thread::KnownThread;

/// How long a thread that a launch still uses is waited for.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to look.
const RELEASE_POLL: Duration = Duration::from_millis(5);

impl CardDevice {
    /// A thread whose queue belongs to the AI CPU.
    ///
    /// # Errors
    /// Too many notifies; an error of runtime or library.
    pub fn add_thread(&self, notify_count: u32) -> Result<ThreadHandle, CardError> {
        let acl = self.choose()?;
        let stream = acl.create_stream(true)?;
        let added = || {
            let (stream_id, sq_id, (cq, logic_cq)) = (acl.stream_id(stream)?, acl.sq_id(stream)?, acl.cq_ids(stream)?);
            let ids = CardInit { stream: stream_id, sq: sq_id, cq, logic_cq, ..self.init(Engine::AICPU_TS) };
            self.make_known(ids, Some(stream), notify_count)
        };
        added().inspect_err(|_| {
            // The first error is the one to tell.
            let _ = acl.destroy_queue(stream);
        })
    }

    /// The thread of a stream of the host.
    ///
    /// # Errors
    /// As [`add_thread`](Self::add_thread).
    pub fn add_host_thread(&self, stream_id: u32, notify_count: u32) -> Result<ThreadHandle, CardError> {
        self.make_known(CardInit { stream: stream_id, ..self.init(Engine::CPU_TS) }, None, notify_count)
    }

    fn init(&self, engine: Engine) -> CardInit {
        CardInit {
            header: CardInit::HEADER,
            status: hcomm_aicpu::spec::DeviceAddr(0),
            soc: self.soc as u32,
            host_device: self.physical,
            engine: engine.0,
            stream: 0,
            sq: 0,
            cq: 0,
            logic_cq: 0,
            notify_count: 0,
            notify_ids: [0; CARD_NOTIFIES],
        }
    }

    fn make_known(
        &self,
        ids: CardInit,
        queue: Option<StreamHandle>,
        notify_count: u32,
    ) -> Result<ThreadHandle, CardError> {
        if notify_count as usize > CARD_NOTIFIES {
            return Err(CardError::Notifies(notify_count));
        }
        let mut notifies = Vec::new();
        let added = (0..notify_count).try_for_each(|_| {
            notifies.push(self.add_notify()?);
            Ok(())
        });
        let mut init = CardInit { notify_count, ..ids };
        init.notify_ids.iter_mut().zip(&notifies).for_each(|(to, id)| *to = *id);
        let made = added.and_then(|()| {
            self.run("hcomm_card_init", move |status| {
                let mut init = init;
                init.status = status;
                init
            })
        });
        let status = match made {
            Ok(status) => status,
            Err(error) => {
                notifies.iter().for_each(|id| self.remove_notify(*id));
                return Err(error);
            }
        };
        if status.restore_code != 0 {
            log::info!("halResourceIdRestore of stream {} has returned {}", ids.stream, status.restore_code);
        }
        let thread = KnownThread { queue, stream_id: ids.stream, sq_id: ids.sq, slot: status.slot, notifies };
        lock(&self.threads).insert(status.thread, thread);
        Ok(ThreadHandle(status.thread))
    }

    /// Releases a thread. What can't be released stays, and the log says so.
    pub fn remove_thread(&self, handle: ThreadHandle) {
        let Some(thread) = lock(&self.threads).remove(&handle.0) else { return };
        let began = Instant::now();
        let released = loop {
            let released = self.run("hcomm_card_release", |status| CardThread {
                header: CardThread::HEADER,
                status,
                thread: handle.0,
            });
            let is_used = matches!(&released, Err(CardError::Kernel(failed)) if failed.code == HCCL_E_AGAIN);
            if !is_used || began.elapsed() > RELEASE_TIMEOUT {
                break released.map(drop);
            }
            std::thread::sleep(RELEASE_POLL);
        };
        let destroy = || match thread.queue {
            Some(queue) => self.choose()?.destroy_queue(queue),
            None => Ok(()),
        };
        match released.and_then(|()| destroy()) {
            Ok(()) => thread.notifies.iter().for_each(|id| self.remove_notify(*id)),
            Err(error) => log::warn!("thread {:#x} stays on the card: {error}", handle.0),
        }
    }

    /// Looks for failed tasks of all threads with a queue: the first that is found.
    pub(super) fn failed_task(&self) -> CardTask {
        let with_queue = |(handle, thread): (&u64, &KnownThread)| thread.queue.map(|_| *handle);
        let handles: Vec<_> = lock(&self.threads).iter().filter_map(with_queue).collect();
        let ask = |thread: u64| {
            let asked =
                self.run("hcomm_card_report", |status| CardThread { header: CardThread::HEADER, status, thread });
            match asked {
                Ok(status) => Some(status.task).filter(|task| task.thread != 0),
                Err(error) => {
                    log::warn!("no reports of thread {thread:#x}: {error}");
                    None
                }
            }
        };
        handles.into_iter().find_map(ask).unwrap_or_default()
    }

    /// Slots of all threads, a bit each: the host does not know which of them a kernel uses.
    pub(super) fn slots(&self) -> u64 {
        lock(&self.threads).values().fold(0, |bits, thread| bits | 1_u64.checked_shl(thread.slot).unwrap_or(0))
    }

    /// Stream and queue of a thread.
    pub fn thread_ids(&self, handle: ThreadHandle) -> Option<(u32, u32)> {
        lock(&self.threads).get(&handle.0).map(|thread| (thread.stream_id, thread.sq_id))
    }

    /// Stream of a thread of the host.
    ///
    /// # Errors
    /// [`CardError::BadThread`].
    pub fn host_stream_id(&self, handle: ThreadHandle) -> Result<u32, CardError> {
        let threads = lock(&self.threads);
        let host = threads.get(&handle.0).filter(|thread| thread.queue.is_none());
        host.map(|thread| thread.stream_id).ok_or(CardError::BadThread(handle.0))
    }

    /// Id of a notify of a thread.
    ///
    /// # Errors
    /// [`CardError::BadThread`], [`CardError::BadNotify`].
    pub fn notify_id(&self, handle: ThreadHandle, index: u32) -> Result<u32, CardError> {
        let threads = lock(&self.threads);
        let ids = &threads.get(&handle.0).ok_or(CardError::BadThread(handle.0))?.notifies;
        ids.get(index as usize).copied().ok_or(CardError::BadNotify { index, count: ids.len() as u32 })
    }

    /// Notifies of a thread.
    pub fn notify_count(&self, handle: ThreadHandle) -> Option<usize> {
        lock(&self.threads).get(&handle.0).map(|thread| thread.notifies.len())
    }

    /// A notify: its id.
    ///
    /// # Errors
    /// An error of the runtime.
    pub fn add_notify(&self) -> Result<u32, CardError> {
        let (handle, id) = self.choose()?.create_notify()?;
        lock(&self.notifies).insert(id, handle);
        Ok(id)
    }

    /// Destroys it. An error goes to the log.
    pub fn remove_notify(&self, id: u32) {
        let Some(handle) = lock(&self.notifies).remove(&id) else { return };
        if let Err(error) = self.choose().and_then(|acl| acl.destroy_notify(handle)) {
            log::warn!("notify {id}: {error}");
        }
    }

    /// # Errors
    /// [`CardError::NoNotify`].
    pub(super) fn notify(&self, id: u32) -> Result<NotifyHandle, CardError> {
        lock(&self.notifies).get(&id).copied().ok_or(CardError::NoNotify(id))
    }
}
