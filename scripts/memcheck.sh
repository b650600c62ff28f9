#!/usr/bin/env bash
# Valgrind over the native CPU: an invalid read or write, an uninitialised value, or a leak fails it.
#
#   scripts/memcheck.sh         the launcher's commands, unit tests of the device, and random sequences
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
host=$(rustc -vV | sed -n 's/^host: //p')
# One thread runs at a time there: `--fair-sched` keeps one that spins from starving the others. A suppression names a
# function of the program, which inlined ones would hide.
valgrind="valgrind -q --error-exitcode=9 --fair-sched=try --read-inline-info=no --leak-check=full \
--errors-for-leak-kinds=definite --suppressions=$PWD/tests/c/valgrind.supp"
# The same packages each time, so that nothing is built twice.
cargo build --quiet --locked -p host-stub --bin host-stub
cargo test --quiet --locked -p hcomm-sim -p hcomm-mapping -p hcomm-tests --no-run --lib --test model

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
head -c 3000001 /dev/urandom >"$folder/in"
$valgrind "$target/debug/host-stub" run --cpu native
$valgrind "$target/debug/host-stub" copy --cpu native "$folder/in" "$folder/out"
cmp "$folder/in" "$folder/out"

# Cargo runs tests through it.
export "CARGO_TARGET_$(printf '%s' "$host" | tr 'a-z-' 'A-Z_')_RUNNER=$valgrind"
cargo test --quiet --locked -p hcomm-sim -p hcomm-mapping --lib -- --test-threads=1
HCOMM_MODEL_CASES=10 cargo test --quiet --locked -p hcomm-tests --test model -- --test-threads=1
