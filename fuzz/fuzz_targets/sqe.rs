//! Descriptors of any bytes: the simulated device's decoder never panics, and what it accepts is what its field list says.
#![no_main]

use host_stub::sim::decode::{SQE_LEN, decode, fields, task_id};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|sqe: [u8; SQE_LEN]| {
    let listed = fields(&sqe);
    let id = task_id(&sqe);
    match decode(&sqe) {
        Ok(task) => {
            let listed = listed.expect("a task that was decoded has fields");
            let value = |name: &str| listed.iter().find(|field| field.name == name).expect(name).value;
            assert_eq!(id, task.task_id);
            assert_eq!(task.src, value("src_addr"));
            assert_eq!(task.dst, value("dst_addr"));
            assert_eq!(u64::from(task.len), value("length_move"));
            assert_eq!(u64::from(task.opcode), value("opcode"));
            for field in listed.iter().filter(|field| field.name.starts_with("res")) {
                assert_eq!(field.value, 0, "reserved field {} was accepted", field.name);
            }
        }
        // The message must be printable whatever the bytes.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
