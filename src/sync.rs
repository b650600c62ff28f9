//! Lock, atomic word and fence: those of the device, or loom's when a test explores every order (`--cfg loom`).

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, fence};
/// A lock between the cores of a device.
#[cfg(not(loom))]
pub(crate) type Mutex<T> = spin::mutex::Mutex<T, LetHolderRun>;
#[cfg(not(loom))]
pub(crate) type MutexGuard<'m, T> = spin::mutex::MutexGuard<'m, T, LetHolderRun>;

/// Between two tries of a lock the platform gets a chance to run its holder: a platform that lets one core run at a time
/// would otherwise wait without end.
#[cfg(not(loom))]
pub(crate) struct LetHolderRun;

#[cfg(not(loom))]
impl spin::RelaxStrategy for LetHolderRun {
    #[inline]
    fn relax() {
        core::hint::spin_loop();
        crate::port::hooks::relax();
    }
}

#[cfg(loom)]
pub(crate) use loom::sync::MutexGuard;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, fence};

/// Loom's lock with the face of `spin::Mutex`.
#[cfg(loom)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no holder panics")
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// Locks `mutex` where it need not be quick: out of line.
#[cold]
#[inline(never)]
pub(crate) fn lock_cold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// A function that is `const` but for loom, whose objects can't be made at compile time.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty)?) -> Self $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $name($($arg: $type)?) -> Self $body

        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $name($($arg: $type)?) -> Self $body
    };
}
pub(crate) use const_fn;
