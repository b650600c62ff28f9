//! What the release image consists of: how its copy stores a descriptor and rings, and which names it has.

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// Function of the image: its instructions.
fn code(elf: &object::File, name: &str) -> Vec<u32> {
    code_of(elf, &function(elf, name))
}

/// The only function of a name.
fn function<'data>(elf: &'data object::File, name: &str) -> object::Symbol<'data, 'data> {
    let symbols = || elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.name() == Ok(name));
    assert_eq!(symbols().count(), 1, "functions named {name}");
    symbols().next().unwrap()
}

fn code_of(elf: &object::File, symbol: &object::Symbol) -> Vec<u32> {
    let text = elf.section_by_name(".text").unwrap();
    let bytes = text.data_range(symbol.address(), symbol.size()).unwrap().unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn with_image(check: impl FnOnce(&object::File)) {
    let bytes = std::fs::read(host_stub::loader::find().unwrap()).unwrap();
    check(&object::File::parse(&*bytes).unwrap());
}

/// Base register, offset and number of words of a store of aligned words of 64 bits, each of which is one access: `str xT, [xN,
/// #offset]` or `stp xT, xU, [xN, #offset]`. Source: Arm Architecture Reference Manual, B2.2.1 and C6.2, STR (immediate), unsigned
/// offset; STP, signed offset.
fn store64(word: u32) -> Option<(u32, u32, u32)> {
    let base = word >> 5 & 31;
    match word & 0xffc0_0000 {
        0xf900_0000 => Some((base, (word >> 10 & 0xfff) * 8, 1)),
        // Bit 21 is the sign: nothing is stored below the base.
        0xa900_0000 if word & 1 << 21 == 0 => Some((base, (word >> 15 & 0x3f) * 8, 2)),
        _ => None,
    }
}

/// Any load or store: bit 27 set, bit 25 clear.
fn is_memory_access(word: u32) -> bool {
    word & 0x0a00_0000 == 0x0800_0000
}

fn is_dsb(word: u32) -> bool {
    word & 0xffff_f0ff == 0xd503_309f
}

/// Where the stores of a descriptor begin and end: eight words in order, with no other access to memory between them.
fn slot_stores(code: &[u32]) -> Vec<std::ops::Range<usize>> {
    let slot_at = |start: usize| {
        let (base, 0, _) = store64(code[start])? else { return None };
        let mut words = 0;
        for (at, word) in code.iter().enumerate().skip(start).filter(|(_, word)| is_memory_access(**word)) {
            let (other, offset, count) = store64(*word)?;
            if (other, offset) != (base, words * 8) {
                return None;
            }
            words += count;
            if words == 8 {
                return Some(start..at + 1);
            }
        }
        None
    };
    (0..code.len()).filter_map(slot_at).collect()
}

#[test]
fn stores_of_a_descriptor_are_told_from_others() {
    let (str, stp) = (|word: u32| 0xf900_0020 | word << 10, |word: u32| 0xa900_0820 | word << 15);
    let pairs = [stp(0), 0xd503_201f, stp(2), stp(4), stp(6)];
    let words = [0, 1, 2, 3, 4, 5, 6, 7].map(str);
    let ends = |code: &[u32]| slot_stores(code).iter().map(|slot| (slot.start, slot.end)).collect::<Vec<_>>();
    assert_eq!((ends(&pairs), ends(&words)), (vec![(0, 5)], vec![(0, 8)]));
    // Seven words, one twice, out of order, another base, 32 bits, 128 bits, a load between them.
    let q = 0x3d80_0020;
    let others: [&[u32]; 7] = [
        &words[..7],
        &[stp(0), stp(2), stp(2), stp(4), stp(6)],
        &[stp(0), stp(4), stp(2), stp(6)],
        &[stp(0), stp(2), stp(4), stp(6) ^ 1 << 5],
        &[0xb900_0020, str(1), stp(2), stp(4), stp(6)],
        &[q, q + (1 << 10), q + (2 << 10), q + (3 << 10)],
        &[stp(0), stp(2), 0xf940_0020, stp(4), stp(6)],
    ];
    for code in others {
        assert!(slot_stores(code).is_empty(), "{code:x?}");
    }
}

/// Case 64.
#[test]
fn descriptor_is_eight_aligned_stores_of_64_bits_in_order() {
    with_image(|elf| {
        let code = code(elf, "HcommLocalCopyOnThread");
        let slots = slot_stores(&code);
        assert!(!slots.is_empty(), "places that store a descriptor");
        // Vector registers, or pairs of them, are 128 bits and more; the path has none.
        let is_vector = |word: &&u32| is_memory_access(**word) && **word & 1 << 26 != 0;
        assert_eq!(code.iter().filter(is_vector).count(), 0, "accesses by vector registers");
    });
}

/// Case 31.
#[test]
fn barrier_lies_between_the_descriptor_and_the_doorbell() {
    with_image(|elf| {
        let code = code(elf, "HcommLocalCopyOnThread");
        let slots = slot_stores(&code);
        let barriers: Vec<_> = (0..code.len()).filter(|at| is_dsb(code[*at])).collect();
        let [barrier] = barriers[..] else { panic!("{} barriers", barriers.len()) };
        let slot = slots.iter().rfind(|slot| slot.end <= barrier).expect("a descriptor is stored before the barrier");
        let stores = |range: std::ops::Range<usize>| code[range].iter().filter_map(|word| store64(*word)).count();
        assert_eq!(stores(slot.end..barrier), 0, "no doorbell between the descriptor and the barrier");
        let doorbell = code[barrier..].iter().find_map(|word| store64(*word));
        assert!(matches!(doorbell, Some((_, 0, 1))), "the doorbell follows the barrier: {doorbell:?}");
        // The place that stages rings nothing: no other store has the doorbell's form.
        let at = barrier + code[barrier..].iter().position(|word| store64(*word).is_some()).unwrap();
        let others = (0..code.len()).filter(|other| *other != at && !slots.iter().any(|slot| slot.contains(other)));
        let others = others.filter(|other| matches!(store64(code[*other]), Some((base, 0, 1)) if base != 31));
        assert_eq!(others.count(), 0, "stores that could be a doorbell");
    });
}

/// Where the branch `word` at instruction `at` goes to, in instructions: `None` if it is no branch, `Some(None)` if a register
/// says where. Source: Arm Architecture Reference Manual, C4.1, branches.
fn branch(word: u32, at: usize) -> Option<Option<i64>> {
    let to = |low: u32, bits: u32| Some(Some(at as i64 + i64::from((word << (32 - low - bits)) as i32 >> (32 - bits))));
    match word {
        // B, BL
        _ if word & 0x7c00_0000 == 0x1400_0000 => to(0, 26),
        // B.cond, BC.cond, CBZ, CBNZ
        _ if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => to(5, 19),
        // TBZ, TBNZ
        _ if word & 0x7e00_0000 == 0x3600_0000 => to(5, 14),
        // RET; BR, BLR and whatever else takes a register
        0xd65f_03c0 => None,
        _ if word & 0xfe00_0000 == 0xd600_0000 => Some(None),
        _ => None,
    }
}

/// Branches of a function that leave it or go to its start: calls, tail calls, calls of itself.
fn calls(code: &[u32]) -> Vec<usize> {
    let stays = |to: Option<i64>| to.is_some_and(|to| to > 0 && to < code.len() as i64);
    (0..code.len()).filter(|&at| branch(code[at], at).is_some_and(|to| !stays(to))).collect()
}

#[test]
fn branches_are_told_from_other_instructions() {
    // Each in a function of four instructions, as the second one.
    let of = |word: u32| calls(&[0xd503_201f, word, 0xd503_201f, 0xd65f_03c0]) == [1];
    for (inside, outside) in [
        (0x1400_0001, 0x17ff_ffff), // b
        (0x1400_0002, 0x1400_0003), // b
        (0x9400_0001, 0x97ff_ff00), // bl
        (0x5400_0020, 0x54ff_ffe1), // b.eq, b.ne
        (0xb400_0040, 0xb5ff_ffc0), // cbz, cbnz
        (0x3600_0020, 0x3707_ffe0), // tbz, tbnz
        (0xd65f_03c0, 0xd61f_0200), // ret, br x16
        (0xd503_201f, 0xd63f_0100), // nop, blr x8
    ] {
        assert_eq!((of(inside), of(outside)), (false, true), "{inside:#x} {outside:#x}");
    }
}

/// Instructions of a function whose name may be no more than a branch to them.
fn body(elf: &object::File, name: &str) -> Vec<u32> {
    let symbol = function(elf, name);
    let code = code_of(elf, &symbol);
    let [word] = code[..] else { return code };
    let Some(Some(to)) = branch(word, 0) else { return code };
    let address = symbol.address().wrapping_add_signed(4 * to);
    let mut there = elf.symbols().filter(|other| other.kind() == SymbolKind::Text && other.address() == address);
    let target = there.next().expect("a function where the branch goes");
    assert_ne!(target.address(), symbol.address(), "{name} branches to itself");
    code_of(elf, &target)
}

/// Case 65.
#[test]
fn memcpy_and_its_kin_are_there_once_and_call_nothing() {
    with_image(|elf| {
        let text = elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        let defined: Vec<_> = text.filter_map(|symbol| symbol.name().ok()).collect();
        for name in ["memcpy", "memset", "memmove", "memcmp", "bcmp"] {
            // What is not called is not linked; the first two always are.
            if defined.contains(&name) || ["memcpy", "memset"].contains(&name) {
                assert_eq!(calls(&body(elf, name)), [] as [usize; 0], "{name}");
            }
        }
        assert!(!calls(&code(elf, "HcommLocalCopyOnThread")).is_empty(), "its way to a refusal is a call");
    });
}

/// Case 66.
#[test]
fn image_exports_only_promised_names_and_cannot_unwind() {
    let promised = include_str!("../docs/abi.txt");
    with_image(|elf| {
        let names: Vec<_> = elf.symbols().filter_map(|symbol| symbol.name().ok()).collect();
        let exported: Vec<_> = names.iter().filter(|name| name.starts_with("Hcomm")).collect();
        assert!(exported.contains(&&"HcommLocalCopyOnThread"));
        for name in exported {
            assert!(promised.lines().any(|line| line == *name), "{name} is not in docs/abi.txt");
        }
        assert!(!names.iter().any(|name| name.contains("_Unwind") || name.contains("eh_personality")));
        assert!(elf.section_by_name(".eh_frame").is_none());
        let undefined: Vec<_> =
            elf.symbols().filter(|symbol| symbol.is_undefined()).filter_map(|s| s.name().ok()).collect();
        assert_eq!(undefined.iter().filter(|name| !name.is_empty()).count(), 0, "{undefined:?}");
    });
}
