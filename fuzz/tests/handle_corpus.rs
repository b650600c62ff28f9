//! What the inputs that a fuzz run of handle starts from reach. Those with a name of their own give the answer of their name: a
//! corpus that has been left behind by a change of the format shows here.

mod corpus;
#[path = "../checks/handle.rs"]
mod handle;

#[test]
fn every_file_is_answered_as_its_name_says() {
    let corpus = corpus::read("handle");
    // Code, and whether a notify can be sent there.
    for (name, answer) in [
        ("live", (0, true)),
        ("other_engine", (6, true)),
        ("null", (2, false)),
        ("one", (6, false)),
        ("max", (6, false)),
        ("unaligned", (6, false)),
        ("before_the_table", (6, false)),
        ("past_the_table", (6, false)),
        ("unused_slot", (6, false)),
        ("old_generation", (6, false)),
        ("generation_0", (6, false)),
    ] {
        assert_eq!(handle::check(&corpus[name]), Some(answer), "{name}");
    }
    corpus.values().for_each(|bytes| _ = handle::check(bytes));
}
