#!/usr/bin/env bash
# Changes the code in each way that cargo-mutants knows, one at a time, and runs the unit tests of the package: they must fail.
#
#   scripts/mutants.sh [i/n]      of n equal parts the one numbered i, from 0
#
# What is changed and run stands in .cargo/mutants.toml; what was found in target/mutants.out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

options=(--output "$(scripts/target_dir.sh)" --no-shuffle --jobs "${JOBS:-2}" --colors never)
[ $# -eq 0 ] || options+=(--shard "$1")
cargo mutants --package hcomm-aicpu --package hcomm-sim "${options[@]}"
