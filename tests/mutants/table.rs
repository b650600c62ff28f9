//! The bugs to plant.

use super::Mutant;

const COPY: &str = "src/copy.rs";
const QUEUE: &str = "src/queue.rs";
const RING: &str = "src/ring.rs";
const SHORT: &str = "src/short.rs";
const WAIT: &str = "src/wait.rs";
const THREAD: &str = "src/thread.rs";
const TASK_ID: &str = "src/task_id.rs";
const PORT: &str = "src/port.rs";
const ENCODE: &str = "src/encode.rs";
const HEADER: &str = "src/spec/stars950/mod.rs";
const SDMA: &str = "src/spec/stars950/sdma.rs";
const NOTIFY: &str = "src/spec/stars950/notify.rs";

/// Each is one of those that others have shipped, or its nearest relative here.
pub const MUTANTS: &[Mutant] = &[
    // Lengths and addresses.
    Mutant::new(
        "length cut to 32 bits",
        COPY,
        "Self { dst, src, len, done",
        "Self { dst, src, len: len as u32 as u64, done",
    ),
    Mutant::new("chunk of 4 GiB", COPY, "u64 = (4 << 30) - (2 << 20);", "u64 = 4 << 30;"),
    Mutant::new("chunks that lose the alignment", COPY, "u64 = (4 << 30) - (2 << 20);", "u64 = (4 << 30) - 1;"),
    Mutant::new(
        "number of chunks rounded down",
        COPY,
        "(self.len - self.done).div_ceil(MAX_CHUNK)",
        "(self.len - self.done) / MAX_CHUNK",
    ),
    Mutant::new("later chunks start at the first address", COPY, "wrapping_add(self.done)", "wrapping_add(0)"),
    Mutant::new(
        "offset of a chunk cut to 32 bits",
        COPY,
        "wrapping_add(self.done)",
        "wrapping_add(self.done as u32 as u64)",
    ),
    Mutant::new("range may end one byte past the end", COPY, "len.checked_sub(1)", "len.checked_sub(2)"),
    Mutant::new("range of the destination not checked", COPY, "check_range(dst, len)?;", ""),
    Mutant::new("null check of the source missing", COPY, "if src.is_null() {", "if false {"),
    Mutant::new("null check of the destination missing", COPY, "if dst.is_null() {", "if false {"),
    Mutant::new(
        "source and destination swapped in a chunk",
        COPY,
        "dst: at(self.dst), src: at(self.src)",
        "dst: at(self.src), src: at(self.dst)",
    ),
    // Descriptors.
    Mutant::new(
        "source and destination swapped",
        SDMA,
        "src: self.src,\n            dst: self.dst,",
        "src: self.dst,\n            dst: self.src,",
    ),
    Mutant::new(
        "reserved bits of the slot kept",
        PORT,
        ".chunks_exact(2).enumerate()",
        ".chunks_exact(2).enumerate().take(3)",
    ),
    Mutant::new("reserved word not zero", SDMA, "partition_and_streams: [0; 3]", "partition_and_streams: [0, 0, 1]"),
    Mutant::new(
        "carry of the task id lost",
        HEADER,
        ".with_sqe_type(sqe_type.0), task_id }",
        ".with_sqe_type(sqe_type.0), task_id: task_id & 0xffff }",
    ),
    Mutant::new(
        "halves of the task id swapped",
        HEADER,
        ".with_sqe_type(sqe_type.0), task_id }",
        ".with_sqe_type(sqe_type.0), task_id: task_id.rotate_left(16) }",
    ),
    Mutant::new("wait with the credit of a copy", NOTIFY, "CREDIT_NEVER, self", "CREDIT_DEFAULT, self"),
    Mutant::new(
        "opcode of a reduce lost",
        ENCODE,
        "stars950::Sdma::new(src, dst, len).with_opcode(opcode).build(task_id)",
        "{ let _ = opcode; stars950::Sdma::new(src, dst, len).build(task_id) }",
    ),
    // The ring.
    Mutant::new("no wrap", RING, "if index + 1 == self.depth { 0 }", "if false { 0 }"),
    Mutant::new("wrap at depth - 1", RING, "if index + 1 == self.depth { 0 }", "if index + 2 == self.depth { 0 }"),
    Mutant::new("wrap one entry late", RING, "if index + 1 == self.depth { 0 }", "if index == self.depth { 0 }"),
    Mutant::new(
        "full one entry late",
        QUEUE,
        "self.ring.depth - 1 - self.ring.distance",
        "self.ring.depth - self.ring.distance",
    ),
    Mutant::new(
        "full one entry early",
        QUEUE,
        "self.ring.depth - 1 - self.ring.distance",
        "(self.ring.depth - 1).saturating_sub(1) - self.ring.distance",
    ),
    Mutant::new("short way fills the last entry", QUEUE, "{ self.head - 1 }", "{ self.head }"),
    Mutant::new(
        "short way goes past the end of the ring",
        QUEUE,
        "else { self.ring.depth - 1 };",
        "else { self.ring.depth };",
    ),
    Mutant::new("short way goes on over a full ring", SHORT, "& (state.tail != state.short_end)", ""),
    Mutant::new(
        "short way of several fills the last entry",
        SHORT,
        "count > state.short_end - state.tail",
        "count > state.short_end + 1 - state.tail",
    ),
    Mutant::new(
        "short way goes on into the next block of ids",
        QUEUE,
        "self.ids.range.left().min(end - self.tail)",
        "(end - self.tail)",
    ),
    Mutant::new(
        "short way as long as before the staged tasks were dropped",
        QUEUE,
        "(self.tail, self.stager) = (self.rung, BatchId::NONE);\n            self.open_short_way();",
        "(self.tail, self.stager) = (self.rung, BatchId::NONE);",
    ),
    Mutant::new("head not read again", QUEUE, "if state.free() < wanted {", "if false {"),
    Mutant::new(
        "head trusted",
        QUEUE,
        "|| ring.distance(head, self.tail) > outstanding",
        "|| outstanding > ring.depth",
    ),
    Mutant::new("depth of 1 taken", RING, "if depth < MIN_DEPTH {", "if depth < MIN_DEPTH - 1 {"),
    Mutant::new("ring address not checked", RING, "!base.0.is_multiple_of(entry)", "!base.0.is_multiple_of(8)"),
    // Publication.
    Mutant::new(
        "doorbell before slot",
        QUEUE,
        "    let before = (state.tail, state.ids);",
        "    let _ = port.ring(state.ring.queue, (state.tail + group) % state.ring.depth);\n    let before = (state.tail, state.ids);",
    ),
    Mutant::new(
        "doorbell before slot, short way",
        SHORT,
        "    let (task_id, ids) = state.ids.range.take(1);",
        "    let _ = port.ring(state.ring.queue, tail + 1);\n    let (task_id, ids) = state.ids.range.take(1);",
    ),
    Mutant::new(
        "no barrier",
        QUEUE,
        "port.store_barrier();\n        if port.ring(self.ring.queue",
        "if port.ring(self.ring.queue",
    ),
    Mutant::new(
        "no barrier, short way",
        SHORT,
        "port.store_barrier();\n            if port.ring(state.ring.queue",
        "if port.ring(state.ring.queue",
    ),
    Mutant::new(
        "no barrier, short way of several",
        SHORT,
        "port.store_barrier();\n    if port.ring(ring.queue",
        "if port.ring(ring.queue",
    ),
    Mutant::new(
        "tail advanced on a refused doorbell",
        QUEUE,
        "(state.tail, state.ids) = before;",
        "state.ids = before.1;",
    ),
    Mutant::new(
        "task ids used up by a refused doorbell",
        QUEUE,
        "(state.tail, state.ids) = before;",
        "state.tail = before.0;\n        state.ids.range = state.ids.range.take(group.min(state.ids.range.left())).1;",
    ),
    Mutant::new("block of ids used up by a refused doorbell", QUEUE, "draw.undo();", "draw.finish();"),
    Mutant::new(
        "short way takes a refused doorbell for a good one",
        SHORT,
        "return Short::Refused { sq_id: state.ring.queue.sq_id };",
        "",
    ),
    Mutant::new(
        "short way of several takes a refused doorbell for a good one",
        SHORT,
        "return Short::Refused { sq_id: ring.queue.sq_id };",
        "",
    ),
    Mutant::new(
        "staged tasks run after a refused batch",
        QUEUE,
        "        self.drop_staged(batch);\n        result",
        "        result",
    ),
    Mutant::new(
        "tasks of two batches share their fate",
        QUEUE,
        "batch != state.stager && state.has_staged() {",
        "batch != state.stager && false {",
    ),
    Mutant::new(
        "staged tasks not rung for while the ring is full",
        QUEUE,
        "state.ring_staged(port, core.batch().current()).inspect_err(|error| core.batch().note_error(*error))?;\n        \
         let State { ring, head, tail, .. } = *state;\n        \
         // The lock is free during the pause: another core's call on this queue has a limit of its own.\n        \
         drop(state);\n        core.batch().ring_staged(port, core.device());\n",
        "let State { ring, head, tail, .. } = *state;\n        drop(state);\n",
    ),
    // Handles and status.
    Mutant::new(
        "stale handle accepted",
        THREAD,
        "bits.load(Ordering::Acquire) == DescriptorTag::live(self.0.generation()).to_bits()",
        "bits.load(Ordering::Acquire) << 16 == DescriptorTag::live(self.0.generation()).to_bits() << 16",
    ),
    Mutant::new("handle one past the table accepted", THREAD, "if offset >= len", "if offset > len"),
    Mutant::new("thread of any engine accepted", THREAD, "if engine != Engine::AICPU_TS {", "if false {"),
    Mutant::new(
        "short way ignores the status word",
        SHORT,
        "let is_enabled = port.status(state.ring.queue) == state.enabled;",
        "let is_enabled = true;",
    ),
    Mutant::new(
        "short way of several ignores the status word",
        SHORT,
        " || port.status(state.ring.queue) != state.enabled {",
        " {",
    ),
    Mutant::new("short way takes any handle", SHORT, "(state.handle == handle) & ", ""),
    Mutant::new(
        "short way stages among the tasks of another batch",
        SHORT,
        "if !is_enabled || state.has_staged() {",
        "if !is_enabled {",
    ),
    Mutant::new("null pointers go the short way", COPY, "!(dst.is_null() || src.is_null() || is_long", "!(is_long"),
    Mutant::new(
        "suspension ignored",
        QUEUE,
        "QueueStatus::SUSPENDED => return Err(Error::Suspended { sq_id }),",
        "QueueStatus::SUSPENDED => {}",
    ),
    Mutant::new("reset not noticed", QUEUE, "if status.epoch() != state.enabled.epoch() {", "if false {"),
    Mutant::new(
        "unknown status taken for enabled",
        QUEUE,
        "_ => return Err(Error::BadHandle(thread.handle())),",
        "_ => {}",
    ),
    // Waits.
    Mutant::new(
        "wait that never ends",
        WAIT,
        "saturating_sub(self.since_us) >= limit)",
        "saturating_sub(self.since_us) > u64::MAX - 1)",
    ),
    Mutant::new(
        "no limit taken for none at all",
        QUEUE,
        "Some(core.sq_full_timeout_us()).filter(|us| *us != 0)",
        "Some(core.sq_full_timeout_us())",
    ),
    Mutant::new("pause without a cap", WAIT, "saturating_mul(2).min(PAUSE_NS.1)", "saturating_mul(2)"),
    // Task ids.
    Mutant::new(
        "block in use given out again",
        TASK_ID,
        "|| !held.clone().any(|held| held.is(block))",
        "|| { let _ = &held; true }",
    ),
    Mutant::new(
        "block has an id too many",
        TASK_ID,
        "self.0.wrapping_neg() % BLOCK_LEN",
        "self.0.wrapping_neg() % (2 * BLOCK_LEN)",
    ),
];
