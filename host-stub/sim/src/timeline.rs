//! Timeline of a run: tracks, slices, arrows and marks, made from the event stream.
//!
//! | part | what it holds |
//! |---|---|
//! | [`model`] | [`Timeline`](model::Timeline): what a picture of a run shows |
//! | [`builder`] | the [`Observer`](crate::event::Observer) that makes one |
//! | `tracks` | which tracks there are, and their names |
//! | `memory` | live allocations, so that an address is named as allocation and offset |
//! | [`finding`] | marks of what the checks have found |

pub mod builder;
pub mod finding;
mod memory;
pub mod model;
mod tracks;
