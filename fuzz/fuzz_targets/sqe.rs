//! Descriptors of any bytes, for every SoC: the simulated device's decoder never panics, and what it accepts is what its field
//! list says.
#![no_main]

use hcomm_aicpu::spec::soc::Soc;
use host_stub::sim::decode::{Action, SQE_LEN, decode, fields, task_id};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|sqe: [u8; SQE_LEN]| {
    for soc in Soc::ALL {
        let listed = fields(soc, &sqe);
        let id = task_id(soc, &sqe);
        match decode(soc, &sqe) {
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
            }
            // The message must be printable whatever the bytes.
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
