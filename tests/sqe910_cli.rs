//! `sqe encode` and `sqe decode` for Ascend910B and Ascend910_93, against descriptors recorded from the existing stack.

use hcomm_aicpu::spec::stars910::{Stamp, flip_place_holder, notify_record, notify_wait, write_value_record};
use hcomm_aicpu::spec::{DeviceAddr, Sqe};
use hcomm_testkit::cli::{host_stub, json, stdout};
use zerocopy::IntoBytes;

/// Stream id, task id, dst, src, len, link type, QoS, reduce, descriptor.
type Row = (u32, u32, u64, u64, u32, u8, u8, Option<&'static str>, &'static str);

#[rustfmt::skip]
const ROWS: [Row; 14] = [
    (0, 0, 0x1000, 0x2000, 1, 0, 6, None,
     "0b00000000000000000000000000f00000de00000000000000000000010000000020000000000000001000000000000000000000000000000000000000000000"),
    (5, 65535, 0xffff800012345678, 0x123456789abcdef, 4096, 1, 3, None,
     "0b0000000500ffff000000000000f000007e0000000000000000000000100000efcdab8967452301785634120080ffff01000000000000000000000000000000"),
    (7, 1024, 0x12c041200000, 0x12c041400000, 2097152, 4, 1, None,
     "0b00000007000004000000000000f00000de000000000000000000000000200000004041c012000000002041c012000004000000000000000000000000000000"),
    (7, 2, 0x1, 0x2, 3, 0, 0, None,
     "0b00000007000200000000000000f00000de00000000000000000000030000000200000000000000010000000000000000000000000000000000000000000000"),
    (7, 4, 0x12c041200000, 0x12c041400000, 0, 0, 6, None,
     "0b00000007000400000000000000f00000de000000000000000000000000000000004041c012000000002041c012000000000000000000000000000000000000"),
    (9, 5, 0xdeadbeefcafe, 0x1122334455667788, 305419896, 0, 6, None,
     "0b00000009000500000000000000f00000de00000000000000000000785634128877665544332211fecaefbeadde000000000000000000000000000000000000"),
    (9, 6, 0xffffffffffffffff, 0xffffffffffffffff, 1, 0, 6, None,
     "0b00000009000600000000000000f00000de0000000000000000000001000000ffffffffffffffffffffffffffffffff00000000000000000000000000000000"),
    (9, 7, 0x12c041200001, 0x12c041400003, 64, 0, 6, None,
     "0b00000009000700000000000000f00000de000000000000000000004000000003004041c012000001002041c012000000000000000000000000000000000000"),
    (4, 10, 0x12c0c0000000, 0x12c180000000, 4096, 0, 6, Some("sum,int8"),
     "0b00000004000a00000000000000f00001de000000000000000000000010000000000080c1120000000000c0c012000000000000000000000000000000000000"),
    (4, 12, 0x12c0c0000000, 0x12c180000000, 4096, 0, 6, Some("sum,int32"),
     "0b00000004000c00000000000000f00021de000000000000000000000010000000000080c1120000000000c0c012000000000000000000000000000000000000"),
    (4, 13, 0x12c0c0000000, 0x12c180000000, 4096, 0, 6, Some("sum,fp16"),
     "0b00000004000d00000000000000f00061de000000000000000000000010000000000080c1120000000000c0c012000000000000000000000000000000000000"),
    (4, 15, 0x12c0c0000000, 0x12c180000000, 4096, 0, 6, Some("min,bf16"),
     "0b00000004000f00000000000000f00083de000000000000000000000010000000000080c1120000000000c0c012000000000000000000000000000000000000"),
    (4, 16, 0x12c0c0000000, 0x12c180000000, 4096, 0, 6, Some("sum,bf16"),
     "0b00000004001000000000000000f00081de000000000000000000000010000000000080c1120000000000c0c012000000000000000000000000000000000000"),
    (4, 17, 0x12c0c0000000, 0x12c180000000, 4096, 0, 6, Some("sum,fp32"),
     "0b00000004001100000000000000f00071de000000000000000000000010000000000080c1120000000000c0c012000000000000000000000000000000000000"),
];

/// Sum of uint8, which the engine does not compute: opcode 0xf0.
const UNSUPPORTED: &str = "0b00000004001e00000000000000f000f0de000000000000000000000010000000000080c1120000000000c0c012000000000000000000000000000000000000";

