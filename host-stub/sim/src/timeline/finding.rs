//! Marks of what the checks have found: the slices that a finding is about.

use std::sync::Arc;

use super::model::{About, Slice, SliceKind, Timeline, Value};
use crate::check::findings::Report;
use crate::check::init_report::Reader;
use crate::check::report::Maker;
use crate::event::TaskPlace;

/// Marks what a finding is about: both accesses of a race, the use of bytes that were never written, a task that does not wait for
/// the start and the wait that it should be behind, the kernel of a stray access. What has no slice any more is not marked; the text is
/// always kept.
pub fn mark(timeline: &mut Timeline, report: &Report) {
    let text: Arc<str> = report.to_string().into();
    match report {
        Report::Race(race) => {
            for access in [&race.first, &race.second] {
                mark_maker(timeline, &access.maker, &text);
            }
        }
        Report::Uninitialised(read) => match read.reader {
            Reader::Task { task: TaskPlace { sq_id, slot, task_id, .. }, .. } => {
                let place = [("task", Value::Hex(task_id.into())), ("slot", Value::Number(slot.into()))];
                mark_last(timeline, &text, |slice| {
                    let is_of_queue = matches!(slice.about, About::Task { sq_id: of, .. } if of == sq_id);
                    is_of_queue && place.iter().all(|detail| slice.details.contains(detail))
                });
            }
            Reader::StreamTransfer { stream_id } => mark_about(timeline, &text, About::Stream(stream_id)),
            Reader::Own { launch, .. } => mark_about(timeline, &text, About::Launch(launch)),
            Reader::HostCopy { host } => mark_about(timeline, &text, About::Host(host.0)),
        },
        Report::Early(early) => {
            mark_maker(timeline, &early.task.maker, &text);
            let notify = ("notify", Value::Number(early.notify.into()));
            mark_last(timeline, &text, |slice| {
                let is_wait = slice.kind == SliceKind::Wait && matches!(slice.about, About::Task { .. });
                is_wait && slice.details.contains(&notify)
            });
        }
        Report::Stray(access) => mark_about(timeline, &text, About::Launch(access.launch)),
    }
    timeline.errors.push((timeline.slices.iter().map(|slice| slice.end_ns).max().unwrap_or(0), text));
}

/// Marks an access, if it was made by this device.
fn mark_maker(timeline: &mut Timeline, maker: &Maker, text: &Arc<str>) {
    if maker.device() != timeline.device {
        return;
    }
    let about = match *maker {
        Maker::Task { sq_id, number, .. } => About::Task { sq_id, number },
        Maker::StreamTransfer { stream_id, .. } => About::Stream(stream_id),
        // Not a slice of its own: it is somewhere in its kernel.
        Maker::Own { launch, .. } => About::Launch(launch),
        Maker::HostCopy { host, .. } | Maker::Free { host, .. } => About::Host(host),
    };
    mark_about(timeline, text, about);
}

fn mark_about(timeline: &mut Timeline, text: &Arc<str>, about: About) {
    mark_last(timeline, text, |slice| slice.about == about && moves_bytes(slice, about));
}

/// Marks the last of the slices that are meant: a queue that is acquired again restarts its count.
fn mark_last(timeline: &mut Timeline, text: &Arc<str>, is_it: impl Fn(&Slice) -> bool) {
    let Some(begin) = timeline.slices.iter().rfind(|slice| is_it(slice)).map(|slice| slice.start_ns) else { return };
    // A task has a slice on its queue and one on its engine.
    for slice in timeline.slices.iter_mut().filter(|slice| slice.start_ns == begin && is_it(slice)) {
        slice.finding.get_or_insert_with(|| Arc::clone(text));
    }
}

/// Whether a slice may be an access to device memory.
fn moves_bytes(slice: &Slice, about: About) -> bool {
    match about {
        About::Task { .. } | About::Launch(_) | About::Nothing => true,
        About::Stream(_) | About::Host(_) => {
            &*slice.name == "free" || slice.details.iter().any(|(name, _)| matches!(*name, "source" | "destination"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::builder::Builder;
    use super::super::model::{Clock, TrackKind};
    use super::*;
    use crate::alloc::AccessError;
    use crate::check::own_report::StrayAccess;
    use crate::check::report::CallPlace;
    use crate::event::{Event, Observer, Origin, Range, SiteId, What};

    #[test]
    fn stray_access_is_marked_on_the_kernel_that_has_made_it_alone() {
        let mut builder = Builder::new(0, Clock::Real);
        for launch in 1..=3 {
            let origin = Origin { launch, core: 0 };
            let started = What::LaunchStarted { origin, stream_id: 1, kernel: "k".into() };
            for what in [started, What::LaunchReturned { origin, code: 0 }] {
                builder.on(&Event { at: Duration::from_micros(launch), device: 0, what });
            }
        }
        let mut timeline = builder.timeline(&|_| None);
        let report = Report::from(StrayAccess {
            launch: 2,
            kernel: Some("k".into()),
            writes: true,
            place: CallPlace::of_site(SiteId::UNKNOWN),
            range: Range { addr: 1, len: 2 },
            error: AccessError::FirstPage { addr: 1 },
            before: None,
            count: 1,
        });
        mark(&mut timeline, &report);
        let on_core = |slice: &&Slice| timeline.tracks[slice.track as usize].kind == TrackKind::Core;
        let found: Vec<_> = timeline.slices.iter().filter(on_core).map(|slice| slice.finding.is_some()).collect();
        assert_eq!(found, [false, true, false]);
        assert_eq!(timeline.errors.len(), 1);
    }
}
