//! Work entries and doorbell descriptors of a UB channel against those recorded from the existing stack.
//!
//! `tests/golden/ub_entries.jsonl` has an operation a line: its parameters, and the blocks that the existing stack wrote for it.

use std::num::NonZeroU32;

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::ub::{
    BadJetty, Block, Eid, Jetty, Local, NotifyRecord, Order, PathNumber, PathTooLarge, Peer, Read, Remote, Sequence,
    Slices, TokenId, TokenIdTooLarge, UbDoorbell, UbReduce, WorkDepth, Write, WriteWithNotify,
};
use hcomm_aicpu::spec::{DeviceAddr, Sqe};
use serde_json::Value;
use zerocopy::IntoBytes;

const ROWS: &str = include_str!("../golden/ub_entries.jsonl");

/// One line of the file.
struct Row(Value);

/// Blocks of a ring from an index on.
struct Ring {
    depth: WorkDepth,
    index: u16,
    blocks: Vec<(u32, String)>,
}

impl Ring {
    fn push(&mut self, block: Block) {
        let hex = block.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.blocks.push((self.depth.slot(self.index), hex));
        self.index = self.index.wrapping_add(1);
    }
}

impl Row {
    fn number(&self, name: &str) -> u64 {
        match &self.0[name] {
            Value::String(text) => u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap(),
            number => number.as_u64().unwrap_or_else(|| panic!("{name} of {}", self.0)),
        }
    }

    fn word(&self, name: &str) -> u32 {
        self.number(name).try_into().unwrap()
    }

    fn kind(&self) -> &str {
        self.0["kind"].as_str().unwrap()
    }

    fn peer(&self) -> Result<Peer, PathTooLarge> {
        let eid = u128::from_str_radix(self.0["eid"].as_str().unwrap(), 16).unwrap().to_be_bytes();
        Ok(Peer { path: PathNumber::new(self.word("path"))?, eid: Eid(eid) })
    }

    fn token(&self, of: &str, addr: DeviceAddr) -> Result<Remote, TokenIdTooLarge> {
        let token_id = TokenId::new(self.word(&format!("{of}_token_id")))?;
        Ok(Remote { addr, token_id, token_value: self.word(&format!("{of}_token_value")) })
    }

    fn remote(&self, addr: DeviceAddr) -> Remote {
        self.token("remote", addr).unwrap()
    }

    /// The one id of a notify that the existing stack cuts is given cut.
    fn notify(&self) -> Remote {
        let addr = DeviceAddr(self.number("notify_addr"));
        self.token("notify", addr).unwrap_or_else(|TokenIdTooLarge(id)| {
            assert_eq!(id, 1_193_079);
            let token_id = TokenId::new(id & 0xf_ffff).unwrap();
            Remote { addr, token_id, token_value: self.word("notify_token_value") }
        })
    }

    fn reduce(&self) -> Option<UbReduce> {
        let data_type = DataType::from_name(self.0["type"].as_str()?).unwrap();
        Some(UbReduce::new(ReduceOp::from_name(self.0["op"].as_str().unwrap()).unwrap(), data_type).unwrap())
    }

    fn sequence(&self) -> Sequence {
        if self.0["after_fence"].as_bool().unwrap() { Sequence::AfterFence } else { Sequence::Alone }
    }

    fn slices(&self, max: &str, sequence: Sequence) -> Slices {
        let max = NonZeroU32::new(self.word(max)).unwrap();
        let (remote, local) = (DeviceAddr(self.number("remote")), DeviceAddr(self.number("local")));
        Slices::new(remote, local, self.number("len"), max, sequence)
    }

    fn local(&self, addr: DeviceAddr) -> Local {
        Local { addr, token_id: self.word("local_token_id") }
    }

    fn write(&self, ring: &mut Ring, sequence: Sequence) {
        for slice in self.slices("max_write", sequence) {
            let (remote, local) = (self.remote(slice.remote), self.local(slice.local));
            let write = Write::new(self.peer().unwrap(), remote, local, slice.len);
            let write = self.reduce().map_or(write, |reduce| write.reduce(reduce));
            ring.push(write.build(ring.index, ring.depth, slice.order));
        }
    }

    fn read(&self, ring: &mut Ring, sequence: Sequence) {
        for slice in self.slices("max_read", sequence) {
            let (remote, local) = (self.remote(slice.remote), self.local(slice.local));
            let read = Read::new(self.peer().unwrap(), remote, local, slice.len);
            let read = self.reduce().map_or(read, |reduce| read.reduce(reduce));
            ring.push(read.build(ring.index, ring.depth, slice.order));
        }
    }

    fn record(&self, ring: &mut Ring, order: Order) {
        let record = NotifyRecord::new(self.peer().unwrap(), self.notify());
        ring.push(record.build(ring.index, ring.depth, order));
    }

    /// All slices but the last are plain writes.
    fn write_with_notify(&self, ring: &mut Ring) {
        for slice in self.slices("max_write", self.sequence()) {
            let (peer, remote, local) = (self.peer().unwrap(), self.remote(slice.remote), self.local(slice.local));
            if slice.is_last {
                let write = WriteWithNotify::new(peer, remote, local, slice.len, self.notify());
                let write = self.reduce().map_or(write, |reduce| write.reduce(reduce));
                write.build(ring.index, ring.depth, slice.order).into_iter().for_each(|block| ring.push(block));
            } else {
                let write = Write::new(peer, remote, local, slice.len);
                ring.push(write.build(ring.index, ring.depth, slice.order));
            }
        }
    }

