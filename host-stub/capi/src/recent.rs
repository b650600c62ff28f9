//! Messages of failed calls, for `aclrtGetRecentErrMsg`.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Mutex;

use super::this_thread::thread_number;

/// Messages that are kept for one thread until it reads them.
const RECENT_MAX: usize = 8;

/// Messages of a thread.
#[derive(Default)]
struct Recent {
    /// The first ones since it last read them. Later errors are often consequences of the first.
    messages: Vec<String>,
    /// The text of the last read, valid until the next one.
    given: CString,
}

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

/// Messages of threads that end, by thread: those of calls in exit handlers and in destructors of static objects and of
/// thread-specific data, which run when the thread-local values are gone.
static LATE: Mutex<BTreeMap<u64, Recent>> = Mutex::new(BTreeMap::new());

/// Uses the messages of the calling thread; `None`: they can't be reached.
fn with_recent<R>(mut use_it: impl FnMut(&mut Recent) -> R) -> Option<R> {
    RECENT.try_with(|recent| use_it(&mut recent.borrow_mut())).ok().or_else(|| {
        // Only tried: in a forked child a thread of the parent may hold the lock, which is then never released.
        LATE.try_lock().ok().map(|mut late| use_it(late.entry(thread_number()).or_default()))
    })
}

/// Keeps the message of a call of this thread.
pub fn keep(message: &str) {
    // A message that can't be kept is in the log.
    let _ = with_recent(|recent| {
        if recent.messages.len() < RECENT_MAX {
            recent.messages.push(message.to_owned());
        }
    });
}

/// The messages of the calling thread since its last call, oldest first, a line each; null if there are none.
pub fn take() -> *const c_char {
    let take = |recent: &mut Recent| {
        if recent.messages.is_empty() {
            return ptr::null();
        }
        let text = std::mem::take(&mut recent.messages).join("\n").replace('\0', " ");
        recent.given = CString::new(text).unwrap_or_default();
        recent.given.as_ptr()
    };
    with_recent(take).unwrap_or(ptr::null())
}
