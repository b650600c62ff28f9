#!/usr/bin/env bash
# Checks the whole workspace with the oldest compiler that is supported: `rust-version` in Cargo.toml.
#
#   scripts/msrv.sh       installs that compiler with rustup where it is missing; without a network it says so and checks nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! rustup run "$version" rustc --version >/dev/null 2>&1; then
    printf 'msrv: rustc %s is missing: installing it, which takes a minute\n' "$version" >&2
    if ! rustup toolchain install "$version" --profile minimal >/dev/null 2>&1; then
        printf '\n%s\n\n' "WARNING: RUST $version WAS NOT CHECKED: rustup can't install it" >&2
        exit 0
    fi
fi
# A folder of its own: two compilers in one rebuild everything each time.
CARGO_TARGET_DIR=$(scripts/target_dir.sh)/msrv cargo "+$version" check --locked --workspace --all-targets