fn encode(soc: &str, row: &Row) -> String {
    let &(stream_id, task_id, dst, src, len, link_type, qos, reduce, _) = row;
    let numbers = [u64::from(stream_id), task_id.into(), src, dst, len.into(), link_type.into(), qos.into()];
    let names = ["--stream-id", "--task-id", "--src", "--dst", "--len", "--link-type", "--qos"];
    let mut args: Vec<String> = ["sqe", "encode", "copy", "--soc", soc].map(String::from).into();
    args.extend(names.iter().zip(numbers).flat_map(|(name, number)| [name.to_string(), number.to_string()]));
    args.extend(reduce.into_iter().flat_map(|reduce| ["--reduce".to_owned(), reduce.to_owned()]));
    let output = host_stub(args);
    assert!(output.status.success(), "{row:?}: {}", String::from_utf8_lossy(&output.stderr));
    stdout(&output).trim_end().to_owned()
}

#[test]
fn sdma_descriptors_equal_the_recorded_ones_on_both_socs() {
    for row in &ROWS {
        for soc in ["ascend910b", "ascend910_93"] {
            assert_eq!(encode(soc, row), row.8, "{soc} {row:?}");
        }
    }
}

#[test]
fn notify_write_value_and_place_holder_descriptors_equal_the_recorded_ones() {
    let stamp = |stream_id, task_id| Stamp { stream_id, task_id };
    let hex = |sqe: Sqe| sqe.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    #[rustfmt::skip]
    let rows = [
        (notify_record(1, stamp(2, 101)).unwrap(),
         "0600000002006500010000000000fe00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (notify_record(511, stamp(2, 102)).unwrap(),
         "0600000002006600ff0100000000fe00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (notify_wait(1, 1, stamp(2, 201)).unwrap(),
         "070000000200c900010000000000ff00010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (notify_wait(511, 1836, stamp(2, 202)).unwrap(),
         "070000000200ca00ff0100000000ff002c0700000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (notify_wait(8191, 1863, stamp(2, 203)).unwrap(),
         "070000000200cb00ff1f00000000ff00470700000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (write_value_record(DeviceAddr(0x1000), stamp(6, 300)).unwrap(),
         "0800000006002c01000000000000fe00001000000000200000000000030000000100000000000000000000000000000000000000000000000000000000000000"),
        (write_value_record(DeviceAddr(0x1_ffff_ffff_ffff), stamp(6, 302)).unwrap(),
         "0800000006002e01000000000000fe00ffffffffffff210000000000030000000100000000000000000000000000000000000000000000000000000000000000"),
        (flip_place_holder(6, 1),
         "0304620006000000000000000000fe00010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
        (flip_place_holder(6, 65535),
         "0304620006000000000000000000fe00ffff00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
    ];
    for (sqe, expected) in rows {
        assert_eq!(hex(sqe), expected);
        let output = host_stub(["sqe", "decode", "--soc", "ascend910b", expected]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The existing stack cuts it to the field in silence: its descriptor for 0xffff000012345678 names 0x1000012345678.
#[test]
fn address_wider_than_its_field_is_refused() {
    for addr in [0x2_0000_0000_0000, 0xffff_0000_1234_5678, u64::MAX].map(DeviceAddr) {
        assert_eq!(write_value_record(addr, Stamp { stream_id: 6, task_id: 303 }).unwrap_err().0, addr);
    }
}

#[test]
fn decode_names_every_field() {
    let output = host_stub(["sqe", "decode", "--soc", "ascend910_93", "--json", ROWS[1].8]);
    let answer = json(&output);
    assert_eq!((&answer["kind"], &answer["task_id"]), (&"sdma copy".into(), &65535.into()));
    let fields = &answer["fields"];
    assert_eq!((&fields["link_type"], &fields["qos"], &fields["length"]), (&1.into(), &3.into(), &4096.into()));
}

#[test]
fn reduce_that_the_engine_lacks_is_refused() {
    let output = host_stub(["sqe", "decode", "--soc", "ascend910b", UNSUPPORTED]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("opcode 0xf0"));
}

#[test]
fn numbers_wider_than_their_field_are_usage_errors() {
    let with = |soc: &str, name: &str, value: &str| {
        let mut args = vec!["sqe", "encode", "copy", "--soc", soc, "--src", "1", "--dst", "2", "--len", "3"];
        for (option, default) in [("--stream-id", "1"), ("--task-id", "1")] {
            args.extend([option, if option == name { value } else { default }]);
        }
        if !["--stream-id", "--task-id"].contains(&name) {
            args.extend([name, value]);
        }
        host_stub(args).status.code()
    };
    for (name, value) in [("--stream-id", "65536"), ("--task-id", "65536"), ("--qos", "16"), ("--link-type", "256")] {
        assert_eq!(with("ascend910b", name, value), Some(2), "{name} {value}");
    }
    for name in ["--qos", "--link-type"] {
        assert_eq!(with("ascend950", name, "1"), Some(2), "{name}");
    }
}
