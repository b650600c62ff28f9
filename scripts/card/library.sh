#!/usr/bin/env bash
# Builds a library of kernels for a card's AI CPU: no C library, no other library, nothing exported but kernels. What it makes has
# not yet run on hardware.
#
#   scripts/card/library.sh DIR [TARGET]                    libhcomm_card.so: the stock kernels
#   scripts/card/library.sh DIR TARGET CRATE [KERNEL]...    libCRATE.so: those of a crate of yours, CRATE its folder; without a list,
#                                                           all that it declares itself
#
# TARGET: aarch64-unknown-linux-gnu, or `host` for the machine itself, which only tests need. A crate of yours has hcomm-kernel as a
# dependency, with feature `card`, and is `no_std`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly here

fail() {
    printf 'library.sh: %s\n' "$*" >&2
    exit 2
}

if [ $# -lt 1 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd) target=${2:-aarch64-unknown-linux-gnu} crate=${3:-}
shift $(($# < 3 ? $# : 3))

# The names of a list, one a line.
names() { sed 's/#.*//; /^[[:space:]]*$/d' "$@"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# No unwinding, and no tables for it: nothing above a kernel could catch it. For all crates: each is compiled by itself before LTO.
flags="'-C','panic=abort','-C','force-unwind-tables=no','-C','relocation-model=pic'"
case $target in
    host)
        cc=cc tools=
        target=$(rustc -vV | sed -n 's/^host: //p')
        ;;
    aarch64-unknown-linux-gnu)
        cc=aarch64-linux-gnu-gcc tools=aarch64-linux-gnu-
        # The helpers of outline atomics ask the C library what the core has.
        flags+=",'-C','target-feature=-outline-atomics'"
        ;;
    *) fail "unknown target $target: aarch64-unknown-linux-gnu or host" ;;
esac

if [ -z "$crate" ]; then
    cd "$here"
    name=hcomm_card built=libhcomm_kernel.a
    names kernel/linux/card.txt >"$work/kernels"
    options=(--locked -p hcomm-kernel --features card --profile image)
    folder=image
else
    [ -f "$crate/Cargo.toml" ] || fail "$crate has no Cargo.toml"
    cd "$crate"
    name=$(sed -n '/^\[package\]/,/^\[[^p]/s/^name *= *"\([^"]*\)".*/\1/p' Cargo.toml | head -n 1 | tr - _)
    [ -n "$name" ] || fail "$crate/Cargo.toml names no package"
    built=lib$name.a
    [ $# -eq 0 ] || printf '%s\n' "$@" >"$work/kernels"
    # The profile of the workspace here; yours need not have it.
    options=(--release --config 'profile.release.lto="fat"' --config 'profile.release.codegen-units=1')
    folder=release
fi
target_dir=$(cargo metadata --no-deps --offline --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
# After the subcommand, as the options of the profile are: cargo drops what is before it where both are.
cargo rustc --config "target.$target.rustflags=[$flags]" "${options[@]}" --lib --crate-type staticlib --target "$target"
archive=$work/$built
# Those of the standard library, which was compiled with them.
"${tools}objcopy" --remove-section=.eh_frame --remove-section=.gcc_except_table --remove-section='.data.DW.ref.*' \
    --remove-section='.rela.eh_frame' "$target_dir/$target/$folder/$built" "$archive"

# The table of kernels has two words for each: name and function, of which the linker knows the second one by its symbol.
declared() {
    ${tools}objdump -r -j hcomm_kernels "$archive" 2>/dev/null |
        awk '$2 ~ /(ABS64|_64)$/ && $1 ~ /8$/ { sub(/[+-]0x.*/, "", $3); print $3 }' | sort -u
}
# Those of hcomm-kernel are in the archive, too.
[ -s "$work/kernels" ] || declared | grep -vxF -f <(names "$here/kernel/linux/kernels.txt") >"$work/kernels" || true
[ -s "$work/kernels" ] || fail "$built declares no kernel"
while read -r kernel; do
    declared | grep -qx "$kernel" || fail "$built declares no kernel $kernel; there are: $(declared | tr '\n' ' ')"
done <"$work/kernels"
names "$here/kernel/linux/own.txt" >>"$work/kernels"
{ echo '{ global:'; sed 's/$/;/' "$work/kernels"; echo 'local: *; };'; } >"$work/kernels.map"
undefined=$(sed 's/^/-Wl,--undefined=/' "$work/kernels")
# shellcheck disable=SC2086 # One option a word.
$cc -shared -nostdlib -o "$work/lib$name.so" -Wl,-soname,"lib$name.so",-Bsymbolic,--version-script="$work/kernels.map" \
    -Wl,--gc-sections,-z,now,-z,relro,-z,noexecstack,-z,text,-z,max-page-size=65536 $undefined "$archive"
# Symbols stay: the lint finds code by them, and a report its functions.
${tools}strip --strip-debug "$work/lib$name.so"
# Replaced, not written: a program that runs keeps the one it has.
mv "$work/lib$name.so" "$dir/"
printf '%s\n' "$dir/lib$name.so"
