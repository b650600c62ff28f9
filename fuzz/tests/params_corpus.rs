//! What the inputs that a fuzz run of params starts from reach. Those with a name of their own give the answer of their name: a
//! corpus that has been left behind by a change of the format shows here.

mod corpus;
#[path = "../checks/params.rs"]
mod params;

#[test]
fn every_file_is_answered_as_its_name_says() {
    let corpus = corpus::read("params");
    // Code and doorbells: the device runs each task at once, and the ring has room for four.
    for (name, answer) in [
        ("copy", (0, 1)),
        ("len_0", (0, 0)),
        ("two_chunks", (0, 1)),
        ("many_chunks", (0, 257)),
        ("in_step", (0, 1)),
        ("in_step_many_chunks", (0, 5)),
        ("no_thread", (2, 0)),
        ("null_dst", (2, 0)),
        ("null_src", (2, 0)),
        ("no_start_notify", (2, 0)),
        ("no_end_notify", (2, 1)),
        ("wild_thread", (6, 0)),
        ("cpu_thread", (6, 0)),
        ("no_cpu_thread", (6, 1)),
        ("too_large", (1, 0)),
        ("past_the_end", (1, 0)),
        ("other_kernel", (1, 0)),
        ("other_version", (1, 0)),
        ("other_size", (1, 0)),
        ("head_only", (1, 0)),
    ] {
        assert_eq!(params::check(&corpus[name]), Some(answer), "{name}");
    }
    corpus.values().for_each(|bytes| _ = params::check(bytes));
}
