//! Descriptors and work entries of any bytes, for every SoC: the simulated device's decoders never panic, and what they accept
//! is what their field lists say.

use hcomm_aicpu::spec::soc::Soc;
use host_stub::sim::decode::{Action, Field, SQE_LEN, decode, fields, task_id, ub};

/// What each SoC made of the first 64 bytes, and what they are as a work entry, with the 64 bytes after them if it has two blocks.
pub fn check(bytes: &[u8]) -> Vec<String> {
    let Some(sqe) = bytes.first_chunk::<SQE_LEN>() else { return Vec::new() };
    let entry = check_entry(sqe, bytes[SQE_LEN..].first_chunk());
    Soc::ALL.into_iter().map(|soc| check_for(soc, sqe)).chain([entry]).collect()
}

fn check_entry(first: &[u8; ub::BLOCK_LEN], second: Option<&[u8; ub::BLOCK_LEN]>) -> String {
    match ub::decode(first, second) {
        Ok(entry) => {
            let listed = ub::fields(first, second).expect("an entry that was decoded has fields");
            check_reserved(&listed);
            let value = |name: &str| listed.iter().find(|field| field.name == name).expect(name).value;
            assert_eq!((entry.remote.addr, u64::from(entry.path)), (value("rmt_addr"), value("path")));
            format!("work entry {}", entry.name())
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            format!("work entry {error}")
        }
    }
}

fn check_reserved(listed: &[Field]) {
    for field in listed.iter().filter(|field| field.name.starts_with("res")) {
        assert_eq!(field.value, 0, "reserved field {} was accepted", field.name);
    }
}

fn check_for(soc: Soc, sqe: &[u8; SQE_LEN]) -> String {
    let listed = fields(soc, sqe);
    let id = task_id(soc, sqe);
    match decode(soc, sqe) {
        Ok(task) => {
            let listed = listed.expect("a task that was decoded has fields");
            let value = |name: &str| listed.iter().find(|field| field.name == name).expect(name).value;
            assert_eq!(id, task.task_id);
            if let Action::Sdma { src, dst, opcode, .. } = task.action {
                assert_eq!((src, dst), (value("src_addr"), value("dst_addr")));
                assert_eq!(u64::from(opcode), value("opcode"));
            }
            check_reserved(&listed);
            format!("{soc:?} {}", variant(&task.action))
        }
        Err(error) => {
            // The message must be printable whatever the bytes.
            assert!(!error.to_string().is_empty());
            format!("{soc:?} {error}")
        }
    }
}

/// Name of a variant.
fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}
