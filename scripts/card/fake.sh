#!/usr/bin/env bash
# Builds the stand-in for a card's driver library, libascend_hal.so, that tests load: for AArch64 Linux and for this machine.
#
#   scripts/card/fake.sh DIR      DIR/libascend_hal.so and DIR/host/libascend_hal.so
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1/host"
dir=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TARGET_DIR=$(scripts/target_dir.sh)
readonly TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc

cargo build --locked -p hcomm-fake-hal --release --target $TARGET
cargo build --locked -p hcomm-fake-hal --release
# Replaced, not written: a program that runs keeps the one it has.
cp "$TARGET_DIR/$TARGET/release/libascend_hal.so" "$dir/.new" && mv "$dir/.new" "$dir/libascend_hal.so"
cp "$TARGET_DIR/release/libascend_hal.so" "$dir/.new" && mv "$dir/.new" "$dir/host/libascend_hal.so"
