#!/usr/bin/env bash
# Builds an image of the AI CPU with kernels that are written in C or C++.
#
#   scripts/kernel_image.sh OUT KERNEL...      KERNEL: C (.c) or C++ (.cc, .cpp) files
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -lt 2 ]; then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
out=$1
shift

readonly TARGET=aarch64-unknown-none
readonly TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# No system, no position-independent code, no calls into libgcc; unwind tables have no reader.
readonly FLAGS="-O2 -g -Wall -Wextra -ffreestanding -fno-pic -fno-pie -fno-stack-protector -fno-omit-frame-pointer
    -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -march=armv8-a -DHCOMM_DEVICE_IMAGE -Iinclude"
readonly CXX_FLAGS="-std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-use-cxa-atexit"

# The compiler for the device: clang if it is asked for by DEVICE_CC, else the cross compiler of the distribution.
cc=${DEVICE_CC:-aarch64-linux-gnu-gcc}
cxx=${DEVICE_CXX:-aarch64-linux-gnu-g++}
target_flags() {
    case ${1##*/} in
        clang*) printf '%s' "--target=$TARGET" ;;
        *) printf '%s' "-mno-outline-atomics" ;;
    esac
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=
for source in "$@"; do
    # Named after the source with its folder, so that two files of one name do not meet.
    object=$work/$(printf '%s' "$source" | tr '/.' '__').o
    case $source in
        # shellcheck disable=SC2086 # the flags are words
        *.c) "$cc" $(target_flags "$cc") $FLAGS -std=c11 -c "$source" -o "$object" ;;
        # shellcheck disable=SC2086
        *.cc | *.cpp) "$cxx" $(target_flags "$cxx") $FLAGS $CXX_FLAGS -c "$source" -o "$object" ;;
        *)
            printf 'kernel_image: %s is neither C (.c) nor C++ (.cc, .cpp)\n' "$source" >&2
            exit 2
            ;;
    esac
    objects=$objects${objects:+:}$object
done
HCOMM_KERNEL_OBJECTS=$objects cargo build --locked -p hcomm-kernel --features image --target "$TARGET" --profile image-c
mkdir -p "$(dirname "$out")"
cp "$TARGET_DIR/$TARGET/image-c/hcomm-image" "$out.new"
mv "$out.new" "$out"
printf 'device image with %s: %s\n' "$*" "$out"
