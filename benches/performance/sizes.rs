//! Sizes of the release image, and of the state that a thread costs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hcomm_aicpu::THREAD_STATE;
use hcomm_aicpu::spec::thread::DESCRIPTOR_SIZE;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

use crate::row::Row;

/// Where the measured path begins.
const ENTRY: &str = "HcommLocalCopyOnThread";

/// Functions that can be reached from one, by direct calls and branches.
#[derive(Debug, Default)]
pub struct Reach {
    /// Bytes of each function, by name.
    pub functions: BTreeMap<String, u64>,
    /// Functions that call through a pointer: what they reach is not known.
    pub indirect: BTreeSet<String>,
    /// Which function was the first to reach another.
    pub caller: BTreeMap<String, String>,
}

impl Reach {
    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.functions.values().sum()
    }
}

/// Sizes of the image at `path`.
pub fn measure(path: &Path) -> Vec<Row> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let elf = object::File::parse(&*bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reach = reach(&elf, ENTRY);
    // Seen when a limit is exceeded, and in the output of `make bench`.
    for (name, bytes) in &reach.functions {
        println!("  {bytes:>6} bytes  {:#}{}", rustc_demangle::demangle(name), by(&reach, name));
    }
    vec![
        Row::new("text_reachable", reach.bytes() as f64),
        Row::new("text_pointer_calls", reach.indirect.len() as f64),
        Row::new("image_size", loaded(&elf) as f64),
        Row::new("thread_state", (THREAD_STATE as u64 + DESCRIPTOR_SIZE) as f64),
    ]
}

/// Who calls a function, for the listing.
fn by(reach: &Reach, name: &str) -> String {
    let caller = reach.caller.get(name).map(|caller| format!(" <- {:#}", rustc_demangle::demangle(caller)));
    let pointer = if reach.indirect.contains(name) { ", calls through a pointer" } else { "" };
    caller.unwrap_or_default() + pointer
}

/// Bytes that are loaded: code, constants, initial data, the table of kernels. Log strings are not loaded, and what is
/// zero at first has no bytes.
fn loaded(elf: &object::File) -> u64 {
    let in_memory = |flags| matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & elf::SHF_ALLOC.0 != 0);
    let sections = elf.sections().filter(|section| in_memory(section.flags()));
    sections
        .filter(|section| section.name() != Ok(".defmt"))
        .map(|section| section.file_range().map_or(0, |(_, size)| size))
        .sum()
}

/// Whole functions are counted, also the parts of them that a jump table reaches.
pub fn reach(elf: &object::File, entry: &str) -> Reach {
    let text = elf.section_by_name(".text").expect("an image has code");
    let code = text.data().expect("code is in the file");
    let mut functions: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for symbol in elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() != 0) {
        functions.insert(symbol.address(), (symbol.size(), symbol.name().expect("a name in UTF-8")));
    }
    let start = functions.iter().find(|(_, (_, name))| *name == entry).map(|(start, _)| *start);
    let mut open = vec![start.unwrap_or_else(|| panic!("no function {entry} in the image"))];
    let mut seen = BTreeSet::new();
    let mut found = Reach::default();
    while let Some(start) = open.pop() {
        if !seen.insert(start) {
            continue;
        }
        let (size, name) = functions[&start];
        found.functions.insert(name.to_owned(), size);
        let offset = (start - text.address()) as usize;
        for (index, word) in code[offset..][..size as usize].chunks_exact(4).enumerate() {
            let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
            let at = start + 4 * index as u64;
            match branch(word) {
                Branch::None => {}
                Branch::ThroughPointer => drop(found.indirect.insert(name.to_owned())),
                Branch::By(distance) => {
                    let to = at.wrapping_add_signed(distance);
                    let (&owner, &(owner_size, _)) =
                        functions.range(..=to).next_back().expect("a branch to a function");
                    assert!(to < owner + owner_size, "{name} branches to {to:#x}, which is in no function");
                    if owner != start && !seen.contains(&owner) {
                        let callee = functions[&owner].1.to_owned();
                        found.caller.entry(callee).or_insert_with(|| name.to_owned());
                    }
                    open.push(owner);
                }
            }
        }
    }
    found
}

enum Branch {
    None,
    By(i64),
    ThroughPointer,
}

/// Source: Arm Architecture Reference Manual, C4.1.86, branches.
fn branch(word: u32) -> Branch {
    let signed = |low: u32, bits: u32| i64::from((word >> low << (32 - bits)) as i32 >> (32 - bits)) * 4;
    match word {
        // B, BL
        _ if word & 0x7c00_0000 == 0x1400_0000 => Branch::By(signed(0, 26)),
        // B.cond, CBZ, CBNZ
        _ if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => Branch::By(signed(5, 19)),
        // TBZ, TBNZ
        _ if word & 0x7e00_0000 == 0x3600_0000 => Branch::By(signed(5, 14)),
        // BLR. BR is a jump table, which stays in its function.
        _ if word & 0xffff_fc1f == 0xd63f_0000 => Branch::ThroughPointer,
        _ => Branch::None,
    }
}
