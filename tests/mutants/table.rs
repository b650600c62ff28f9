//! The bugs to plant.

use super::Mutant;

const COPY: &str = "src/copy.rs";
const QUEUE: &str = "src/queue.rs";
const BATCH: &str = "src/batch.rs";
const RING: &str = "src/ring.rs";
const SHORT: &str = "src/short.rs";
const WAIT: &str = "src/wait.rs";
const THREAD: &str = "src/thread.rs";
const TASK_ID: &str = "src/task_id.rs";
const PORT: &str = "src/port.rs";
const DEVICE: &str = "src/device.rs";
const REDUCE: &str = "src/reduce.rs";
const NOTIFY_CALLS: &str = "src/notify.rs";
const ENCODE: &str = "src/encode.rs";
const ACLRT_NOTIFY: &str = "src/aclrt_notify.rs";
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
    Mutant::new("head not read again", QUEUE, "if free < wanted {", "if false {"),
    Mutant::new(
        "head trusted",
        QUEUE,
        "|| ring.distance(head, self.rung) > outstanding",
        "|| outstanding > ring.depth",
    ),
    Mutant::new(
        "head among staged tasks taken",
        QUEUE,
        "let outstanding = ring.distance(self.head, self.rung);\n        \
         if head >= ring.depth || ring.distance(head, self.rung) > outstanding {",
        "let outstanding = ring.distance(self.head, self.tail);\n        \
         if head >= ring.depth || ring.distance(head, self.tail) > outstanding {",
    ),
    Mutant::new("depth of 1 taken", RING, "if depth < MIN_DEPTH {", "if depth < MIN_DEPTH - 1 {"),
    Mutant::new("ring address not checked", RING, "!base.0.is_multiple_of(entry)", "!base.0.is_multiple_of(8)"),
    // Publication.
    Mutant::new(
        "doorbell before slot",
        QUEUE,
        "    let (tail, flipping) = (state.tail, state.ids.flipping);",
        "    let _ = port.ring(state.ring.queue, (state.tail + group) % state.ring.depth);\n    let (tail, flipping) = (state.tail, state.ids.flipping);",
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
        "(state.tail, state.ids.flipping) = (tail, flipping);",
        "state.ids.flipping = flipping;\n        let _ = tail;",
    ),
    Mutant::new(
        "task ids used up by a refused doorbell",
        QUEUE,
        "draw.undo();\n",
        "draw.undo();\n        state.ids.range = state.ids.range.take(group.min(state.ids.range.left())).1;\n",
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
        "batch rings a queue that was reset",
        QUEUE,
        "result = if status == self.enabled {",
        "result = if status == self.enabled || true {",
    ),
    Mutant::new(
        "tasks that a reset took are told to nobody",
        QUEUE,
        "(self.lost, self.stager) = (self.stager, BatchId::NONE);",
        "self.stager = BatchId::NONE;",
    ),
    Mutant::new("lost tasks told at each end", QUEUE, "        self.lost = BatchId::NONE;\n", ""),
    Mutant::new(
        "tasks of two batches share their fate",
        QUEUE,
        "batch != state.stager && state.has_staged() {",
        "batch != state.stager && false {",
    ),
    Mutant::new(
        "staged tasks not rung for while the ring is full",
        QUEUE,
        "core.batch().keep_mishap(state.ring_staged(port, core.batch().current()))?;\n        \
         let State { ring, head, tail, .. } = *state;\n        \
         // The lock is free during the pause: another core's call on this queue has a limit of its own.\n        \
         drop(state);\n        core.batch().ring_staged(port, core.device());\n",
        "let State { ring, head, tail, .. } = *state;\n        drop(state);\n",
    ),
    Mutant::new("queue listed twice in a batch", BATCH, "if staged.listed[word] & bit != 0 {", "if false {"),
    Mutant::new(
        "queue of an ended batch listed for good",
        BATCH,
        "staged.listed[word] &= !bit;",
        "let _ = (word, bit);",
    ),
    // The long way's descriptors.
    Mutant::new("length in the word of another SoC", ENCODE, "w6 | len & low", "w6 | len & high >> 32"),
    Mutant::new("length in no word", ENCODE, "w3 | len << 32 & high", "w3"),
    Mutant::new(
        "addresses swapped",
        ENCODE,
        "w4 | src.0 & addr, w5 | dst.0 & addr",
        "w4 | dst.0 & addr, w5 | src.0 & addr",
    ),
    Mutant::new("range put into a notify", ENCODE, "len_bits: [0; 2], addr_bits: 0", "len_bits: [0; 2], addr_bits: 1"),
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
    Mutant::new("null destination goes the short way", COPY, "!(dst.is_null() || src", "!(src"),
    Mutant::new(
        "null source goes the short way",
        COPY,
        "!(dst.is_null() || src.is_null() || is_long",
        "!(dst.is_null() || is_long",
    ),
    Mutant::new("range past the end goes the short way", COPY, "is_long || (dst.0 | src.0) >> 63 != 0)", "is_long)"),
    Mutant::new("copy of nothing goes the short way", COPY, "len.wrapping_sub(1) >= MAX_CHUNK", "len > MAX_CHUNK"),
    Mutant::new("chunk one byte too long", COPY, "len.wrapping_sub(1) >= MAX_CHUNK", "len.wrapping_sub(1) > MAX_CHUNK"),
    Mutant::new(
        "null pointers go the short way of several",
        COPY,
        "if dst.is_null() || src.is_null() || len <= MAX_CHUNK",
        "if len <= MAX_CHUNK",
    ),
    Mutant::new(
        "range past the end goes the short way of several",
        COPY,
        "len > MAX_SHORT || (dst.0 | src.0) >> 63 != 0 {",
        "len > MAX_SHORT {",
    ),
    Mutant::new(
        "null pointers of a reduce go the short way",
        REDUCE,
        "if dst.is_null() || src.is_null() || is_long",
        "if is_long",
    ),
    Mutant::new("reduce between elements goes the short way", REDUCE, " || is_misaligned", ""),
    Mutant::new("reduce past the end goes the short way", REDUCE, " || bits >> 63 != 0 {", " {"),
    Mutant::new(
        "reduce of nothing goes the short way",
        REDUCE,
        "count.wrapping_sub(1) >= MAX_CHUNK >> size_log2",
        "count > MAX_CHUNK >> size_log2",
    ),
    Mutant::new("notify one past the last taken", THREAD, "if index >= count {", "if index > count {"),
    Mutant::new(
        "record to any handle the short way",
        NOTIFY_CALLS,
        "let id = Peer::look_up(core, to).ok()?.notify_id(index).ok()?;",
        "let id = Peer::look_up(core, handle).ok()?.notify_id(index).ok()?; let _ = to;",
    ),
    Mutant::new(
        "id of a notify of the host cut to 32 bits",
        ACLRT_NOTIFY,
        "u32::try_from(id).map_err(|_| bad)?",
        "id as u32",
    ),
    Mutant::new(
        "id of a notify of the host cut to 13 bits",
        ACLRT_NOTIFY,
        "u32::try_from(id).map_err(|_| bad)?",
        "u32::try_from(id).map_err(|_| bad)? & limit",
    ),
    Mutant::new("notify by id queued on an Ascend950", ACLRT_NOTIFY, "if soc == Soc::Ascend950 {", "if false {"),
    Mutant::new("short way forgets what it has rung for", SHORT, "            state.rung = next.tail;\n", ""),
    Mutant::new("short way forgets its staged task", SHORT, "    state.stager = batch;\n", ""),
    Mutant::new("batch is not told of its first task", SHORT, "    Short::First\n", "    Short::Queued\n"),
    Mutant::new(
        "short way of several forgets what it has rung for",
        SHORT,
        "(state.tail, state.rung, state.ids.range) = (next, next, ids);",
        "(state.tail, state.ids.range) = (next, ids);",
    ),
    Mutant::new(
        "short way of several gives an id twice",
        SHORT,
        "tasks.next(stamp_950(first_id + index));",
        "tasks.next(stamp_950(first_id + index.saturating_sub(1)));",
    ),
    Mutant::new(
        "limit of a kernel is the next one's",
        DEVICE,
        "        self.set_sq_full_timeout_us(SQ_FULL_TIMEOUT_US);\n",
        "",
    ),
    Mutant::new("queued bytes not told", QUEUE, "wanted, tasks.queued_len()", "wanted, 0"),
    Mutant::new(
        "suspension ignored",
        QUEUE,
        "if !matches!(status.state(), QueueStatus::ENABLED | QueueStatus::REFUSING) {",
        "if status.state() == QueueStatus::FREE {",
    ),
    Mutant::new("reset not noticed", QUEUE, "if is_new || status.epoch() != state.enabled.epoch() {", "if is_new {"),
    Mutant::new(
        "unknown status taken for enabled",
        QUEUE,
        "if !matches!(status.state(), QueueStatus::ENABLED | QueueStatus::REFUSING) {",
        "if [QueueStatus::FREE, QueueStatus::SUSPENDED].contains(&status.state()) {",
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
