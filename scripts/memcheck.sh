#!/usr/bin/env bash
# Valgrind over the native CPU: a read or write outside its memory, a value that nobody set, or lost memory fails it.
#
#   scripts/memcheck.sh         the launcher's commands, its unit tests, random sequences and two cores on one handle
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
runner=CARGO_TARGET_$(printf '%s' "$host" | tr 'a-z-' 'A-Z_')_RUNNER
# One thread runs at a time there: `--fair-sched` keeps one that spins from starving the others.
export "$runner=valgrind -q --error-exitcode=9 --fair-sched=try --leak-check=full --errors-for-leak-kinds=definite \
--suppressions=$PWD/tests/c/valgrind.supp"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
head -c 3000001 /dev/urandom >"$folder/in"

cargo run --quiet --locked -p host-stub -- run --cpu native
cargo run --quiet --locked -p host-stub -- copy --cpu native "$folder/in" "$folder/out"
cmp "$folder/in" "$folder/out"
cargo test --quiet --locked -p host-stub --lib -- --test-threads=1
HCOMM_MODEL_CASES=10 HCOMM_STRESS_SEEDS=10 \
    cargo test --quiet --locked -p hcomm-aicpu --test model --test stress -- --test-threads=1
