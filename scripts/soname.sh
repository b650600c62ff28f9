#!/usr/bin/env bash
# Prints the name by which programs find libhcomm_sim: with the minor version below 1.0, when each of them may differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
IFS=. read -r major minor _ <<<"$version"
if [ "$major" -eq 0 ]; then
    printf 'libhcomm_sim.so.0.%s\n' "$minor"
else
    printf 'libhcomm_sim.so.%s\n' "$major"
fi
