#!/usr/bin/env bash
# Writes the generated headers of the C API, or with --check only says which of them are out of date.
#
#   scripts/headers.sh [--check]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One version, so that two machines write the same bytes.
readonly VERSION=0.29.4
readonly HEADERS="acl/acl_base acl/acl_rt hccl/hccl_types hccl/hccl_comm hccl/hccl_res hccl/hccl_res_expt
    hccl/hccl_channel hccl/hccl_rank_graph hccl/hccl_launch hcomm/hcomm_res_defs hcomm/hcomm_res hcomm/hcomm_primitives
    hcomm/hcomm_platform hcomm/hcomm_port"

# The file that a header is made from.
source_of() {
    case $1 in
        hcomm_platform) echo src/c_platform.rs ;;
        hcomm_port) echo src/port/hooks.rs ;;
        *) echo "host-stub/capi/src/$1.rs" ;;
    esac
}

cbindgen=$(command -v cbindgen || true)
if [ -z "$cbindgen" ] || [ "$("$cbindgen" --version)" != "cbindgen $VERSION" ]; then
    root=$(scripts/target_dir.sh)/tools
    cbindgen=$root/bin/cbindgen
    if [ ! -x "$cbindgen" ] || [ "$("$cbindgen" --version)" != "cbindgen $VERSION" ]; then
        printf 'headers: cbindgen %s is missing: building it, which takes a minute\n' "$VERSION" >&2
        cargo install cbindgen --version "$VERSION" --locked --root "$root" >&2
    fi
fi

to=include
if [ "${1:-}" = --check ]; then
    to=$(mktemp -d)
    trap 'rm -rf "$to"' EXIT
fi
status=0
for header in $HEADERS; do
    name=${header##*/}
    mkdir -p "$to/${header%/*}"
    # It warns of each type that another header defines; whether they fit, the compilers of the tests say.
    "$cbindgen" --quiet --config "include/cbindgen/$name.toml" -o "$to/$header.h" "$(source_of "$name")"
    if [ "$to" != include ] && ! diff -u "include/$header.h" "$to/$header.h"; then
        printf 'headers: include/%s.h is out of date: make headers\n' "$header" >&2
        status=1
    fi
done
exit "$status"
