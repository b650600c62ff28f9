//! What the release image consists of: how its copy stores a descriptor and rings, and which names it has.

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// Function of the image: its instructions.
fn code(elf: &object::File, name: &str) -> Vec<u32> {
    let symbols = || elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.name() == Ok(name));
    assert_eq!(symbols().count(), 1, "functions named {name}");
    let symbol = symbols().next().unwrap();
    let text = elf.section_by_name(".text").unwrap();
    let bytes = text.data_range(symbol.address(), symbol.size()).unwrap().unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn with_image(check: impl FnOnce(&object::File)) {
    let bytes = std::fs::read(host_stub::loader::find().unwrap()).unwrap();
    check(&object::File::parse(&*bytes).unwrap());
}

/// Base register and offset of a store of 64 bits, `str xT, [xN, #offset]`. Source: Arm Architecture Reference Manual,
/// C6.2, STR (immediate), unsigned offset.
fn store64(word: u32) -> Option<(u32, u32)> {
    (word & 0xffc0_0000 == 0xf900_0000).then_some((word >> 5 & 31, (word >> 10 & 0xfff) * 8))
}

/// Any load or store that is not a 64-bit store with an offset: bit 27 set, bit 25 clear.
fn is_memory_access(word: u32) -> bool {
    word & 0x0a00_0000 == 0x0800_0000
}

fn is_dsb(word: u32) -> bool {
    word & 0xffff_f0ff == 0xd503_309f
}

/// Where the eight stores of a descriptor begin.
fn slot_stores(code: &[u32]) -> Vec<usize> {
    let is_slot = |window: &[u32]| {
        let Some((base, 0)) = store64(window[0]) else { return false };
        let stores: Vec<_> =
            window.iter().take_while(|word| **word != 0xd65f_03c0).filter(|word| is_memory_access(**word)).collect();
        stores.len() >= 8 && stores[..8].iter().zip(0..).all(|(word, index)| store64(**word) == Some((base, index * 8)))
    };
    (0..code.len()).filter(|start| is_slot(&code[*start..(*start + 24).min(code.len())])).collect()
}

#[test]
fn case_64_descriptor_is_eight_aligned_stores_of_64_bits_in_order() {
    with_image(|elf| {
        let code = code(elf, "HcommLocalCopyOnThread");
        assert_eq!(slot_stores(&code).len(), 1, "places that store a descriptor");
    });
}

#[test]
fn case_31_barrier_lies_between_the_descriptor_and_the_doorbell() {
    with_image(|elf| {
        let code = code(elf, "HcommLocalCopyOnThread");
        let slot = slot_stores(&code)[0];
        let barrier = slot + code[slot..].iter().position(|word| is_dsb(*word)).expect("a barrier after the stores");
        let between = code[slot..barrier].iter().filter(|word| store64(**word).is_some()).count();
        assert_eq!(between, 8, "no doorbell before the barrier");
        let doorbell = code[barrier..].iter().find_map(|word| store64(*word));
        assert!(matches!(doorbell, Some((_, 0))), "the doorbell follows the barrier: {doorbell:?}");
    });
}

#[test]
fn case_65_memcpy_is_there_once_and_calls_nothing() {
    with_image(|elf| {
        for name in ["memcpy", "memset"] {
            let calls = code(elf, name).into_iter().filter(|word| word & 0xfc00_0000 == 0x9400_0000).count();
            assert_eq!(calls, 0, "{name}");
        }
    });
}

#[test]
fn case_66_image_exports_only_promised_names_and_cannot_unwind() {
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
