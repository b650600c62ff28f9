#!/usr/bin/env bash
# Prints cargo's target folder: what CARGO_TARGET_DIR or cargo's configuration (`build.target-dir`) names, else target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Before cargo is installed there is nothing to ask.
metadata=$(cargo metadata --no-deps --offline --format-version 1 2>/dev/null || true)
folder=$(sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p' <<<"$metadata")
printf '%s\n' "${folder:-$PWD/target}"
