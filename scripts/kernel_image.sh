#!/usr/bin/env bash
# Builds an image of the AI CPU with kernels that are written in C or C++.
#
#   scripts/kernel_image.sh OUT SOURCE...      SOURCE: C (.c) or C++ (.cc, .cpp) files
#
# CPPFLAGS (environment): words that every compiler gets last, such as -Ifolder and -DNAME=1.
# ENTRIES (environment):  names of functions "uint32_t name(void *)" that are kernels without HCOMM_KERNEL, with commas between.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -lt 2 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
out=$1
shift

readonly TARGET=aarch64-unknown-none
TARGET_DIR=$(scripts/target_dir.sh)
readonly TARGET_DIR
# No system, no position-independent code, no calls into libgcc; unwind tables have no reader.
readonly FLAGS="-O2 -g -Wall -Wextra -fno-pic -fno-pie -fno-stack-protector -fno-omit-frame-pointer -U_FORTIFY_SOURCE
    -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -march=armv8-a -DHCOMM_DEVICE_IMAGE -Iinclude"
# Not -ffreestanding in C++: headers of the C++ library must compile, so that the linker can name what the image lacks.
readonly C_FLAGS="-std=c11 -ffreestanding"
readonly CXX_FLAGS="-std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-use-cxa-atexit"
readonly INSTEAD="build a shared library of it and run it with --cpu linux"

fail() {
    printf 'kernel_image: %s\n' "$1" >&2
    exit 2
}

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
# Lines of errors in English, which are looked through below.
export LC_ALL=C

# Compiles $1 to $2 with a compiler and its flags.
compile() {
    local source=$1 object=$2
    shift 2
    # shellcheck disable=SC2086 # the flags are words
    if "$@" ${CPPFLAGS-} -c "$source" -o "$object" 2>"$work/errors"; then
        cat "$work/errors" >&2
        return
    fi
    cat "$work/errors" >&2
    if grep -Eq "exception handling disabled|with exceptions disabled" "$work/errors"; then
        fail "$source uses C++ exceptions, which the image does not have: $INSTEAD"
    elif grep -Eq "with -?'?-?fno-rtti|requires -frtti" "$work/errors"; then
        fail "$source uses C++ type information (dynamic_cast, typeid), which the image does not have: $INSTEAD"
    fi
    fail "$source does not compile for the image, see above"
}

objects=
for source in "$@"; do
    # Named after the source with its folder, so that two files of one name do not meet.
    object=$work/$(printf '%s' "$source" | tr '/.' '__').o
    case $source in
        *.c)
            target=$(target_flags "$cc" DEVICE_CC) || exit 2
            # shellcheck disable=SC2086 # the flags are words
            compile "$source" "$object" "$cc" $target $FLAGS $C_FLAGS
            ;;
        *.cc | *.cpp)
            target=$(target_flags "$cxx" DEVICE_CXX) || exit 2
            # shellcheck disable=SC2086
            compile "$source" "$object" "$cxx" $target $FLAGS $CXX_FLAGS
            ;;
        *) fail "$source is neither C (.c) nor C++ (.cc, .cpp)" ;;
    esac
    objects=$objects${objects:+:}$object
done

# Entries of the table of kernels for functions that have none.
if [ -n "${ENTRIES-}" ]; then
    {
        printf '#include "hcomm/hcomm_kernel.h"\n'
        for name in ${ENTRIES//,/ }; do
            [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || fail "ENTRIES: $name is not the name of a C function"
            # HCOMM_KERNEL has made a variable of this name.
            if grep -aq "hcomm_kernel_entry_of_$name\\b" "$work"/*.o; then
                fail "ENTRIES: $name is a kernel already, by HCOMM_KERNEL"
            fi
            printf 'extern uint32_t %s(void *args);\nHCOMM_KERNEL_ENTRY(%s)\n' "$name" "$name"
        done
    } >"$work/entries.c"
    target=$(target_flags "$cc" DEVICE_CC) || exit 2
    # shellcheck disable=SC2086
    compile "$work/entries.c" "$work/entries.o" "$cc" $target $FLAGS $C_FLAGS
    objects=$objects:$work/entries.o
fi

# The name of a section is in the file as text.
grep -aq '\.kernels' "$work"/*.o ||
    fail "there is no kernel in $*: declare one with HCOMM_KERNEL(name), or name functions with ENTRIES=name,.."

# Two runs at the same time must not take each other's image.
mkdir -p "$TARGET_DIR"
exec 9>"$TARGET_DIR/kernel_image.lock"
flock 9
if ! HCOMM_KERNEL_OBJECTS=$objects cargo build --locked -p hcomm-kernel --features image --target "$TARGET" \
    --profile image-c 2>"$work/errors"; then
    # Symbols that nothing defines, as the linker names them, without repetition.
    missing=$(sed -nE 's/.*error: undefined ([a-z]+ )?symbol: //p' "$work/errors" | awk '!seen[$0]++')
    for name in ${ENTRIES+${ENTRIES//,/ }}; do
        ! grep -Fxq "$name" <<<"$missing" || fail "ENTRIES: no file defines $name, which in C++ must be extern \"C\""
    done
    if [ -n "$missing" ]; then
        fail "the image has no ${missing//$'\n'/, no }: $INSTEAD"
    fi
    refused=$(sed -nE 's/.*(rust-)?lld: error: //p' "$work/errors")
    if [ -n "$refused" ]; then
        fail "${refused//$'\n'/; }"
    fi
    cat "$work/errors" >&2
    fail "cargo could not build the image, see above"
fi
mkdir -p "$(dirname "$out")"
cp "$TARGET_DIR/$TARGET/image-c/hcomm-image" "$out.new"
mv "$out.new" "$out"
printf 'device image with %s: %s\n' "$*" "$out"
