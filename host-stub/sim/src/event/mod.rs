//! The event stream of a device: what happened, when, and by whom. Everything that looks back at a run reads this.
//!
//! | file | what it holds |
//! |---|---|
//! | [`what`] | [`Event`] and [`What`], the kinds of events |
//! | [`feed`] | [`Feed`]: sources send events to it, and it hands them to the observers |
//! | [`observer`] | [`Observer`], which every reader implements |
//! | [`recorder`] | an observer that keeps all events: the [`Trace`] of a device |
//! | [`owner`] | who queued the task in each slot of a ring |
//! | [`origin`] | [`TaskOrigin`]: the same as errors of tasks name it, with the thread and the line of the call |
//! | [`site`] | [`Sites`]: places in programs that events name, as return addresses
//! | [`chooser`] | [`Chooser`]: who goes on next in deterministic mode, and in an exploration |
//! | [`access`] | [`Access`]: what a step uses, and whether the order of two steps matters |
//!
//! Order that observers may use: the events of one source (a host thread, a launch, the scheduler) come in the order in
//! which the source sent them; a call comes before its tasks begin; what a host thread submits comes before it starts; what
//! a waiting call learned comes before its return. They must use no other order.

pub mod access;
pub mod chooser;
pub mod feed;
pub mod observer;
pub mod origin;
pub mod owner;
pub mod recorder;
pub mod site;
mod text;
pub mod what;

pub use access::{Access, AccessKind, Dependence, Object, dependence};
pub use chooser::{Actor, Chooser, Seed};
pub use feed::{Bus, Feed};
pub use observer::Observer;
pub use origin::TaskOrigin;
pub use recorder::Trace;
pub use site::{Place, Places, Program, Site, SiteId, Sites};
pub use what::{
    AcquiredThread, Caller, ChannelName, Event, HostThread, NotifyUser, Origin, Queuer, Range, RecordId, TaskPlace,
    What, Who,
};
