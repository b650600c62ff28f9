//! Copies and fills by a stream.

use std::ffi::c_void;

use hcomm_aicpu::spec::DeviceAddr;

use super::call::not_null;
use super::error::CallError;
use super::fill;
use super::memory;
use super::process::{Place, place_of};
use super::stream;
use hcomm_sim::event::Range;
use hcomm_sim::host_transfer::HostWork;
use host_stub::{Device, Stream};

/// An address of the host, as the thread of the device gets it.
#[derive(Clone, Copy)]
struct HostAddr(usize);

impl HostAddr {
    fn of(ptr: *const c_void) -> Self {
        Self(ptr.expose_provenance())
    }

    fn ptr(self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.0)
    }

    fn mut_ptr(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

fn check_device(device: &Device, stream: &Stream) -> Result<(), CallError> {
    if device.slot() == stream.device().slot() {
        return Ok(());
    }
    let text =
        "memory of another device than that of the stream: copy it by aclrtMemcpy, or with a kernel over a channel";
    Err(CallError::NotSupported(text.to_owned()))
}

fn range(addr: DeviceAddr, count: usize) -> Range {
    Range { addr: addr.0, len: count as u64 }
}

/// Queues a copy of `count` bytes on a stream. Arguments are checked now, as for [`memory::copy`]; the bytes are read when
/// the stream comes to it.
///
/// # Errors
/// As [`memory::copy`]; unknown stream; memory of two devices.
///
/// # Safety
/// Ranges of the host can be read and written until the stream has come to it.
pub unsafe fn copy(
    dst: *mut c_void,
    dest_max: usize,
    src: *const c_void,
    count: usize,
    kind: i32,
    stream: u64,
) -> Result<(), CallError> {
    not_null([(dst, "dst"), (src, "src")])?;
    memory::check_copy(dest_max, count, kind)?;
    let stream = stream::get(stream)?.stream;
    if count == 0 {
        return Ok(());
    }
    let (to, from) = (DeviceAddr::from(dst), DeviceAddr::from(src));
    let (host_to, host_from) = (HostAddr::of(dst), HostAddr::of(src));
    let text = format!("copy of {count} bytes from {src:p} to {dst:p}");
    let nothing = Range::default();
    let work = match (place_of(to.0), place_of(from.0)) {
        (Place::Closed, _) | (_, Place::Closed) => {
            return Err(CallError::Invalid(format!("{to} or {from} is device memory of a device that is not open")));
        }
        (Place::Device(device), Place::Host) => {
            check_device(&device, &stream)?;
            device.check_range(to, count as u64)?;
            memory::check_host_len(count)?;
            let run = Box::new(move |memory: &dyn hcomm_sim::memory::Memory| {
                // SAFETY: the caller owes `count` bytes that stay readable and unchanged until the stream has come here.
                memory.write_hbm(to.0, unsafe { std::slice::from_raw_parts(host_from.ptr(), count) })
            });
            HostWork { text, reads: nothing, writes: range(to, count), run }
        }
        (Place::Host, Place::Device(device)) => {
            check_device(&device, &stream)?;
            device.check_range(from, count as u64)?;
            memory::check_host_len(count)?;
            let run = Box::new(move |memory: &dyn hcomm_sim::memory::Memory| {
                // SAFETY: the caller owes `count` bytes that only this writes until the stream has come here.
                memory.read_hbm(from.0, unsafe { std::slice::from_raw_parts_mut(host_to.mut_ptr(), count) })
            });
            HostWork { text, reads: range(from, count), writes: nothing, run }
        }
        (Place::Device(device), Place::Device(source)) => {
            check_device(&device, &stream)?;
            check_device(&source, &stream)?;
            device.check_range(to, count as u64)?;
            device.check_range(from, count as u64)?;
            let run = Box::new(move |memory: &dyn hcomm_sim::memory::Memory| memory.copy(to.0, from.0, count as u64));
            HostWork { text, reads: range(from, count), writes: range(to, count), run }
        }
        (Place::Host, Place::Host) => {
            memory::check_host_len(count)?;
            let run = Box::new(move |_: &dyn hcomm_sim::memory::Memory| {
                // SAFETY: the caller owes both ranges until the stream has come here; they may overlap.
                unsafe { std::ptr::copy(host_from.ptr(), host_to.mut_ptr(), count) };
                Ok(())
            });
            HostWork { text, reads: nothing, writes: nothing, run }
        }
    };
    Ok(stream.host_work(work)?)
}

/// Queues a fill of `count` bytes with the low byte of `value` on a stream. Arguments are checked now, as for [`fill::fill`].
///
/// # Errors
/// As [`fill::fill`]; unknown stream; memory of another device.
///
/// # Safety
/// A range of the host can be written until the stream has come to it.
pub unsafe fn set(ptr: *mut c_void, max: usize, value: i32, count: usize, stream: u64) -> Result<(), CallError> {
    fill::check(ptr, max, count)?;
    let stream = stream::get(stream)?.stream;
    if count == 0 {
        return Ok(());
    }
    let (addr, host, byte) = (DeviceAddr::from(ptr), HostAddr::of(ptr), value as u8);
    let text = format!("fill of {count} bytes at {ptr:p}");
    let reads = Range::default();
    let work = match place_of(addr.0) {
        Place::Closed => {
            return Err(CallError::Invalid(format!("{ptr:p} is device memory of a device that is not open")));
        }
        Place::Device(device) => {
            check_device(&device, &stream)?;
            device.check_range(addr, count as u64)?;
            let run = Box::new(move |memory: &dyn hcomm_sim::memory::Memory| {
                fill::in_steps(addr, byte, count as u64, |addr, part| memory.write_hbm(addr.0, part))
            });
            HostWork { text, reads, writes: range(addr, count), run }
        }
        Place::Host => {
            memory::check_host_len(count)?;
            let run = Box::new(move |_: &dyn hcomm_sim::memory::Memory| {
                // SAFETY: the caller owes `count` bytes that can be written until the stream has come here.
                unsafe { host.mut_ptr().write_bytes(byte, count) };
                Ok(())
            });
            HostWork { text, reads, writes: reads, run }
        }
    };
    Ok(stream.host_work(work)?)
}
