//! Descriptors of any bytes, for every SoC: the simulated device's decoder never panics, and what it accepts is what its field
//! list says.

use hcomm_aicpu::spec::soc::Soc;
use host_stub::sim::decode::{Action, SQE_LEN, decode, fields, task_id};

/// What each SoC made of the first 64 bytes.
pub fn check(bytes: &[u8]) -> Vec<String> {
    let Some(sqe) = bytes.first_chunk::<SQE_LEN>() else { return Vec::new() };
    Soc::ALL.into_iter().map(|soc| check_for(soc, sqe)).collect()
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
            for field in listed.iter().filter(|field| field.name.starts_with("res")) {
                assert_eq!(field.value, 0, "reserved field {} was accepted", field.name);
            }
            format!("{soc:?} {}", variant(&task.action))
        }
        Err(error) => {
            // The message must be printable whatever the bytes.
            assert!(!error.to_string().is_empty());
            format!("{soc:?} {}", variant(&error))
        }
    }
}

/// Name of a variant.
fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}
