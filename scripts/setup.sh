#!/usr/bin/env bash
# Checks that the tools which the project needs are there and installs what is missing. Says what it does; says nothing,
# and needs no network, when nothing is missing. Stops with the command to type where it can't install something itself.
#
#   scripts/setup.sh            compiler, device target, QEMU: what run and test need
#   scripts/setup.sh PART...    as well: deny (cargo-deny), mutants (cargo-mutants), cross (a C and C++ compiler for the device, qemu-aarch64),
#                               linux (cross, and Rust's target for Linux on AArch64), valgrind (and CMake), miri (of the
#                               nightly compiler), browser (a headless one, for pages with timelines), gdb (for AArch64), fuzz (cargo-fuzz, and that there is
#                               a nightly compiler)
set -euo pipefail

readonly IMAGE_TARGET=aarch64-unknown-none
readonly LINUX_TARGET=aarch64-unknown-linux-gnu
# As `rust-version` in Cargo.toml.
readonly MIN_RUST=1.88

log=$(mktemp)
readonly log
trap 'rm -f "$log"' EXIT

say() { printf 'setup: %s\n' "$*" >&2; }

# Says what is missing and the command that installs it, and stops.
stop() {
    say "$1"
    printf '\n    %s\n\n' "$2" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root, directly or through sudo; fails where neither is possible without a terminal.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        sudo "$@"
    else
        return 1
    fi
}

# Installs Debian packages: $1 says what for, the others are the packages.
install_packages() {
    local what=$1
    shift
    local by_hand="sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
    have apt-get || stop "$what is missing, and there is no apt-get: install what Debian calls:" "$*"
    as_root true || stop "$what is missing, and installing it needs root; type:" "$by_hand"
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@")
    say "$what is missing: installing the Debian packages $*, which takes a minute"
    quietly as_root "${install[@]}" && return
    say "installing them again with new package lists"
    quietly as_root apt-get update -q && quietly as_root "${install[@]}" && return
    cat "$log" >&2
    stop "$what could not be installed; type:" "$by_hand"
}

# Runs a command without showing its progress: its output goes to a file and is shown if it fails.
quietly() { "$@" >"$log" 2>&1; }

check_rust() {
    have cargo && have rustc ||
        stop "cargo is missing: install Rust $MIN_RUST or newer; type:" \
            "sudo apt-get install -y rustup && rustup default stable"
    local version
    version=$(rustc --version | cut -d ' ' -f 2)
    if [ "$(printf '%s\n' "$MIN_RUST" "$version" | sort -V | head -n 1)" != "$MIN_RUST" ]; then
        stop "rustc $version is older than $MIN_RUST; type:" "rustup update stable"
    fi
}

# A target of Rust.
check_target() {
    # What rustup installs is looked for by path: asking rustup itself takes longer.
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1" ] && return
    local by_hand="rustup target add $1"
    have rustup || stop "this Rust has no target $1, and rustup is missing; with rustup, type:" "$by_hand"
    say "Rust's target $1 is missing: adding it, which takes a minute"
    quietly $by_hand && return
    cat "$log" >&2
    stop "target $1 could not be added; with a network, type:" "$by_hand"
}

# A program of cargo: $1 is its name in the registry.
check_cargo_tool() {
    have "$1" && return
    local by_hand="cargo install $1 --locked"
    say "$1 is missing: building it, which takes some minutes"
    $by_hand --quiet >&2 || stop "$1 could not be installed; with a network, type:" "$by_hand"
}

check_cross() {
    { have aarch64-linux-gnu-gcc && have aarch64-linux-gnu-g++; } ||
        install_packages "a compiler for AArch64" gcc-aarch64-linux-gnu g++-aarch64-linux-gnu
    have c++ || install_packages "a C++ compiler" g++
    # What the linker of AArch64 programs loads; comes with the C++ compiler.
    [ -e /usr/aarch64-linux-gnu/lib/libstdc++.so.6 ] ||
        install_packages "the C++ library for AArch64" libstdc++6-arm64-cross libc6-arm64-cross
    have qemu-aarch64 || install_packages "QEMU for programs (qemu-aarch64)" qemu-user
}

check_valgrind() {
    { have valgrind && have pkg-config && have cmake; } ||
        install_packages "valgrind, pkg-config or CMake" valgrind pkg-config cmake
}

# A whole compiler is installed only by the user.
check_nightly() {
    have rustup && rustup run nightly rustc --version >/dev/null 2>&1 && return
    stop "$1 needs a nightly compiler, and there is none; type:" "rustup toolchain install nightly --profile minimal"
}

check_miri() {
    check_nightly "Miri"
    local component installed
    installed=$(rustup component list --toolchain nightly --installed)
    for component in miri rust-src; do
        grep -q "^$component" <<<"$installed" && continue
        local by_hand="rustup component add --toolchain nightly $component"
        say "$component of the nightly compiler is missing: adding it"
        quietly $by_hand || stop "$component could not be added; with a network, type:" "$by_hand"
    done
}

check_browser() {
    have chromium-headless-shell || install_packages "a headless browser" chromium-headless-shell
}

check_gdb() {
    have gdb-multiarch || install_packages "a debugger for AArch64" gdb-multiarch
}

check_fuzz() {
    check_nightly "cargo-fuzz"
    have c++ || install_packages "a C++ compiler" g++
    check_cargo_tool cargo-fuzz
}

have cc || install_packages "a C linker (cc)" gcc libc6-dev
check_rust
check_target "$IMAGE_TARGET"
have qemu-system-aarch64 || install_packages "QEMU (qemu-system-aarch64)" qemu-system-arm

for part in "$@"; do
    case $part in
        deny | mutants) check_cargo_tool "cargo-$part" ;;
        cross) check_cross ;;
        linux)
            check_target $LINUX_TARGET
            check_cross
            ;;
        valgrind) check_valgrind ;;
        miri) check_miri ;;
        browser) check_browser ;;
        gdb) check_gdb ;;
        fuzz) check_fuzz ;;
        *)
            say "there is no part $part: deny, mutants, cross, linux, valgrind, miri, browser, gdb and fuzz are"
            exit 2
            ;;
    esac
done
