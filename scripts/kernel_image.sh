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
TARGET_DIR=$(scripts/target_dir.sh)
readonly TARGET_DIR
# No system, no position-independent code, no calls into libgcc; unwind tables have no reader.
readonly FLAGS="-O2 -g -Wall -Wextra -ffreestanding -fno-pic -fno-pie -fno-stack-protector -fno-omit-frame-pointer
    -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -march=armv8-a -DHCOMM_DEVICE_IMAGE -Iinclude"
readonly CXX_FLAGS="-std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-use-cxa-atexit"

# The compiler for the device: what DEVICE_CC and DEVICE_CXX name, else the cross compiler of the distribution. Any clang
# can make code for the device.
cc=${DEVICE_CC:-aarch64-linux-gnu-gcc}
cxx=${DEVICE_CXX:-aarch64-linux-gnu-g++}
is_clang() { case ${1##*/} in clang*) true ;; *) false ;; esac; }

# Flags of compiler $1, which variable $2 names; stops if it is not there, or makes code for another machine.
target_flags() {
    if ! command -v "$1" >/dev/null; then
        printf 'kernel_image: there is no compiler %s; %s names another, such as clang\n' "$1" "$2" >&2
        return 1
    fi
    if is_clang "$1"; then
        printf '%s' "--target=$TARGET"
        return
    fi
    local machine
    machine=$("$1" -dumpmachine)
    case $machine in
        aarch64*) printf '%s' "-mno-outline-atomics" ;;
        *)
            printf 'kernel_image: %s makes code for %s, not for AArch64; %s names another compiler\n' "$1" "$machine" \
                "$2" >&2
            return 1
            ;;
    esac
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=
for source in "$@"; do
    # Named after the source with its folder, so that two files of one name do not meet.
    object=$work/$(printf '%s' "$source" | tr '/.' '__').o
    case $source in
        *.c)
            target=$(target_flags "$cc" DEVICE_CC) || exit 2
            # shellcheck disable=SC2086 # the flags are words
            "$cc" $target $FLAGS -std=c11 -c "$source" -o "$object"
            ;;
        *.cc | *.cpp)
            target=$(target_flags "$cxx" DEVICE_CXX) || exit 2
            # shellcheck disable=SC2086
            "$cxx" $target $FLAGS $CXX_FLAGS -c "$source" -o "$object"
            ;;
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
