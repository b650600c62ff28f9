#!/usr/bin/env bash
# Builds the stand-ins for a card's libraries that tests load: that of the driver, libascend_hal.so, for AArch64 Linux and for this
# machine; that of the runtime, libascendcl.so and libruntime.so, for this machine.
#
#   scripts/card/fake.sh DIR      DIR/libascend_hal.so, DIR/host/{libascend_hal,libascendcl,libruntime}.so
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1/host"
dir=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TARGET_DIR=$(scripts/target_dir.sh)
readonly TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc

cargo build --locked -p hcomm-fake-hal --release --target $TARGET
cargo build --locked -p hcomm-fake-hal --release
# With the profile of the tests: the simulated device is in it.
cargo build --locked -p hcomm-fake-acl
# Replaced, not written: a program that runs keeps the one it has.
cp "$TARGET_DIR/$TARGET/release/libascend_hal.so" "$dir/.new" && mv "$dir/.new" "$dir/libascend_hal.so"
cp "$TARGET_DIR/release/libascend_hal.so" "$dir/.new" && mv "$dir/.new" "$dir/host/libascend_hal.so"
cp "$TARGET_DIR/debug/libascendcl.so" "$dir/.new" && mv "$dir/.new" "$dir/host/libascendcl.so"
# One file: the stand-in has one state.
ln -sf libascendcl.so "$dir/host/libruntime.so"
