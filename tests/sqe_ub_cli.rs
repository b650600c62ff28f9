//! Command line of `sqe` for UB channels: recorded work entries and doorbells, their fields by name, refusals.

use std::process::Output;

use hcomm_testkit::cli::{host_stub, json, stdout};
use hcomm_testkit::root;
use serde_json::{Value, json};

/// Operations that the existing stack was asked for, and the blocks that it wrote.
fn rows() -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("tests/golden/ub_entries.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Blocks of a row with what the existing stack leaves undefined as zero.
fn recorded(row: &Value) -> Vec<(u64, String)> {
    let blocks = row["blocks"].as_array().unwrap().iter();
    blocks.map(|block| (block[0].as_u64().unwrap(), format!("{:0<128}", block[1].as_str().unwrap()))).collect()
}

/// The arguments that stand for a row, with the token id of a notify cut as the existing stack does. `None`: it is several
/// operations, or the existing stack cuts more than that.
fn args(row: &Value) -> Option<Vec<String>> {
    let kind = row["kind"].as_str().unwrap();
    let command = match kind {
        "ub_write" | "ub_write_reduce" => "ub-write",
        "ub_read" | "ub_read_reduce" => "ub-read",
        "ub_write_with_notify" | "ub_write_reduce_with_notify" => "ub-write-with-notify",
        "ub_notify_record" => "ub-record",
        _ => return None,
    };
    let number = |name: &str| match &row[name] {
        Value::String(text) => text.clone(),
        Value::Number(number) if name == "notify_token_id" => (number.as_u64().unwrap() & 0xf_ffff).to_string(),
        number => number.to_string(),
    };
    let is_cut = |name: &str, bits: u32| row[name].as_u64().is_some_and(|value| value >> bits != 0);
    if is_cut("path", 24) || command == "ub-write-with-notify" && is_cut("len", 32) {
        return None;
    }
    let mut args = vec!["sqe".to_owned(), "encode".into(), command.into(), "--soc".into(), "ascend950".into()];
    let mut push = |option: &str, value: String| args.extend([format!("--{option}"), value]);
    push("pi", number("index"));
    push("depth", number("depth"));
    push("path", number("path"));
    push("eid", row["eid"].as_str().unwrap().into());
    push("order", if row["after_fence"] == true { "after-fence" } else { "alone" }.into());
    if command != "ub-record" {
        for name in ["local", "local_token_id", "remote", "remote_token_id", "remote_token_value", "len"] {
            push(&name.replace('_', "-"), number(name));
        }
        push("max", number(if command == "ub-read" { "max_read" } else { "max_write" }));
    }
    if let Some(data_type) = row["type"].as_str() {
        push("reduce", format!("{},{data_type}", row["op"].as_str().unwrap()));
    }
    if command == "ub-record" || command == "ub-write-with-notify" {
        for name in ["notify_addr", "notify_token_id", "notify_token_value"] {
            push(&name.replace('_', "-"), number(name));
        }
    }
    if command == "ub-record" {
        push("notify-index", number("notify_index"));
    }
    Some(args)
}

#[test]
fn encode_equals_the_recorded_entries() {
    let mut equal = 0;
    for (row, args) in rows().iter().filter_map(|row| Some((row, args(row)?))) {
        let blocks = recorded(row);
        let output = host_stub(&args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        let lines: Vec<_> = stdout(&output).lines().map(str::to_owned).collect();
        if row["len"] == 0 && args[2] == "ub-write-with-notify" {
            // The existing stack loses the notify.
            assert_eq!(lines.len(), 1, "{args:?}");
            continue;
        }
        assert_eq!(lines, blocks.iter().map(|(_, hex)| hex.clone()).collect::<Vec<_>>(), "{args:?}");

        let answer = json(&host_stub(args.iter().map(String::as_str).chain(["--json"])));
        let blocks: Vec<_> = blocks.into_iter().map(|(slot, hex)| json!({ "slot": slot, "hex": hex })).collect();
        assert_eq!(answer, json!({ "soc": "ascend950", "blocks": blocks }));
        equal += 1;
    }
    assert_eq!(equal, 28);
}

/// Doorbells as recorded: die, function, jetty, producer index.
#[rustfmt::skip]
const DOORBELLS: [([&str; 4], &str); 3] = [
    (["1", "127", "65535", "65535"],
     "0900000001000600030000000000fe00ffff00feffff008000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
    (["0", "3", "1024", "17"],
     "0900000001000600030000000000fe00000400061100000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
    (["1", "18", "18", "1"],
     "0900000001000600030000000000fe00120000240100008000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
];

fn encode_doorbell([die, func, jetty, pi]: [&str; 4]) -> Output {
    let args = ["sqe", "encode", "ub-doorbell", "--soc", "ascend950", "--task-id", "393217", "--die", die];
    host_stub(args.iter().chain(&["--func", func, "--jetty", jetty, "--pi", pi]))
}

#[test]
fn doorbells_are_encoded_and_decoded_as_recorded() {
    for (fields, hex) in DOORBELLS {
        assert_eq!(stdout(&encode_doorbell(fields)), format!("{hex}\n"));
        let answer = json(&host_stub(["sqe", "decode", "--soc", "ascend950", hex, "--json"]));
        assert_eq!((&answer["kind"], &answer["task_id"]), (&"ub doorbell".into(), &393217.into()));
        let [die, func, jetty, pi] = fields.map(|text| Value::from(text.parse::<u64>().unwrap()));
        let listed = ["die_id1", "func_id1", "jetty_id1", "pi_value1"].map(|name| answer["fields"][name].clone());
        assert_eq!(listed, [die, func, jetty, pi]);
    }
    for (wide, named) in [
        (["2", "0", "0", "0"], "die 2 is above 1"),
        (["0", "128", "0", "0"], "function 128 is above 127"),
        (["0", "0", "65536", "0"], "jetty 65536 is above 65535"),
        (["0", "0", "0", "65536"], "16 bits"),
    ] {
        let output = encode_doorbell(wide);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{output:?}");
    }
}

#[rustfmt::skip]
const WRITES: [(&str, &str, &str, &str); 2] = [
    ("327680", "0x1000", "1",
     "0800000000000500000000000000fe00001000000000208000000000000000000100000000000000000000000000000000000000000000000000000000000000"),
    ("327682", "0x1ffffffffffff", "4294967295",
     "0800000002000500000000000000fe00ffffffffffff21800000000000000000ffffffff00000000000000000000000000000000000000000000000000000000"),
];

fn encode_write(soc: &str, task_id: &str, addr: &str, value: &str) -> Output {
    host_stub(["sqe", "encode", "write-value", "--soc", soc, "--task-id", task_id, "--addr", addr, "--value", value])
}

#[test]
fn write_values_are_encoded_and_decoded_as_recorded() {
    for (task_id, addr, value, hex) in WRITES {
        assert_eq!(stdout(&encode_write("ascend950", task_id, addr, value)), format!("{hex}\n"));
        let answer = json(&host_stub(["sqe", "decode", "--soc", "ascend950", hex, "--json"]));
        assert_eq!((&answer["kind"], &answer["task_id"].to_string()), (&"write value".into(), &task_id.to_owned()));
        assert_eq!(answer["fields"]["value0"].to_string(), value);
    }
    // The existing stack cuts this one to its field.
    let wide = encode_write("ascend950", "327683", "0xffff000012345678", "305419896");
    assert_eq!(wide.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wide.stderr).contains("0xffff000012345678 is above 0x1ffffffffffff"), "{wide:?}");
    assert_eq!(encode_write("ascend910b", "1", "0x1000", "1").status.code(), Some(3));
}

fn decode(more: &[&str], blocks: &[String]) -> Output {
    let args = ["sqe", "decode-ub", "--soc", "ascend950"];
    host_stub(args.iter().chain(more).copied().chain(blocks.iter().map(String::as_str)))
}

#[test]
fn decode_gives_back_the_recorded_operations() {
    let mut entries = 0;
    for row in rows().iter().filter(|row| row["blocks"] != json!([])) {
        let blocks: Vec<_> = recorded(row).into_iter().map(|(_, hex)| hex).collect();
        let place = [row["index"].to_string(), row["depth"].to_string()];
        let output = decode(&["--pi", &place[0], "--depth", &place[1], "--json"], &blocks);
        let answer = json(&output);
        assert_eq!(output.status.code(), Some(0), "{answer}");
        let decoded = answer["entries"].as_array().unwrap();
        let slots: Vec<_> = recorded(row).into_iter().map(|(slot, _)| slot).collect();
        let expected = row["kind"].as_str().unwrap().trim_start_matches("ub_").replace('_', " ");
        for entry in decoded {
            assert!(slots.contains(&entry["slot"].as_u64().unwrap()), "{answer}");
            let (low, high) = (&entry["fields"]["rmt_eid_low"], &entry["fields"]["rmt_eid_high"]);
            assert_eq!((low, high), (&0xa8a9_aaab_acad_aeaf_u64.into(), &0xa0a1_a2a3_a4a5_a6a7_u64.into()));
        }
        let last = decoded.last().unwrap();
        let is_batch = expected.starts_with("batch");
        assert_eq!(last["kind"], if is_batch { "notify record" } else { &*expected }, "{answer}");
        assert_eq!(last["fields"]["cqe"], 1);
        assert!(answer.get("warning").is_none(), "{answer}");
        entries += decoded.len();
    }
    assert_eq!(entries, 53);
}

/// The recorded batch, and a write behind it: the notify of index 1 is in the middle, and there are two completions.
#[test]
fn notify_1_in_the_middle_of_a_batch_decodes_with_a_warning() {
    let all = rows();
    let blocks = |kind: &str| {
        let row = all.iter().find(|row| row["kind"] == kind).unwrap();
        recorded(row).into_iter().map(|(_, hex)| hex).collect::<Vec<_>>()
    };
    let blocks = [blocks("ub_batch_write_read_notify1"), blocks("ub_write")].concat();
    let warning =
        "2 entries of one doorbell report a completion, not only the last: what the hardware does is not documented";
    let answer = json(&decode(&["--json"], &blocks));
    let kinds: Vec<_> = answer["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["write", "read", "notify record", "write"]);
    assert_eq!(answer["warning"], warning);

    let output = decode(&[], &blocks);
    let text = stdout(&output);
    assert!(text.lines().last().unwrap().ends_with(warning), "{text}");
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    assert_eq!(value("local_addr "), Some("0x12c0c0000000"));
    assert_eq!(value("rmt_token_value "), Some("0xcafef00d"));
}

#[test]
fn decode_refuses_what_the_device_refuses_and_names_it() {
    let block = recorded(&rows()[0])[0].1.clone();
    let with_byte = |at: usize, byte: &str| {
        let mut hex = block.clone();
        hex.replace_range(2 * at..2 * at + 2, byte);
        hex
    };
    let two = rows().into_iter().find(|row| row["kind"] == "ub_write_with_notify").unwrap();
    for (blocks, code, named) in [
        (vec![with_byte(3, "31")], 1, "reserved field res1 in byte 3"),
        (vec![block.clone(), with_byte(6, "01")], 1, "producer index 1: reserved field res2 in byte 6"),
        (vec![with_byte(4, "01")], 3, "target_hint"),
        (vec![with_byte(5, "0b")], 3, "opcode 11 in byte 5"),
        (vec![with_byte(3, "b0")], 1, "owner bit 1"),
        (vec![with_byte(2, "3f")], 1, "place_order"),
        (vec![with_byte(51, "20")], 1, "above 268435456"),
        (vec![recorded(&two)[0].1.clone()], 1, "ends after its first one"),
        (vec![block[1..].to_owned()], 2, "128 hexadecimal digits"),
    ] {
        let output = decode(&[], &blocks);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(named), "{text}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(decode(&["--depth", "48"], std::slice::from_ref(&block)).status.code(), Some(2));
    let other = host_stub(["sqe", "decode-ub", "--soc", "ascend910b", &block]);
    assert_eq!(other.status.code(), Some(3), "{other:?}");
}

#[test]
fn encode_refuses_what_does_not_fit() {
    let row = rows().into_iter().find(|row| row["kind"] == "ub_write_reduce").unwrap();
    let right = args(&row).unwrap();
    for (option, value, code, named) in [
        ("--path", "0x1000000", 2, "0x1000000 is above 0xffffff"),
        ("--remote-token-id", "0x100000", 2, "0x100000 is above 0xfffff"),
        ("--depth", "48", 2, "power of two"),
        ("--eid", "+0a1a2a3a4a5a6a7a8a9aaabacadaeaf", 2, "32 hexadecimal digits"),
        ("--max", "0", 2, "--max 0"),
        ("--max", "268435457", 2, "--max 268435457"),
        ("--remote", "0xfffffffffffff001", 2, "past 2^64"),
        ("--local", "0xfffffffffffff001", 2, "past 2^64"),
        ("--reduce", "sum,fp64", 3, "the UB engine does not compute sum,fp64"),
        ("--reduce", "prod,fp32", 3, "prod,fp32"),
        ("--soc", "ascend910b", 3, "ascend910b has no UB channels"),
    ] {
        let mut args = right.clone();
        let at = args.iter().position(|arg| arg == option).unwrap();
        args[at + 1] = value.into();
        let output = host_stub(&args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{option} {value}: {text}");
        assert!(text.contains(named), "{option} {value}: {text}");
    }
}

#[test]
fn entries_of_any_length_are_printed_as_they_are_made() {
    let row = rows().into_iter().find(|row| row["kind"] == "ub_write").unwrap();
    let mut args = args(&row).unwrap();
    for (option, value) in [("--len", "8589934592"), ("--local", "0x1000"), ("--remote", "0x2000")] {
        let at = args.iter().position(|arg| arg == option).unwrap();
        args[at + 1] = value.into();
    }
    assert_eq!(stdout(&host_stub(&args)).lines().count(), 32);
}
