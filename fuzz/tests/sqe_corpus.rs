//! What the inputs that a fuzz run of sqe starts from reach. Those with a name of their own give an answer that begins as here: a
//! corpus that has been left behind by a change of the format shows here.

mod corpus;
#[path = "../checks/sqe.rs"]
mod sqe;

#[test]
fn every_file_is_answered_as_its_name_says() {
    let corpus = corpus::read("sqe");
    for (name, answer) in [
        ("950_copy", "Ascend950 Sdma"),
        ("950_reduce", "Ascend950 Sdma"),
        ("950_record", "Ascend950 Record"),
        ("950_record_bits", "Ascend950 Record"),
        ("950_record_value", "Ascend950 Record"),
        ("950_wait", "Ascend950 Wait"),
        ("950_wait_any_of", "Ascend950 Wait"),
        ("950_wait_equal", "Ascend950 Wait"),
        ("950_write", "Ascend950 WriteValue"),
        ("950_write_64", "Ascend950 field "),
        ("950_doorbell", "Ascend950 UbDoorbell"),
        ("950_reserved_bit", "Ascend950 reserved field "),
        ("zero", "Ascend950 descriptor type "),
        ("ub_write_reduce", "work entry write reduce"),
        ("ub_read", "work entry read"),
        ("ub_record", "work entry notify record"),
        ("ub_write_with_notify", "work entry write with notify"),
        ("950_copy", "work entry opcode "),
        ("910_copy", "Ascend910B Sdma"),
        ("910_copy", "Ascend910_93 Sdma"),
        ("910_uint8_sum", "Ascend910B opcode "),
        ("910_wait", "Ascend910B Wait"),
        ("910_place_holder", "Ascend910B PlaceHolder"),
    ] {
        let found = sqe::check(&corpus[name]);
        assert!(found.iter().any(|found| found.starts_with(answer)), "{name}: {found:?}");
    }
    corpus.values().for_each(|sqe| drop(sqe::check(sqe)));
}
