#!/usr/bin/env bash
# Packs a library of AI CPU kernels in the form that a card's runtime loads. What it makes has not yet run on hardware;
# `host-stub card-lint` checks it.
#
#   scripts/card/package.sh LIB DIR [KERNEL=FUNCTION]...
#
# LIB: the AArch64 library, libNAME.so. Without a list of kernels every function that it exports is one, under its own name.
# Written to DIR: aicpu_NAME.tar.gz, libNAME.json, libNAME.ini, whitelist.txt, install.sh.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here

fail() {
    printf 'package.sh: %s\n' "$*" >&2
    exit 2
}

if [ $# -lt 2 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
library=$1 dir=$2
shift 2
[ -f "$library" ] || fail "$library is no file"
file=$(basename "$library")
[[ $file =~ ^lib([A-Za-z0-9_-]+)\.so$ ]] || fail "$file is not called libNAME.so, NAME of letters, digits, '-' and '_'"
name=${BASH_REMATCH[1]}
package=aicpu_$name.tar.gz

kernels=("$@")
if [ ${#kernels[@]} -eq 0 ]; then
    # Columns: number, value, size, type, binding, visibility, section, name.
    while read -r function; do kernels+=("$function=$function"); done < <(
        readelf --dyn-syms --wide "$library" | awk '$4 == "FUNC" && $5 != "LOCAL" && $7 != "UND" { sub(/@.*/, "", $8); print $8 }' | sort
    )
    [ ${#kernels[@]} -gt 0 ] || fail "$file exports no function"
fi
for kernel in "${kernels[@]}"; do
    [[ $kernel =~ ^[A-Za-z0-9_]+=[A-Za-z0-9_]+$ ]] || fail "'$kernel' is not KERNEL=FUNCTION, of letters, digits and '_'"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/aicpu_kernels_device
mkdir "$root" "$work/out"
cp "$library" "$root/$file"
hash=$(sha256sum <"$root/$file")
printf '%s=%s\n' "$file" "${hash%% *}" >"$root/bin_hash.cfg"
chmod 750 "$root" "$root/$file"
chmod 640 "$root/bin_hash.cfg"
# The same bytes from the same library: no times, no owners.
tar --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work" -cf "$work/package.tar" aicpu_kernels_device
gzip -9n <"$work/package.tar" >"$work/out/$package"

{
    printf '{\n'
    separator=
    for kernel in "${kernels[@]}"; do
        printf '%s  "%s": { "opInfo": { "opKernelLib": "AICPUKernel", "kernelSo": "%s", "functionName": "%s" } }' \
            "$separator" "${kernel%%=*}" "$file" "${kernel#*=}"
        separator=$',\n'
    done
    printf '\n}\n'
} >"$work/out/lib$name.json"
for kernel in "${kernels[@]}"; do
    printf '[%s]\nopInfo.opKernelLib=AICPUKernel\nopInfo.kernelSo=%s\nopInfo.functionName=%s\n' \
        "${kernel%%=*}" "$file" "${kernel#*=}"
done >"$work/out/lib$name.ini"
cat >"$work/out/whitelist.txt" <<END
name:$package
install_path:2
optional:true
package_path:opp/vendors/$name/aicpu/kernel
load_as_per_soc:false
END
install -m 755 "$here/install.sh" "$work/out/install.sh"

mkdir -p "$dir"
for made in "$work/out"/*; do
    # Replaced in one step: a program that reads the old one still has all of it.
    cp "$made" "$dir/.$(basename "$made").new"
    mv -f "$dir/.$(basename "$made").new" "$dir/$(basename "$made")"
done
printf 'packed %s with %s kernels into %s\n' "$file" "${#kernels[@]}" "$dir"
