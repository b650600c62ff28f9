use super::super::every_bit::is_among;
use super::*;

/// Recorded entries: a write in the middle of a ring, a write reduce (fp32, sum), a read in a batch, records of index 0, and
/// the two blocks of a write with notify.
const WRITE: &str = "00003e30000300005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca0000000000100080d11200000010000034120000\
                     000000c0c0120000";
const WRITE_REDUCE: &str = "0000be30000300005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca00a7000000100080d1120000001000003412\
                            0000000000c0c0120000";
const BATCH_WRITE: &str = "00001930000300005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca0000000000100080d112000000100000341200\
                           00000000c0c0120000";
const BATCH_READ: &str = "00001930000600005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca0000000000100080d1120000001000003412000\
                          0000000c0c0120000";
const RECORD: &str = "00007e30000300015634120177000000afaeadacabaaa9a8a7a6a5a4a3a2a1a0990000000000000000f401000300000001000000000000000\
                      000000000000000";
const WITH_NOTIFY: &str = "00003e30000500005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca0000000000100080d112000077340200990000\
                           0000f4010003000000";
/// The last entry of a lap, which has the owner bit.
const OWNED_WITH_NOTIFY: &str = "00003eb0000500005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca0000000000100080d1120000773402\
                                 009900000000f4010003000000";
const SECOND: &str = "010000000000000000000000000000000010000034120000000000c0c0120000";

