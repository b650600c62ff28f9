//! A stand-in for the runtime of a card, `libascendcl.so` and `libruntime.so`, over the simulated device, for tests of what runs on a card.
//!
//! It has the functions that the backend `card` of the host API calls, and refuses what the runtime refuses: calls of a thread that has
//! chosen no device, handles that it has not given, tasks of the host on a queue of the AI CPU. Kernels are loaded as the loader of a
//! card does, from the package that a description names; they reach their queues by the stand-in of the driver's library.
//!
//! - `codes`: results.
//! - `world`: the device, and the handles that were given.
//! - `loader`: descriptions, packages and libraries. `driver`: what the stand-in of the driver is told.
//! - `device`, `streams`, `launch`: the functions of the runtime.
//!
//! Not modelled: more than one device, time, and who may use which queue.

mod codes;
mod device;
mod driver;
mod launch;
mod loader;
mod streams;
mod world;
