//! Runs one program under many schedules: who goes on is decided step by step, and a schedule can be repeated.
//!
//! | file | what it holds |
//! |---|---|
//! | [`engine`] | [`Engine`]: the turns of one run, for all its devices |
//! | `device_turn` | [`DeviceTurn`]: the same, as one device asks for them |
//! | `seat` | a thread that takes turns, and what it waits for |
//! | [`hosts`] | host threads that take part |
//! | [`steps`] | [`Steps`](steps::Steps): a device without a thread, whose steps the engine makes |
//! | [`random`], [`pct`], [`exhaustive`], [`decisions`] | the strategies: [`Chooser`](crate::event::Chooser)s |
//! | [`token`] | what names a schedule |

pub mod decisions;
mod device_turn;
pub mod engine;
pub mod exhaustive;
pub mod hosts;
pub mod pct;
pub mod random;
mod seat;
pub mod steps;
mod thread_state;
pub mod token;

pub use device_turn::DeviceTurn;
pub use engine::{Engine, Limits, Outcome};
