//! What a picture of a run shows.

use std::sync::Arc;

use crate::event::SiteId;

/// Index of a track in [`Timeline::tracks`].
pub type TrackId = u32;
/// Index of a slice in [`Timeline::slices`].
pub type SliceId = u32;

/// What the slices of a track are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackKind {
    /// A thread of the host program.
    Host,
    /// A stream.
    Stream,
    /// A core of the AI CPU.
    Core,
    /// A hardware queue.
    Queue,
    /// A lane of the SDMA engines: as many as there are transfers at the same time.
    Engine,
}

impl TrackKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Stream => "stream",
            Self::Core => "core",
            Self::Queue => "queue",
            Self::Engine => "engine",
        }
    }
}

/// A row of the picture. Its slices do not overlap, but a slice of a core's calls lies inside the one of its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// What it is about.
    pub kind: TrackKind,
    /// Name, in the words that the user has for it.
    pub name: String,
    /// Sorts the tracks of one kind.
    pub order: u64,
}

/// What happened during a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceKind {
    /// A call of the host API, or of the device library by a kernel.
    Call,
    /// An operation of a stream that is a launch.
    Launch,
    /// A kernel on its core.
    Kernel,
    /// A task of a queue, or an operation of a stream.
    Task,
    /// A wait: for a notify, or of the host for a stream.
    Wait,
}

impl SliceKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Launch => "launch",
            Self::Kernel => "kernel",
            Self::Task => "task",
            Self::Wait => "wait",
        }
    }
}

/// The value of a detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A number in hexadecimal.
    Hex(u64),
    /// Text.
    Text(Arc<str>),
    /// A name of the library.
    Name(&'static str),
    /// A place in the source of the program.
    Source {
        /// File.
        file: &'static str,
        /// Line, from 1.
        line: u32,
    },
    /// The place of a call, before its text is known.
    Site(SiteId),
    /// Bytes of device memory.
    Memory {
        /// Number of the allocation in the order of allocations, from 1; `None`: none that is known.
        allocation: Option<u64>,
        /// First byte, counted from the start of the allocation; without one the address.
        offset: u64,
        /// Bytes.
        len: u64,
    },
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Hex(number) => write!(f, "{number:#x}"),
            Self::Text(text) => f.write_str(text),
            Self::Name(name) => f.write_str(name),
            Self::Site(_) => f.write_str("an unknown place"),
            Self::Source { file, line } => write!(f, "{file}:{line}"),
            Self::Memory { allocation: Some(number), offset, len } => {
                write!(f, "allocation {number} + {offset}, {len} bytes")
            }
            Self::Memory { allocation: None, offset, len } => write!(f, "{offset:#x}, {len} bytes"),
        }
    }
}

/// What the times of a timeline are. None is that of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Time of this computer.
    #[default]
    Real,
    /// Turns of deterministic mode.
    Virtual,
    /// Deterministic mode with a cost model.
    Model,
}

impl Clock {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
            Self::Model => "model",
        }
    }
}

/// What a finding can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A task.
    Task {
        /// Queue.
        sq_id: u32,
        /// Which task of the queue, counted from 1 since its thread was acquired.
        number: u64,
    },
    /// An operation of a stream.
    Stream(u32),
    /// The kernel of a launch.
    Launch(u64),
    /// A call by a thread of the host.
    Host(u64),
    /// Nothing that a finding names.
    Nothing,
}

/// Something that took a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Row.
    pub track: TrackId,
    /// Begin, in nanoseconds since the device was opened.
    pub start_ns: u64,
    /// End. The same for what has no duration.
    pub end_ns: u64,
    /// Kind.
    pub kind: SliceKind,
    /// Name, such as that of the kernel, or of the kind of task.
    pub name: Arc<str>,
    /// What it is about.
    pub about: About,
    /// What is shown when it is chosen.
    pub details: Vec<(&'static str, Value)>,
    /// What a check or the device has found about it. It is drawn in red.
    pub finding: Option<Arc<str>>,
}

/// Why one slice comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowKind {
    /// From the call of the host to the kernel.
    Launch,
    /// From a doorbell to the first task that it has started.
    Doorbell,
    /// From a record of a notify to the wait that took it.
    Notify,
    /// From the last operation of a stream to the call that has waited for it.
    Synchronize,
}

impl ArrowKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Doorbell => "doorbell",
            Self::Notify => "notify",
            Self::Synchronize => "synchronize",
        }
    }
}

/// One slice comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Why.
    pub kind: ArrowKind,
    /// Slice that it starts at.
    pub from: SliceId,
    /// Time that it starts at.
    pub from_ns: u64,
    /// Slice that it ends at.
    pub to: SliceId,
    /// Time that it ends at.
    pub to_ns: u64,
}

/// What one device did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Slot of the device in the process.
    pub device: usize,
    /// What the times are.
    pub clock: Clock,
    /// Rows.
    pub tracks: Vec<Track>,
    /// Slices, in the order in which they began.
    pub slices: Vec<Slice>,
    /// Arrows.
    pub arrows: Vec<Arrow>,
    /// Errors of the device and findings that belong to no slice, with their times.
    pub errors: Vec<(u64, Arc<str>)>,
    /// Slices for which there was no room.
    pub lost: u64,
}

impl Timeline {
    /// Moves all by `ns` to later.
    pub fn shift(&mut self, ns: u64) {
        for slice in &mut self.slices {
            slice.start_ns += ns;
            slice.end_ns += ns;
        }
        for arrow in &mut self.arrows {
            arrow.from_ns += ns;
            arrow.to_ns += ns;
        }
        self.errors.iter_mut().for_each(|(at, _)| *at += ns);
    }

    /// Indices of the tracks, in the order in which they are shown.
    pub fn order(&self) -> Vec<TrackId> {
        let mut order: Vec<TrackId> = (0..self.tracks.len() as TrackId).collect();
        order.sort_by_key(|id| {
            let track = &self.tracks[*id as usize];
            (track.kind, track.order)
        });
        order
    }
}
