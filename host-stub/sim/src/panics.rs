//! The text of a panic.

use std::any::Any;

/// What a panic has said.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "payload without text",
    }
}
