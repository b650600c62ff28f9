//! Command line of `sqe`: bytes of every golden descriptor, splitting, fields by name, refusals.

use hcomm_testkit::cli::{host_stub, json, stdout};

/// What a reference encoder wrote for these arguments.
struct Golden {
    stream_id: &'static str,
    task_id: &'static str,
    dst: &'static str,
    src: &'static str,
    len: &'static str,
    reduce: Option<&'static str>,
    hex: &'static str,
}

/// Arguments of a row, in the order in which [`Golden`] has them.
const fn golden(args: [&'static str; 5], reduce: Option<&'static str>, hex: &'static str) -> Golden {
    let [stream_id, task_id, dst, src, len] = args;
    Golden { stream_id, task_id, dst, src, len, reduce, hex }
}

#[rustfmt::skip]
const GOLDEN: &[Golden] = &[
    golden(["1", "1", "0x1000", "0x2000", "1"], None,
           "0b00000001000000000000000000fe00000f00000000000000000000000000000020000000000000001000000000000001000000000000000000000000000000"),
    golden(["5", "65541", "0x12c0c0000000", "0x12c180000000", "1048576"], None,
           "0b00000005000100000000000000fe00000f000000000000000000000000000000000080c1120000000000c0c012000000001000000000000000000000000000"),
    golden(["74565", "2882343476", "0xffff800012345678", "0x123456789abcdef", "4096"], None,
           "0b0000003412cdab000000000000fe00000f0000000000000000000000000000efcdab8967452301785634120080ffff00100000000000000000000000000000"),
    golden(["3", "4294901760", "0x100000000", "0x200000000", "2147483647"], None,
           "0b0000000000ffff000000000000fe00000f000000000000000000000000000000000000020000000000000001000000ffffff7f000000000000000000000000"),
    golden(["7", "1024", "0x12c041200000", "0x12c041400000", "2097152"], None,
           "0b00000000040000000000000000fe00000f000000000000000000000000000000004041c012000000002041c012000000002000000000000000000000000000"),
    golden(["7", "1025", "0xffffffffffffffff", "0xffffffffffffffff", "4294967295"], None,
           "0b00000001040000000000000000fe00000f0000000000000000000000000000ffffffffffffffffffffffffffffffffffffffff000000000000000000000000"),
    golden(["7", "131075", "0x12c041200001", "0x12c041400003", "511"], None,
           "0b00000003000200000000000000fe00000f000000000000000000000000000003004041c012000001002041c0120000ff010000000000000000000000000000"),
    golden(["7", "2147450880", "0x0", "0x0", "0"], None,
           "0b0000000080ff7f000000000000fe00000f00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
    golden(["9", "65536", "0xdeadbeefcafe", "0x1122334455667788", "305419896"], None,
           "0b00000000000100000000000000fe00000f00000000000000000000000000008877665544332211fecaefbeadde000078563412000000000000000000000000"),
    golden(["4", "1", "0x1000", "0x2000", "64"], Some("sum,int8"),
           "0b00000001000000000000000000fe00010f00000000000000000000000000000020000000000000001000000000000040000000000000000000000000000000"),
    golden(["4", "3", "0x1000", "0x2000", "64"], Some("sum,int32"),
           "0b00000003000000000000000000fe00210f00000000000000000000000000000020000000000000001000000000000040000000000000000000000000000000"),
    golden(["4", "4", "0x1000", "0x2000", "64"], Some("sum,fp16"),
           "0b00000004000000000000000000fe00610f00000000000000000000000000000020000000000000001000000000000040000000000000000000000000000000"),
    golden(["4", "5", "0x12c0c0000000", "0x12c180000000", "4294967292"], Some("sum,fp32"),
           "0b00000005000000000000000000fe00710f000000000000000000000000000000000080c1120000000000c0c0120000fcffffff000000000000000000000000"),
    golden(["4", "6", "0x1000", "0x2000", "64"], Some("sum,bf16"),
           "0b00000006000000000000000000fe00810f00000000000000000000000000000020000000000000001000000000000040000000000000000000000000000000"),
    golden(["4", "65543", "0x12c0c0000000", "0x12c180000000", "4096"], Some("max,fp32"),
           "0b00000007000100000000000000fe00720f000000000000000000000000000000000080c1120000000000c0c012000000100000000000000000000000000000"),
    golden(["4", "4294901768", "0x12c0c0000000", "0x12c180000000", "4096"], Some("min,fp16"),
           "0b0000000800ffff000000000000fe00630f000000000000000000000000000000000080c1120000000000c0c012000000100000000000000000000000000000"),
    golden(["4", "10", "0x1000", "0x2000", "1"], Some("min,int8"),
           "0b0000000a000000000000000000fe00030f00000000000000000000000000000020000000000000001000000000000001000000000000000000000000000000"),
];

impl Golden {
    fn args(&self) -> Vec<&'static str> {
        let mut args = vec!["sqe", "encode", "copy", "--soc", "ascend950", "--stream-id", self.stream_id];
        args.extend(["--task-id", self.task_id, "--src", self.src, "--dst", self.dst, "--len", self.len]);
        args.extend(self.reduce.into_iter().flat_map(|reduce| ["--reduce", reduce]));
        args
    }
}

/// Encodes a copy from 0x2000 to 0x1000 and returns its lines.
fn encode(task_id: &str, len: &str, more: &[&str]) -> Vec<String> {
    let args = ["sqe", "encode", "copy", "--soc", "ascend950", "--stream-id", "1", "--task-id", task_id];
    let output = host_stub(args.iter().chain(&["--src", "0x2000", "--dst", "0x1000", "--len", len]).chain(more));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    stdout(&output).lines().map(str::to_owned).collect()
}

/// Little-endian word of `bytes` bytes at byte `at` of a descriptor in hexadecimal digits.
fn word(hex: &str, at: usize, bytes: usize) -> u64 {
    let digits = |byte: usize| u64::from_str_radix(&hex[2 * byte..2 * byte + 2], 16).unwrap();
    (at..at + bytes).rev().fold(0, |word, byte| word << 8 | digits(byte))
}

/// Task id, source, destination and length of a descriptor.
fn essence(hex: &str) -> (u64, u64, u64, u64) {
    (word(hex, 4, 4), word(hex, 32, 8), word(hex, 40, 8), word(hex, 48, 4))
}

#[test]
fn encode_equals_every_golden_row() {
    for row in GOLDEN {
        let output = host_stub(row.args());
        assert_eq!(stdout(&output), format!("{}\n", row.hex), "{:?}", row.args());
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn encode_in_json_is_one_object() {
    let row = &GOLDEN[0];
    let output = host_stub(row.args().iter().chain(&["--json"]));
    assert_eq!(json(&output), serde_json::json!({ "soc": "ascend950", "sqes": [row.hex] }));
}

#[test]
fn four_gib_is_split_and_never_encoded_as_zero() {
    let chunk = (4u64 << 30) - (2 << 20);
    let lines = encode("2", "0x100000000", &[]);
    let parts: Vec<_> = lines.iter().map(|line| essence(line)).collect();
    assert_eq!(parts, [(2, 0x2000, 0x1000, chunk), (3, 0x2000 + chunk, 0x1000 + chunk, 2 << 20)]);
}

#[test]
fn longest_length_of_one_descriptor_is_32_bits() {
    assert_eq!(encode("1", "0xffffffff", &[]).len(), 1);
    assert_eq!(encode("1", "4294967296", &[]).len(), 2);
}

#[test]
fn chunks_follow_each_other_without_gap_and_ids_wrap() {
    let len = 16u64 << 30 | 5;
    let lines = encode("0xfffffffe", &len.to_string(), &["--reduce", "SUM,FP32"]);
    let (mut offset, mut task_id) = (0, 0xffff_fffe_u32);
    for line in &lines {
        let (id, src, dst, bytes) = essence(line);
        assert_eq!((id, src, dst), (u64::from(task_id), 0x2000 + offset, 0x1000 + offset));
        assert_eq!(word(line, 16, 1), 0x71, "opcode");
        offset += bytes;
        task_id = task_id.wrapping_add(1);
    }
    assert_eq!((lines.len(), offset), (5, len));
}

#[test]
fn every_reduce_has_its_opcode() {
    let types = [("int8", 0x00), ("int16", 0x10), ("int32", 0x20), ("fp16", 0x60), ("fp32", 0x70), ("BFP16", 0x80)];
    for (type_name, type_code) in types {
        for (op_name, op_code) in [("sum", 1), ("max", 2), ("min", 3)] {
            let lines = encode("1", "64", &["--reduce", &format!("{op_name},{type_name}")]);
            assert_eq!(word(&lines[0], 16, 1), type_code | op_code, "{op_name} {type_name}");
        }
    }
}

fn decode(hex: &str, more: &[&str]) -> std::process::Output {
    host_stub(["sqe", "decode", "--soc", "ascend950", hex].iter().chain(more))
}

#[test]
fn decode_gives_back_what_was_encoded() {
    for row in GOLDEN {
        let object = json(&decode(row.hex, &["--json"]));
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => text.parse().unwrap(),
        };
        let fields = &object["fields"];
        let kind = if row.reduce.is_some() { "sdma reduce" } else { "sdma copy" };
        assert_eq!((&object["soc"], &object["kind"]), (&"ascend950".into(), &kind.into()));
        assert_eq!(object["task_id"], number(row.task_id));
        assert_eq!(fields["src_addr"], format!("{:#x}", number(row.src)));
        assert_eq!(fields["dst_addr"], format!("{:#x}", number(row.dst)));
        assert_eq!(fields["length_move"], number(row.len));
        assert_eq!(fields["opcode"], word(row.hex, 16, 1));
        assert_eq!((&fields["type"], &fields["kernel_credit"]), (&11.into(), &254.into()));
    }
}

/// Case 153. 2^53 + 1 is the first number that most readers of JSON change.
#[test]
fn addresses_in_json_are_text_on_every_soc() {
    for soc in ["ascend950", "ascend910b", "ascend910_93"] {
        let copy = ["--src", "0x20000000000001", "--dst", "0xfffffffffffffff0", "--len", "16", "--soc", soc];
        let args = ["sqe", "encode", "copy", "--stream-id", "1", "--task-id", "1"];
        let hex = stdout(&host_stub(args.iter().chain(&copy))).trim().to_owned();
        let object = json(&host_stub(["sqe", "decode", "--json", "--soc", soc, &hex]));
        let fields = &object["fields"];
        let expected = (&"0x20000000000001".into(), &"0xfffffffffffffff0".into());
        assert_eq!((&fields["src_addr"], &fields["dst_addr"]), expected, "{object}");
        assert!(fields.as_object().unwrap().values().filter(|value| value.is_string()).count() == 2, "{object}");
    }
}

/// Case 153.
#[test]
fn copy_past_the_end_of_addresses_is_a_usage_error() {
    let args = ["sqe", "encode", "copy", "--soc", "ascend950", "--stream-id", "1", "--task-id", "1", "--json"];
    let encode = |src: &str, dst: &str, len: &str| {
        let output = host_stub(args.iter().chain(&["--src", src, "--dst", dst, "--len", len]));
        (output.status.code(), json(&output)["error"].as_str().unwrap_or_default().to_owned())
    };
    let last = "0xffffffffffffffff";
    for (src, dst, len, option) in [
        (last, "1", "0x100000000", "--src"),
        ("1", last, "0x100000000", "--dst"),
        ("0xfffffffe00000000", "0", "0x200000001", "--src"),
    ] {
        let (code, error) = encode(src, dst, len);
        assert!(code == Some(2) && error.starts_with(option) && error.contains("past the end"), "{error}");
    }
    // A single descriptor is checked for nothing but the widths of its fields.
    for (src, dst, len) in [(last, last, "1"), (last, last, "0xffffffff"), ("0xfffffffe00000000", "0", "0x200000000")] {
        assert_eq!(encode(src, dst, len), (Some(0), String::new()));
    }
}

#[test]
fn decode_prints_every_field_by_name() {
    let output = decode(GOLDEN[1].hex, &[]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    assert_eq!(value("src_addr "), Some("0x12c180000000"));
    assert_eq!(value("dst_addr "), Some("0x12c0c0000000"));
    assert_eq!(value("length_move "), Some("0x100000"));
    assert_eq!(value("kernel_credit "), Some("0xfe"));
    assert_eq!(value("sns "), Some("0x1"));
}

#[test]
fn decode_refuses_what_the_device_refuses_and_names_it() {
    let with_byte = |at: usize, byte: &str| {
        let mut hex = GOLDEN[1].hex.to_owned();
        hex.replace_range(2 * at..2 * at + 2, byte);
        hex
    };
    for (hex, code, named) in [
        (with_byte(12, "01"), 1, ["res2", "byte 12"]),
        (with_byte(15, "80"), 1, ["res3", "0x80"]),
        (with_byte(17, "4f"), 3, ["stride", "byte 17"]),
        (with_byte(0, "00"), 3, ["type 0", "byte 0"]),
    ] {
        let output = decode(&hex, &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(named.iter().all(|name| text.contains(name)), "{text}");

        let object = json(&decode(&hex, &["--json"]));
        assert_eq!(object["code"], code);
        assert!(named.iter().all(|name| object["error"].as_str().unwrap().contains(name)), "{object}");
    }
    assert_eq!(host_stub(["sqe", "decode", "--soc", "ascend910b", GOLDEN[0].hex]).status.code(), Some(3));
}

#[test]
fn decode_takes_128_digits_and_nothing_else() {
    let hex = GOLDEN[0].hex;
    let upper = hex.to_uppercase();
    assert_eq!(stdout(&decode(&upper, &[])), stdout(&decode(hex, &[])));
    let odd = [&hex[1..], "", "0x", &format!("{hex}00"), &hex.replacen('0', "g", 1), &format!("{}é", &hex[2..])];
    for hex in odd {
        let output = decode(hex, &[]);
        assert_eq!(output.status.code(), Some(2), "{hex:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn unsupported_exits_3_and_names_what_is() {
    let args =
        ["sqe", "encode", "copy", "--stream-id", "1", "--task-id", "1", "--src", "1", "--dst", "2", "--len", "3"];
    for (more, named) in [
        (["--soc", "ascend310p", "--reduce", "sum,fp32"], "ascend950, ascend910b or ascend910_93"),
        (["--soc", "ascend950", "--reduce", "prod,fp32"], "sum, max and min"),
        (["--soc", "ascend950", "--reduce", "sum,int64"], "int8, int16, int32, fp16, fp32 and bf16"),
    ] {
        let output = host_stub(args.iter().chain(&more));
        assert_eq!(output.status.code(), Some(3), "{more:?}");
        assert!(output.stdout.is_empty(), "{more:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{output:?}");

        let output = host_stub(args.iter().chain(&more).chain(&["--json"]));
        assert_eq!(output.status.code(), Some(3), "{more:?}");
        let object = json(&output);
        assert_eq!(object["code"], 3);
        assert!(object["error"].as_str().unwrap().contains(named), "{object}");
    }
}

#[test]
fn wrong_usage_exits_2() {
    let whole = ["sqe", "encode", "copy", "--soc", "ascend950", "--stream-id", "1", "--task-id", "1", "--src", "1"];
    for more in [
        &["--dst", "2"][..],
        &["--dst", "2", "--len", "-1"],
        &["--dst", "2", "--len", "0x10000000000000000"],
        &["--dst", "zwei", "--len", "1"],
        &["--dst", "2", "--len", "1", "--reduce", "sum"],
        &["--dst", "2", "--len", "1", "--reduce", "avg,fp32"],
        &["--dst", "2", "--len", "1", "--reduce", "sum,fp99"],
        &["--dst", "2", "--len", "1", "--unknown"],
    ] {
        let output = host_stub(whole.iter().chain(more));
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");

        let output = host_stub(whole.iter().chain(more).chain(&["--json"]));
        assert_eq!((output.status.code(), &json(&output)["code"]), (Some(2), &2.into()), "{more:?}");
    }
}

#[test]
fn help_is_no_error() {
    for args in [&["--help"][..], &["--version"], &["sqe", "encode", "copy", "--help"]] {
        let output = host_stub(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
}
