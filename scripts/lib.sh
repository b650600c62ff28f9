#!/usr/bin/env bash
# Builds the libraries for C and C++. Each is linked into one object in which every symbol is local but those of a list.
#
#   scripts/lib.sh host DIR [PROFILE]      libhcomm_sim.a and libhcomm_sim.so: host API and simulated device
#   scripts/lib.sh device DIR [TARGET]     libhcomm_aicpu.a: the entry points for kernels, for this machine or TARGET
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TARGET_DIR=$(scripts/target_dir.sh)
readonly TARGET_DIR
SONAME=$(scripts/soname.sh)
readonly SONAME
readonly IMAGE_TARGET=aarch64-unknown-none
readonly LINUX_TARGET=aarch64-unknown-linux-gnu

# The names of a list, one a line.
names() { sed 's/#.*//; /^[[:space:]]*$/d' "$@"; }

# Links archive $1 into object $2, which defines the names of list $3 and no others; then ld, objcopy and its options.
one_object() {
    local archive=$1 object=$2 list=$3 ld=$4 objcopy=$5 take=(--whole-archive)
    shift 5
    # All of it: the table of kernels has no symbol that it could be asked for by. The program's link drops the rest. Not so for
    # Linux on a card: all of it has constructors, which choose atomics at run time, and which no link drops.
    # shellcheck disable=SC2046 # One option a word.
    [ "${target:-}" != "$LINUX_TARGET" ] || take=($(sed 's/^/--undefined=/' "$list"))
    "$ld" -r -o "$object" "${take[@]}" "$archive"
    # Bitcode of the standard library, linked together, is none any more, and tools that read it fail.
    "$objcopy" --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd --keep-global-symbols="$list" \
        "$@" "$object"
}

host() {
    local dir=$1 profile=${2:-release} folder
    folder=$profile
    [ "$profile" != dev ] || folder=debug
    mkdir -p "$dir"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cargo rustc --locked -p hcomm-capi --lib --crate-type staticlib --profile "$profile"
    names docs/abi-host.txt > "$work/names"
    one_object "$TARGET_DIR/$folder/libhcomm_capi.a" "$work/hcomm_sim.o" "$work/names" ld objcopy
    ar rcs "$work/libhcomm_sim.a" "$work/hcomm_sim.o"
    # What the linker itself defines stays local, too.
    { echo '{ global:'; sed 's/$/;/' "$work/names"; echo 'local: *; };'; } > "$work/names.map"
    cc -shared -Wl,--version-script="$work/names.map" -Wl,-soname,$SONAME,--gc-sections,-z,relro,-z,now,-z,nodelete,--no-undefined -o "$work/$SONAME" "$work/hcomm_sim.o" \
        -lgcc_s -lpthread -lm -ldl -lc
    # Replaced, not written: a program that runs keeps the one it has.
    mv "$work/libhcomm_sim.a" "$work/$SONAME" "$dir/"
    ln -sf $SONAME "$dir/libhcomm_sim.so"
}

device() {
    local dir=$1 target=${2:-} ld=ld objcopy=objcopy ar=ar
    local flags=() codegen=(-C panic=abort) folder=$TARGET_DIR/release
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    names docs/abi.txt > "$work/names"
    if [ -n "$target" ]; then
        flags=(--target "$target")
        folder=$TARGET_DIR/$target/release
    fi
    case $target in
        "$IMAGE_TARGET")
            ld=aarch64-linux-gnu-ld objcopy=aarch64-linux-gnu-objcopy ar=aarch64-linux-gnu-ar
            printf '%s\n' memcpy memmove memset memcmp >> "$work/names"
            ;;
        "$LINUX_TARGET")
            ld=aarch64-linux-gnu-ld objcopy=aarch64-linux-gnu-objcopy ar=aarch64-linux-gnu-ar
            # The helpers of outline atomics ask the C library what the core has.
            codegen+=(-C target-feature=-outline-atomics)
            ;;
    esac
    mkdir -p "$dir"
    # No unwinding, and no tables for it: nothing above the entry points could catch it, and a program of C has nothing that unwinds.
    cargo rustc --locked -p hcomm-aicpu --lib --crate-type staticlib --features c-abi,c-platform,panic-handler --release \
        ${flags[@]+"${flags[@]}"} -- "${codegen[@]}"
    one_object "$folder/libhcomm_aicpu.a" "$work/hcomm_aicpu.o" "$work/names" $ld $objcopy \
        --remove-section=.eh_frame --remove-section=.gcc_except_table --remove-section='.data.DW.ref.*'
    # Names that only those tables needed.
    $objcopy --strip-unneeded "$work/hcomm_aicpu.o"
    rm -f "$work/libhcomm_aicpu.a"
    $ar rcs "$work/libhcomm_aicpu.a" "$work/hcomm_aicpu.o"
    mv "$work/libhcomm_aicpu.a" "$dir/"
}

case ${1:-} in
    host | device) "$@" ;;
    *)
        sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