fn bytes(hex: &str) -> [u8; BLOCK_LEN] {
    let hex = format!("{hex:0<128}");
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

const EID: [u8; 16] = [0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf];
const LOCAL: Local = Local { addr: 0x12c0_c000_0000, len: 4096, token_id: 0x1234 };
const REMOTE: Remote = Remote { addr: 0x12d1_8000_1000, token_id: 0x5678, token_value: 0xcafe_f00d };
const LAST: Order = Order { place: Place::Strong, completion: true, fence: true, cqe: true };
const IN_BATCH: Order = Order { place: Place::Relaxed, completion: false, fence: true, cqe: false };

fn entry(remote: Remote, order: Order, work: Work) -> Entry {
    Entry { path: 0x12_3456, eid: EID, remote, order, owner: false, work }
}

fn decoded(hex: &str) -> Result<Entry, EntryError> {
    decode(&bytes(hex), Some(&bytes(SECOND)))
}

#[test]
fn golden_entries_decode() {
    let write = |reduce, notify| Work::Write { local: LOCAL, reduce, notify };
    let sum = Some(Reduce { element: Element::Fp32, op: Operator::Sum });
    let notify = Some(Remote { addr: 0x3_0001_f400, token_id: 0x2_3477, token_value: 0x99 });
    let record = Remote { addr: 0x3_0001_f400, token_id: 0x77, token_value: 0x99 };
    let rows = [
        (WRITE, "write", entry(REMOTE, LAST, write(None, None))),
        (WRITE_REDUCE, "write reduce", entry(REMOTE, LAST, write(sum, None))),
        (BATCH_WRITE, "write", entry(REMOTE, IN_BATCH, write(None, None))),
        (BATCH_READ, "read", entry(REMOTE, IN_BATCH, Work::Read { local: LOCAL, reduce: None })),
        (RECORD, "notify record", entry(record, LAST, Work::Record)),
        (WITH_NOTIFY, "write with notify", entry(REMOTE, LAST, write(None, notify))),
        (OWNED_WITH_NOTIFY, "write with notify", Entry { owner: true, ..entry(REMOTE, LAST, write(None, notify)) }),
    ];
    for (hex, name, expected) in rows {
        assert_eq!(decoded(hex), Ok(expected), "{hex}");
        assert_eq!(expected.name(), name);
    }
}

/// The other order bits that are recorded, by byte 2.
#[test]
fn order_bits_decode() {
    let order = |place, [completion, fence, cqe]: [bool; 3]| Order { place, completion, fence, cqe };
    for (byte, expected) in [
        (0x10, order(Place::None, [false, false, false])),
        (0x11, order(Place::Relaxed, [false, false, false])),
        (0x1d, order(Place::Relaxed, [true, true, false])),
        (0x19, IN_BATCH),
        (0x1e, order(Place::Strong, [true, true, false])),
        (0x3e, LAST),
    ] {
        let mut block = bytes(WRITE);
        block[2] = byte;
        assert_eq!(decode(&block, None).map(|entry| entry.order), Ok(expected), "{byte:#x}");
    }
    let mut block = bytes(WRITE);
    block[2] |= 3;
    assert_eq!(decode(&block, None), Err(EntryError::Place));
}

#[test]
fn reduce_codes_decode_and_others_are_refused() {
    for udf in 0..=u8::MAX {
        let mut block = bytes(WRITE_REDUCE);
        block[37] = udf;
        let is_known = (udf & 0xf) <= 8 && (8..=10).contains(&(udf >> 4));
        match decode(&block, None) {
            Ok(_) => assert!(is_known, "{udf:#x}"),
            Err(EntryError::Reduce { data_type, op }) => assert!(!is_known && udf == op << 4 | data_type, "{udf:#x}"),
            Err(error) => panic!("{udf:#x}: {error}"),
        }
    }
    let recorded = [
        (0xa7, Element::Fp32, Operator::Sum),
        (0x98, Element::Bf16, Operator::Min),
        (0xa6, Element::Fp16, Operator::Sum),
        (0x84, Element::Uint16, Operator::Max),
        (0x95, Element::Uint32, Operator::Min),
        (0xa1, Element::Int16, Operator::Sum),
        (0xa2, Element::Int32, Operator::Sum),
    ];
    for (udf, element, op) in recorded {
        let mut block = bytes(WRITE_REDUCE);
        block[37] = udf;
        let Ok(Entry { work: Work::Write { reduce, .. }, .. }) = decode(&block, None) else { panic!("{udf:#x}") };
        assert_eq!(reduce, Some(Reduce { element, op }));
    }
}

#[test]
fn opcodes_that_are_not_recorded_are_refused() {
    for value in (0..=u8::MAX).filter(|value| ![3, 5, 6].contains(value)) {
        let mut block = bytes(WRITE);
        block[5] = value;
        assert_eq!(decode(&block, None), Err(EntryError::Opcode { value }));
        assert_eq!(fields(&block, None), Err(EntryError::Opcode { value }));
    }
}

/// Word, first bit, how many.
type Bits = (usize, u32, u32);

/// What may change in the head of every entry: order bits without the place, cqe, owner, path, remote token, EID, address.
const HEAD_FREE: [Bits; 12] = [
    (0, 18, 2),
    (0, 21, 1),
    (0, 31, 1),
    (2, 0, 24),
    (3, 0, 20),
    (4, 0, 32),
    (5, 0, 32),
    (6, 0, 32),
    (7, 0, 32),
    (8, 0, 32),
    (10, 0, 32),
    (11, 0, 32),
];
/// Place, inline, reduce and opcode: the kinds that they make are looked at by themselves. The length may not become too
/// large.
const CHOICE: [Bits; 3] = [(0, 16, 2), (0, 22, 2), (1, 8, 8)];

fn assert_bits(blocks: &[[u8; BLOCK_LEN]], free: &[Bits], choice: &[Bits]) {
    let try_decode = |blocks: &[[u8; BLOCK_LEN]]| decode(&blocks[0], blocks.get(1));
    let try_list = |blocks: &[[u8; BLOCK_LEN]]| fields(&blocks[0], blocks.get(1)).unwrap();
    assert!(try_decode(blocks).is_ok());
    let bits = 8 * (BLOCK_LEN * blocks.len()) as u32;
    for bit in (0..bits).step_by(if cfg!(miri) { 7 } else { 1 }).filter(|bit| !is_among(choice, *bit)) {
        let mut changed = blocks.to_vec();
        changed.as_flattened_mut()[bit as usize / 8] ^= 1 << (bit % 8);
        let result = try_decode(&changed);
        assert_eq!(result.is_ok(), is_among(free, bit), "word {}, bit {}: {result:?}", bit / 32, bit % 32);
        if let Err(EntryError::Field(error)) = result {
            let (DecodeError::Reserved { name, byte, .. } | DecodeError::Unsupported { name, byte, .. }) = error else {
                panic!("{error}");
            };
            let listed = try_list(&changed).into_iter().find(|field| field.name == name).unwrap();
            assert_eq!(listed.byte, byte, "{name}");
            assert_ne!(try_list(blocks).into_iter().find(|field| field.name == name), Some(listed));
        }
    }
}

#[test]
fn every_bit_of_an_entry_is_free_or_refused_as_documented() {
    // A length of 4096 stays below 256 MiB as long as no bit above 27 is set; with bit 28 it is above.
    let transfer = [&HEAD_FREE[..], &[(12, 0, 28), (13, 0, 32), (14, 0, 32), (15, 0, 32)]].concat();
    assert_bits(&[bytes(WRITE)], &transfer, &CHOICE);
    assert_bits(&[bytes(BATCH_READ)], &transfer, &CHOICE);
    let reduce_codes = [&CHOICE[..], &[(9, 8, 8)]].concat();
    assert_bits(&[bytes(WRITE_REDUCE)], &transfer, &reduce_codes);
    assert_bits(&[bytes(RECORD)], &HEAD_FREE, &CHOICE);
}

#[test]
fn every_bit_of_two_blocks_is_free_or_refused_as_documented() {
    let notify = [(12, 0, 20), (13, 0, 32), (14, 0, 32), (15, 0, 32)];
    let data = [(20, 0, 28), (21, 0, 32), (22, 0, 32), (23, 0, 32)];
    // What the existing stack does not define is not looked at.
    let undefined: [Bits; 8] = std::array::from_fn(|word| (24 + word, 0, 32));
    let free = [&HEAD_FREE[..], &notify, &data, &undefined].concat();
    assert_bits(&[bytes(WITH_NOTIFY), bytes(SECOND)], &free, &CHOICE);
}

/// Bits of an entry that flip a choice, one by one, do not make another valid entry by accident.
#[test]
fn bits_that_choose_the_kind_are_refused_where_they_make_none() {
    for (hex, byte, mask, is_entry) in [
        // A write with the inline bit lacks its inline length; a record without it has one.
        (WRITE, 2, 0x40, false),
        (RECORD, 2, 0x40, false),
        (WITH_NOTIFY, 2, 0x40, false),
        // A reduce bit alone, and codes without it.
        (WRITE, 2, 0x80, false),
        (WRITE_REDUCE, 2, 0x80, false),
        (RECORD, 2, 0x80, false),
        (WRITE, 37, 0x07, false),
        (WRITE, 37, 0xa0, false),
        // A write (3) and a read (6).
        (WRITE, 5, 0x05, true),
        (RECORD, 5, 0x05, false),
    ] {
        let mut block = bytes(hex);
        block[byte] ^= mask;
        let result = decode(&block, Some(&bytes(SECOND)));
        assert_eq!(result.is_ok(), is_entry, "byte {byte} ^ {mask:#x}: {result:?}");
    }
}

#[test]
fn tables_cover_every_bit_once() {
    for tables in [[HEAD, TRANSFER], [RECORD_HEAD, super::RECORD], [HEAD, NOTIFY], [&[], super::SECOND]] {
        let mut seen = [0u8; BLOCK_LEN];
        for spec in tables.into_iter().flatten() {
            for bit in spec.bit..spec.bit + spec.width {
                let (byte, mask) = (spec.byte + bit as usize / 8, 1 << (bit % 8));
                assert_eq!(seen[byte] & mask, 0, "{} overlaps", spec.name);
                seen[byte] |= mask;
            }
        }
        assert_eq!(seen, [0xff; BLOCK_LEN]);
    }
}

#[test]
fn second_block_that_is_missing_is_named() {
    assert_eq!(decode(&bytes(WITH_NOTIFY), None), Err(EntryError::SecondBlock));
    assert_eq!(fields(&bytes(WITH_NOTIFY), None), Err(EntryError::SecondBlock));
}

/// A ring of so many blocks with these from `index` on.
fn ring(depth: u32, index: u16, hexes: &[&str]) -> Vec<[u8; BLOCK_LEN]> {
    let mut ring = vec![[0xee; BLOCK_LEN]; depth as usize];
    for (offset, hex) in (0..).zip(hexes) {
        ring[(u32::from(index.wrapping_add(offset)) % depth) as usize] = bytes(hex);
    }
    ring
}

fn walked(depth: u32, from: u16, hexes: &[&str]) -> Result<Started, WalkError> {
    let ring = ring(depth, from, hexes);
    walk(depth, from, from.wrapping_add(hexes.len() as u16), |slot| ring[slot as usize])
}

/// Producer indices, names and completions.
fn essence(started: &Started) -> Vec<(u16, &'static str, bool)> {
    started.entries.iter().map(|(index, entry)| (*index, entry.name(), entry.order.cqe)).collect()
}

#[test]
fn golden_batch_decodes_with_one_completion() {
    let started = walked(64, 0, &[BATCH_WRITE, BATCH_READ, RECORD]).unwrap();
    assert_eq!(essence(&started), [(0, "write", false), (1, "read", false), (2, "notify record", true)]);
    assert_eq!(started.warning, None);
}

#[test]
fn notify_1_in_the_middle_of_a_batch_decodes_with_a_warning() {
    let started = walked(64, 0, &[BATCH_WRITE, BATCH_READ, RECORD, WRITE]).unwrap();
    let expected = [(0, "write", false), (1, "read", false), (2, "notify record", true), (3, "write", true)];
    assert_eq!(essence(&started), expected);
    assert_eq!(started.warning, Some(Warning::Completions { count: 2 }));
    let text =
        "2 entries of one doorbell report a completion, not only the last: what the hardware does is not documented";
    assert_eq!(started.warning.unwrap().to_string(), text);
}

#[test]
fn doorbell_without_an_entry_or_without_an_end_is_a_warning() {
    assert_eq!(walked(64, 9, &[]).unwrap().warning, Some(Warning::NothingNew { index: 9 }));
    let started = walked(64, 9, &[WRITE, BATCH_WRITE]).unwrap();
    assert_eq!(started.warning, Some(Warning::NoCompletion { index: 10 }));
}

#[test]
fn entries_go_over_the_end_of_the_ring_and_of_the_index() {
    let started = walked(64, 63, &[OWNED_WITH_NOTIFY, SECOND, WRITE]).unwrap();
    assert_eq!(essence(&started), [(63, "write with notify", true), (65, "write", true)]);
    let started = walked(64, 65535, &[WITH_NOTIFY, SECOND, WRITE]).unwrap();
    assert_eq!(essence(&started), [(65535, "write with notify", true), (1, "write", true)]);
}

#[test]
fn entry_that_the_doorbell_cuts_is_refused() {
    let error = WalkError::Entry { index: 8, error: EntryError::SecondBlock };
    assert_eq!(walked(64, 7, &[WRITE, WITH_NOTIFY]), Err(error));
    assert_eq!(error.to_string(), "entry at producer index 8: entry of two blocks ends after its first one");
}

#[test]
fn owner_bit_belongs_to_one_index_alone() {
    for (index, hex, is_right) in [
        (63, OWNED_WITH_NOTIFY, true),
        (63, WITH_NOTIFY, false),
        (62, OWNED_WITH_NOTIFY, false),
        // Once in 2^16 blocks, not once a lap.
        (127, OWNED_WITH_NOTIFY, false),
        (127, WITH_NOTIFY, true),
    ] {
        let owner = hex == OWNED_WITH_NOTIFY;
        let error = WalkError::Owner { index, depth: 64, owner };
        assert_eq!(walked(64, index, &[hex, SECOND]).err(), (!is_right).then_some(error), "index {index}");
    }
    let text = WalkError::Owner { index: 63, depth: 64, owner: false }.to_string();
    assert_eq!(text, "entry at producer index 63 of a ring of 64 blocks has owner bit 0");
}

#[test]
fn more_blocks_than_the_ring_has_are_refused() {
    let full = [BATCH_WRITE; 4];
    assert_eq!(walked(4, 4, &full).unwrap().entries.len(), 4);
    assert_eq!(walk(4, 0, 5, |_| bytes(WRITE)), Err(WalkError::Overrun { blocks: 5, depth: 4 }));
}

#[test]
fn longest_entry_has_256_mib() {
    let with_len = |len: u32| {
        let mut block = bytes(WRITE);
        block[48..52].copy_from_slice(&len.to_le_bytes());
        decode(&block, None)
    };
    assert!(with_len(256 << 20).is_ok());
    assert_eq!(with_len((256 << 20) + 1), Err(EntryError::TooLong { len: (256 << 20) + 1 }));
}