    fn build(&self) -> Ring {
        let depth = WorkDepth::new(self.word("depth")).unwrap();
        let mut ring = Ring { depth, index: self.number("index") as u16, blocks: Vec::new() };
        match self.kind() {
            "ub_write" | "ub_write_reduce" => self.write(&mut ring, self.sequence()),
            "ub_read" | "ub_read_reduce" => self.read(&mut ring, self.sequence()),
            "ub_notify_record" => self.record(&mut ring, self.sequence().record_order(self.word("notify_index"))),
            "ub_write_with_notify" | "ub_write_reduce_with_notify" => self.write_with_notify(&mut ring),
            "ub_batch_write_read_notify1" => {
                self.write(&mut ring, Sequence::InBatch);
                self.read(&mut ring, Sequence::InBatch);
                self.record(&mut ring, Sequence::EndOfBatch.record_order(1));
            }
            kind => panic!("unknown kind {kind}"),
        }
        ring
    }

    /// What the existing stack wrote, as far as it is defined.
    fn assert_recorded(&self, ring: &Ring) {
        let recorded = self.0["blocks"].as_array().unwrap();
        assert_eq!(ring.blocks.len(), recorded.len(), "{}", self.0);
        for ((slot, hex), recorded) in ring.blocks.iter().zip(recorded) {
            assert_eq!(u64::from(*slot), recorded[0].as_u64().unwrap(), "{}", self.0);
            let defined = recorded[1].as_str().unwrap();
            // Of a second block half is recorded; the rest is zero here.
            assert_eq!(*hex, format!("{defined:0<128}"), "{}", self.0);
        }
        assert_eq!(u64::from(ring.index), self.number("index_after"), "{}", self.0);
    }
}

fn rows() -> impl Iterator<Item = Row> {
    ROWS.lines().map(|line| Row(serde_json::from_str(line).unwrap()))
}

#[test]
fn entries_equal_the_recorded_ones() {
    let (mut equal, mut cut) = (0, 0);
    for mut row in rows() {
        if row.number("path") > 0xff_ffff {
            // The existing stack cuts path and token id to their fields.
            let PathTooLarge(path) = row.peer().unwrap_err();
            let TokenIdTooLarge(id) = row.token("remote", DeviceAddr(0)).unwrap_err();
            assert_eq!((path, id), (0xff12_3456, 0xfff1_2345));
            row.0["path"] = (path & 0xff_ffff).into();
            row.0["remote_token_id"] = (id & 0xf_ffff).into();
        }
        if row.kind() == "ub_write_with_notify" && row.number("len") > u64::from(u32::MAX) {
            // It cuts the length to 32 bits: 16 bytes of 4 GiB + 16 are sent. Here all are.
            let ring = row.build();
            assert_eq!((ring.blocks.len(), row.0["blocks"].as_array().unwrap().len()), (18, 2));
            row.0["len"] = (row.number("len") & u64::from(u32::MAX)).into();
            cut += 1;
        }
        row.assert_recorded(&row.build());
        equal += 1;
    }
    assert_eq!((equal, cut), (32, 1));
}

#[test]
fn second_block_goes_to_the_slot_of_its_own_index() {
    let row = rows().find(|row| row.kind() == "ub_write_with_notify" && row.number("index") == 63).unwrap();
    let ring = row.build();
    assert_eq!(ring.blocks.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [63, 0]);
}

fn hex(sqe: Sqe) -> String {
    sqe.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn doorbells_equal_the_recorded_ones() {
    #[rustfmt::skip]
    let rows = [
        (393217, (1, 127, 65535), 65535,
         "0900000001000600030000000000fe00ffff00feffff008000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (393217, (0, 3, 1024), 17,
         "0900000001000600030000000000fe00000400061100000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (393217, (1, 18, 18), 1,
         "0900000001000600030000000000fe00120000240100008000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
    ];
    for (task_id, (die, function, id), index, expected) in rows {
        let jetty = Jetty::new(die, function, id).unwrap();
        assert_eq!(hex(UbDoorbell::new(jetty, index).build(task_id)), expected);
    }
}

/// The existing stack cuts each to its field in silence.
#[test]
fn jetty_wider_than_its_fields_is_refused() {
    assert_eq!(Jetty::new(2, 0, 0), Err(BadJetty::Die(2)));
    assert_eq!(Jetty::new(0, 128, 0), Err(BadJetty::Function(128)));
    assert_eq!(Jetty::new(0, 0, 74565), Err(BadJetty::Id(74565)));
    assert_eq!(BadJetty::Id(74565).to_string(), "jetty 74565 is above 65535");
}

#[test]
fn path_and_token_wider_than_their_fields_are_refused() {
    assert!(PathNumber::new(0xff_ffff).is_ok() && TokenId::new(0xf_ffff).is_ok());
    assert_eq!(PathNumber::new(1 << 24), Err(PathTooLarge(1 << 24)));
    assert_eq!(TokenId::new(1 << 20), Err(TokenIdTooLarge(1 << 20)));
    assert_eq!(TokenIdTooLarge(1 << 20).to_string(), "token id 0x100000 is above 0xfffff");
}
