#!/usr/bin/env bash
# Builds what the AI CPU `linux` runs, for AArch64 Linux: hcomm-runner, libccl_kernel.so and libhcomm_kernels.so.
#
#   scripts/linux.sh [DIR]      DIR: target folder/aarch64-unknown-linux-gnu/linux
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly TARGET=aarch64-unknown-linux-gnu
TARGET_DIR=$(scripts/target_dir.sh)
readonly TARGET_DIR
readonly OUT=${1:-$TARGET_DIR/$TARGET/linux}
readonly BUILT=$TARGET_DIR/$TARGET/image
readonly CC=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$CC

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$OUT"

# The entry points of kernels, without those for platforms in C.
sed 's/#.*//; /^[[:space:]]*$/d' docs/abi.txt | grep '^Hcomm' > "$work/names"
# And what the runner's program, the stock kernels and hcomm/hcomm_log.h need of it. No versions: a library that is linked with this one must load
# where the vendor's is.
{ echo '{ global: hcomm_runner_main; hcomm_port_refused; hcomm_log_line;'; sed 's/$/;/' "$work/names"; echo 'local: *; };'; } > "$work/names.map"

# The fault reports walk the frame pointers. No unwinding: what leaves a kernel ends the process where it was thrown.
cargo rustc --locked -p hcomm-runner --lib --crate-type staticlib --features device --profile image --target $TARGET \
    -- -C panic=abort -C force-frame-pointers=yes
undefined=$(sed 's/^/-Wl,--undefined=/' "$work/names")
# shellcheck disable=SC2086 # One option a word.
$CC -shared -o "$work/libccl_kernel.so" -Wl,-soname,libccl_kernel.so -Wl,--version-script="$work/names.map" \
    -Wl,--gc-sections,-z,relro,-z,now,-z,nodelete,--no-undefined $undefined -Wl,--undefined=hcomm_runner_main -Wl,--undefined=hcomm_log_line \
    "$BUILT/libhcomm_runner.a" -lgcc_s -lpthread -ldl -lc
mv "$work/libccl_kernel.so" "$OUT/"

# The old kind of tag comes before LD_LIBRARY_PATH, which may name a folder with a libccl_kernel.so for programs of this machine.
cargo rustc --locked -p hcomm-runner --bin hcomm-runner --features program --profile image --target $TARGET \
    -- -C panic=abort -L "native=$OUT" -C "link-arg=-Wl,-rpath,\$ORIGIN,--disable-new-dtags"
cp "$BUILT/hcomm-runner" "$work/hcomm-runner"
mv "$work/hcomm-runner" "$OUT/"

# The stock kernels, which call the entry points of libccl_kernel.so. Only kernels are exported.
# Its own libccl_kernel.so takes limits as float, as the newest of the vendor's do.
sed 's/#.*//; /^[[:space:]]*$/d' kernel/linux/kernels.txt > "$work/kernels"
{ echo '{ global:'; sed 's/$/;/' "$work/kernels"; echo 'local: *; };'; } > "$work/kernels.map"
cargo rustc --locked -p hcomm-kernel --lib --crate-type staticlib --features linux,timeout-f32 --profile image --target $TARGET \
    -- -C panic=abort -C force-frame-pointers=yes
undefined=$(sed 's/^/-Wl,--undefined=/' "$work/kernels")
# shellcheck disable=SC2086 # One option a word.
$CC -shared -nostdlib -o "$work/libhcomm_kernels.so" -Wl,-soname,libhcomm_kernels.so \
    -Wl,--version-script="$work/kernels.map" -Wl,--gc-sections,-z,relro $undefined \
    "$BUILT/libhcomm_kernel.a" -lc
mv "$work/libhcomm_kernels.so" "$OUT/"
