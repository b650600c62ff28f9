//! Instructions of a call in the library of a card's kernels, counted exactly: qemu-aarch64 executes one instruction at a time and
//! writes down each of the library. The driver is one of the program, whose head is always at the tail. No time, and no card.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hcomm_kernel::BenchOp;
use hcomm_testkit::{root, target_dir};
use object::{Object, ObjectSymbol};

/// Seconds after which a program is killed.
const LIMIT: &str = "300";
/// Bytes of the library's code at most: none of the program's lies as near behind it.
const CODE: u64 = 256 << 10;

fn library() -> PathBuf {
    let path = target_dir().join("card/libhcomm_card.so");
    assert!(path.exists(), "{} is not there: build it with `make card`", path.display());
    path
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// What the library has executed.
struct Trace {
    /// Addresses in the library; `None`: the program's doorbell function begins.
    steps: Vec<Option<u64>>,
}

struct Counter {
    program: PathBuf,
    log: PathBuf,
    /// Where the library is mapped, and the doorbell's function.
    places: [u64; 2],
}

impl Counter {
    fn new(folder: &Path) -> Self {
        let program = folder.join("card_count");
        let mut gcc = Command::new("aarch64-linux-gnu-gcc");
        gcc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-o"]).arg(&program);
        run(gcc.arg(root().join("tests/c/card_count.c")).arg("-ldl"));
        let mut counter = Self { program, log: folder.join("log"), places: [0; 2] };
        counter.places = counter.execute(&[], BenchOp::NOTHING, 0, 0);
        counter
    }

    fn execute(&self, options: &[&str], op: BenchOp, count: u64, batch: u64) -> [u64; 2] {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", LIMIT, "qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]).args(options);
        command.arg(&self.program).arg(library()).args([op.0, count, batch].map(|number| number.to_string()));
        let text = run(&mut command);
        let mut places = text.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap());
        [places.next().unwrap(), places.next().unwrap()]
    }

    fn trace(&self, op: BenchOp, count: u64, batch: u64) -> Trace {
        let [base, doorbell] = self.places;
        let filter = format!("{base:#x}..{:#x},{doorbell:#x}..{doorbell:#x}", base + CODE);
        let log = self.log.to_str().unwrap();
        let options = ["-singlestep", "-d", "exec,nochain", "-D", log, "-dfilter", &filter];
        assert_eq!(self.execute(&options, op, count, batch), self.places, "mapped elsewhere than before");
        let text = fs::read_to_string(&self.log).unwrap();
        // Trace 0: host address [flags/program counter/flags/flags]
        let address = |line: &str| u64::from_str_radix(line.split(['[', '/']).nth(2).unwrap(), 16).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("Trace")).map(address);
        Trace { steps: lines.map(|address| (address != doorbell).then(|| address - base)).collect() }
    }

    /// Instructions of the library for each of 200 calls, in hundredths.
    fn per_call(&self, op: BenchOp, batch: u64) -> u64 {
        let [less, more] = [100, 300]
            .map(|count| self.trace(op, count, batch).steps.iter().filter(|step| step.is_some()).count() as u64);
        (more - less) / 2
    }
}

/// Address of an entry point in the library: its names stay, they are only not exported.
fn entry_point(name: &str) -> u64 {
    let data = fs::read(library()).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let mangled = format!("_ZN11hcomm_aicpu3abi{}{name}17h", name.len());
    let mut found = file.symbols().filter(|symbol| symbol.name().is_ok_and(|name| name.starts_with(&mangled)));
    found.next().unwrap_or_else(|| panic!("no symbol {mangled}")).address()
}

/// Case 434.
#[test]
fn a_call_takes_so_many_instructions_to_the_driver() {
    let folder = target_dir().join("tmp/card_counts");
    fs::create_dir_all(&folder).unwrap();
    let counter = Counter::new(&folder);

    // From the entry point to the driver's function, of each call but the first, which opens the fast path.
    let entry = entry_point("HcommLocalCopyOnThread");
    let steps = counter.trace(BenchOp::COPY, 100, 0).steps;
    let mut counts: Vec<usize> = Vec::new();
    for call in steps.split_inclusive(Option::is_none) {
        if call.last() == Some(&None) {
            let begin = call.iter().rposition(|step| *step == Some(entry)).unwrap();
            counts.push(call.len() - 1 - begin);
        }
    }
    assert_eq!(counts.len(), 100, "one doorbell a copy");
    assert!(counts[1..].iter().all(|count| *count == counts[1]), "{counts:?}");

    // Whole calls, the way back from the driver included, above one that does nothing.
    let nothing = counter.per_call(BenchOp::NOTHING, 0);
    let whole = |op, batch| counter.per_call(op, batch) - nothing;
    let (eager, batch) = (whole(BenchOp::COPY, 0), whole(BenchOp::COPY, 100));
    let (record, reduce) = (whole(BenchOp::NOTIFY_RECORD, 0), whole(BenchOp::REDUCE, 0));
    println!(
        "to the driver {}; whole, in hundredths: eager {eager}, batch {batch}, record {record}, reduce {reduce}",
        counts[1]
    );
    assert!(counts[1] <= 110, "{} instructions to the driver, at most 110", counts[1]);
    assert!(batch <= 7_500, "{batch} hundredths of an instruction in a batch, at most 7500");
    assert!(eager <= 12_000 && record <= 14_000 && reduce <= 16_000, "eager {eager}, record {record}, reduce {reduce}");
}
