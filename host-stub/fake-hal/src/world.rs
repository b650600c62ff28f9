//! The queues of the stand-in, and their registers.

use std::collections::{BTreeMap, VecDeque};
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A report: 32 bytes.
pub type Report = [u8; 32];

/// A queue.
#[derive(Debug)]
pub struct Queue {
    pub stream: u32,
    pub logic_cq: u32,
    pub base: u64,
    pub depth: u32,
    /// What the simulator calls its register block.
    pub regs: u64,
    pub is_paused: bool,
    /// Tail that the driver took last.
    pub tail: u32,
    /// Answered to the property that says that a task has failed, and then forgotten.
    pub cqe_status: u32,
}

/// All that the stand-in knows.
#[derive(Debug, Default)]
pub struct World {
    pub host_device: u32,
    pub local_device: u32,
    pub is_950: bool,
    pub registers: Registers,
    pub queues: BTreeMap<u32, Queue>,
    /// Reports by logic completion queue.
    pub reports: BTreeMap<u32, VecDeque<Report>>,
    /// What `halResourceIdRestore` answers.
    pub restore_code: i32,
    /// Calls of the driver: queries, tails, reports, restores.
    pub calls: [u64; 4],
}

static WORLD: Mutex<Option<World>> = Mutex::new(None);

/// Reads or changes the world; `None` before a test has made one.
pub fn world<T>(change: impl FnOnce(&mut World) -> T) -> Option<T> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(change)
}

/// Makes a new world.
pub fn begin(world: World) {
    *WORLD.lock().unwrap_or_else(PoisonError::into_inner) = Some(world);
}

type HeadFn = extern "C" fn(sq: u32, regs: u64, head: *mut u32) -> i32;
type RingFn = extern "C" fn(sq: u32, regs: u64, tail: u32) -> i32;

/// How registers are reached.
#[derive(Clone, Copy, Debug, Default)]
pub enum Registers {
    /// Not at all.
    #[default]
    None,
    /// By functions of this process: the kernels run in the simulator's.
    Functions { head: HeadFn, ring: RingFn },
    /// In memory, with the address of what the simulator calls 0x4000_0000.
    Memory { low: u64 },
}

/// Where the simulator's low memory starts, in its own count.
const LOW_PHYS: u64 = 0x4000_0000;
const HEAD_OFFSET: u64 = 8;

impl Registers {
    /// In the memory of the device that has `hbm`, an address of its HBM: both are mappings of one file.
    pub fn of_mapping(hbm: u64) -> Option<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let lines = || maps.lines().filter_map(Mapping::of);
        let file = lines().find(|mapping| mapping.start <= hbm && hbm < mapping.end)?;
        let low = lines().find(|mapping| mapping.offset == 0 && mapping.file == file.file)?;
        Some(Self::Memory { low: low.start })
    }

    /// Next entry that the device fetches.
    pub fn head(self, sq: u32, regs: u64) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Functions { head, .. } => {
                let mut value = 0;
                (head(sq, regs, &raw mut value) == 0).then_some(value)
            }
            Self::Memory { low } => {
                let word = with_exposed_provenance_mut::<u32>((low + regs - LOW_PHYS + HEAD_OFFSET) as usize);
                // SAFETY: an aligned word of the queue's register block, which stays mapped; the host alone writes it.
                Some(unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Acquire))
            }
        }
    }

    /// Rings.
    pub fn ring(self, sq: u32, regs: u64, tail: u32) -> bool {
        match self {
            Self::None => false,
            Self::Functions { ring, .. } => ring(sq, regs, tail) == 0,
            Self::Memory { low } => {
                let word = with_exposed_provenance_mut::<u64>((low + regs - LOW_PHYS) as usize);
                // SAFETY: an aligned word of the queue's register block, which stays mapped; the holder of the world's lock alone writes it.
                let word = unsafe { AtomicU64::from_ptr(word) };
                let count = (word.load(Ordering::Relaxed) >> 32).wrapping_add(1);
                word.store(count << 32 | u64::from(tail), Ordering::Release);
                true
            }
        }
    }
}

/// A line of /proc/self/maps.
struct Mapping<'l> {
    start: u64,
    end: u64,
    offset: u64,
    /// Device and inode.
    file: (&'l str, &'l str),
}

impl<'l> Mapping<'l> {
    fn of(line: &'l str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (range, _rights, offset, device, inode) =
            (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let mapping = Self { start: number(start)?, end: number(end)?, offset: number(offset)?, file: (device, inode) };
        (inode != "0").then_some(mapping)
    }
}
