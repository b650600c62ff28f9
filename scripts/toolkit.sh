#!/usr/bin/env bash
# Writes a folder with the vendor's layout, which build files of programs and kernels take for ASCEND_HOME_PATH.
#
#   scripts/toolkit.sh DIR OUT [SIM]      DIR: where scripts/lib.sh has put the libraries. SIM: libhcomm_sim.so.N that is
#                                         linked to, a path from OUT/lib64; without it the library is copied.
#                                         scripts/linux.sh must have run
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
dir=$1
out=$(realpath -m "$2")
sim=${3:-}
soname=$(scripts/soname.sh)
linux=$(scripts/target_dir.sh)/aarch64-unknown-linux-gnu/linux
if [ ! -e "$linux/libccl_kernel.so" ]; then
    printf 'toolkit: %s is not built: make linux\n' "$linux/libccl_kernel.so" >&2
    exit 3
fi
to=${DESTDIR:-}$out

# Names that build files link. All of it is in libhcomm_sim.
readonly HOST_NAMES="acl_rt ascendcl runtime hcomm c_sec unified_dlog ascendalog ascendc_runtime profapi error_manager
    ascend_dump"

for folder in acl hccl hcomm; do
    install -d "$to/include/$folder"
    install -m 644 include/$folder/*.h "$to/include/$folder/"
done
install -m 644 include/*.h "$to/include/"
# Experimental headers have a folder of their own. Forwarded: a header of the same name comes first there.
install -d "$to/pkg_inc/hccl"
printf '/* Experimental: see the header that this one includes. */\n#include "../../include/hccl/hccl_res_expt.h"\n' \
    > "$to/pkg_inc/hccl/hccl_res_expt.h"

install -d "$to/lib64"
if [ -n "$sim" ]; then
    ln -sf "$sim" "$to/lib64/$soname"
else
    install -m 755 "$dir/$soname" "$to/lib64/"
fi
ln -sf "$soname" "$to/lib64/libhcomm_sim.so"
for name in $HOST_NAMES; do
    printf '/* GNU ld script: what this library has is in libhcomm_sim. */\nINPUT ( AS_NEEDED ( libhcomm_sim.so ) )\n' \
        > "$to/lib64/lib$name.so"
done
# Of kernels for this machine. Their names are bound to those of the process that loads them.
printf '/* GNU ld script: what kernels call is in libhcomm_sim. */\nINPUT ( AS_NEEDED ( libhcomm_sim.so ) )\n' \
    > "$to/lib64/libccl_kernel.so"

# Of kernels for an AI CPU: the library that the runner has loaded before them. And what the AI CPU `linux` runs.
install -d "$to/devlib/device" "$to/libexec/hcomm"
install -m 755 "$linux/libccl_kernel.so" "$to/devlib/device/"
install -m 755 "$linux/hcomm-runner" "$linux/libccl_kernel.so" "$linux/libhcomm_kernels.so" "$to/libexec/hcomm/"

cat > "$to/set_env.sh" <<END
# Source it: sets what build files and programs for this interface read.
if [ -n "\${BASH_SOURCE:-}" ]; then
    ASCEND_HOME_PATH=\$(cd "\$(dirname "\${BASH_SOURCE[0]}")" && pwd)
else
    # Another shell does not say where a file that it reads is.
    ASCEND_HOME_PATH='${out//\'/\'\\\'\'}'
fi
export ASCEND_HOME_PATH
export ASCEND_TOOLKIT_HOME="\$ASCEND_HOME_PATH"
export LD_LIBRARY_PATH="\$ASCEND_HOME_PATH/lib64\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
END
printf 'toolkit in %s: source %s/set_env.sh\n' "$to" "$to"
