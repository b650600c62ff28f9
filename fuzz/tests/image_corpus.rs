//! What the inputs that a fuzz run of image starts from reach. Those with a name of their own give the answer of their name: a
//! corpus that has been left behind by a change of the format shows here.

mod corpus;
#[path = "../checks/image.rs"]
mod image;

#[test]
fn every_file_is_answered_as_its_name_says() {
    let corpus = corpus::read("image");
    for (name, answer) in [
        ("two_kernels", "accepted"),
        ("no_kernels", "accepted"),
        ("text", "is not an elf file"),
        ("32_bit", "is a 32-bit elf file"),
        ("big_endian", "is a big-endian elf file"),
        ("x86_64", "is for machine x86-64"),
        ("flags", "has elf flags 0x1"),
        ("shared_object", "has elf type 3"),
        ("head_only", "is truncated or damaged: Invalid ELF program header"),
        ("truncated", "is truncated or damaged: the file ends before segment"),
        ("outside", "segment of 144 bytes at 0x0 is not in"),
        ("start_outside", "is truncated or damaged: its entry 0x40100000"),
        ("entry_outside", "is truncated or damaged: section .kernels: kernel local_copy at"),
        ("no_name", "is truncated or damaged: section .kernels: no name at 0x0"),
    ] {
        let found = image::check(&corpus[name]);
        assert!(found.starts_with(answer), "{name}: {found}");
    }
    corpus.values().for_each(|file| drop(image::check(file)));
}
