#!/usr/bin/env bash
# Builds and runs the vendor's examples of collectives from sources that you have fetched, without a change to them.
#
#   scripts/vendor-examples.sh DIR
#
# DIR: the folder `examples` of the vendor's repository hccl, of which 04_custom_ops_p2p and 05_custom_ops_allgather are
# used. Each folder below it that has op_kernel_aicpu/*.cc is an example. They are built with the vendor's flags, laid out as the
# vendor's packages lie, and run with 2, 4 and 8 devices (all-gather also with 1), natively and on the CPU linux; send and
# receive also as A2 and A3. Files for the vendor's own compiler (.asc, .aicpu) are not built: a stub answers for them.
#
#   TOOLKIT=folder         what `make toolkit` has written; without it, it is made
#   HCOMM_RUNNER=file      runner of the CPU linux; that of `make linux` by default
#   CPUS="native linux"    where kernels run
#   RANKS="1 2 4 8"        numbers of devices
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if [ $# -ne 1 ]; then
    sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 3
fi
if [ ! -d "$1" ]; then
    printf 'vendor-examples: no folder %s: fetch the folder examples of the repository hccl of CANN\n' "$1" >&2
    exit 3
fi
examples=$(cd "$1" && pwd)
mapfile -t kernels < <(find "$examples" -type d -name op_kernel_aicpu | sort)
if [ ${#kernels[@]} -eq 0 ]; then
    printf 'vendor-examples: no folder op_kernel_aicpu below %s: fetch the folder examples of the repository hccl of CANN\n' \
        "$examples" >&2
    exit 3
fi
target=$("$root/scripts/target_dir.sh")
work=$target/vendor-examples
rm -rf "$work"
mkdir -p "$work"

readonly CPUS=${CPUS:-native linux} RANKS=${RANKS:-1 2 4 8}
readonly SECONDS_MAX=300
export HCOMM_RUNNER=${HCOMM_RUNNER:-$target/aarch64-unknown-linux-gnu/linux/hcomm-runner}

toolkit=${TOOLKIT:-}
if [ -z "$toolkit" ]; then
    toolkit=$work/toolkit
    make -C "$root" toolkit OUT="$toolkit"
fi
toolkit=$(cd "$toolkit" && pwd)
if [[ $CPUS == *linux* ]]; then
    for tool in aarch64-linux-gnu-g++ "$HCOMM_RUNNER"; do
        command -v "$tool" >/dev/null || {
            printf 'vendor-examples: %s is missing: scripts/setup.sh linux && make linux\n' "$tool" >&2
            exit 3
        }
    done
fi

fail() {
    printf 'vendor-examples: %s\n' "$1" >&2
    exit 1
}

# Options for each folder below $1 that has headers, and for the toolkit.
include_options() {
    find "$1" -name '*.h' -printf '-I%h\n' | sort -u
    printf -- '-I%s\n' "$toolkit/include" "$toolkit/include/hccl" "$toolkit/include/hcomm" "$toolkit/pkg_inc" "$toolkit/pkg_inc/hccl"
}

# Builds the operator's library $2 of example $1. What only the .asc and .aicpu files would define gets a stub.
host_library() {
    local example=$1 out=$2 sources flags undefined stub=$work/stub.c symbol number=0
    mapfile -t sources < <(find "$example" \( -name '*.cc' -o -name '*.cpp' \) -not -path '*/op_kernel*' -print0 |
        xargs -0 -r grep -LE '(^|[^A-Za-z0-9_])main[[:space:]]*\(')
    [ ${#sources[@]} -gt 0 ] || fail "$example has no sources of an operator"
    mapfile -t flags < <(include_options "$example")
    flags+=(-std=c++14 -O2 -fPIC -shared -fstack-protector-all -D_GLIBCXX_USE_CXX11_ABI=0 -DHOST_COMPILE)
    local link=(-L"$toolkit/lib64" -lhcomm -lascendcl -lacl_rt -lruntime -lc_sec -lpthread)
    undefined=$(g++ "${flags[@]}" "${sources[@]}" -o "$out" "${link[@]}" \
        -Wl,--no-undefined,--no-demangle,--warn-unresolved-symbols 2>&1 | tee "$work/host.log" |
        sed -n "s/.*undefined reference to \`\(.*\)'.*/\1/p" | sort -u) || {
        cat "$work/host.log" >&2
        fail "the operator of $example can not be compiled"
    }
    [ -n "$undefined" ] || return 0
    [ -n "$(find "$example" -name '*.asc' -o -name '*.aicpu')" ] || fail "$example needs $undefined, which nothing defines"
    printf '#include <stdio.h>\n' > "$stub"
    for symbol in $undefined; do
        number=$((number + 1))
        printf 'int stub_%d(void) __asm__("%s");\nint stub_%d(void) {\n    fputs("%s: %s\\n", stderr);\n    return 5;\n}\n' \
            "$number" "$symbol" "$number" "$symbol" "is in a file for the vendor's compiler, and was not built" >> "$stub"
    done
    gcc -fPIC -c "$stub" -o "$work/stub.o"
    g++ "${flags[@]}" "${sources[@]}" "$work/stub.o" -o "$out" "${link[@]}" -Wl,--no-undefined
}

# Builds the kernel library $3 of example $1 for CPU $2.
kernel_library() {
    local example=$1 cpu=$2 out=$3 compiler=g++ link flags
    link=-L$toolkit/lib64
    if [ "$cpu" = linux ]; then
        compiler=aarch64-linux-gnu-g++
        link=-L$toolkit/devlib/device
    fi
    mapfile -t flags < <(include_options "$example")
    "$compiler" "${flags[@]}" -std=c++14 -g -O0 -fPIC -shared -DAICPU_COMPILE "$example"/op_kernel_aicpu/*.cc -o "$out" \
        "$link" -lccl_kernel
}

# Names that Makefile $1 links and the toolkit does not have: those of the operator's library.
own_libraries() {
    local name
    grep -oE -- '(^|[[:space:]])-l[A-Za-z0-9_]+' "$1" | sed 's/.*-l//' | sort -u | while read -r name; do
        [ -e "$toolkit/lib64/lib$name.so" ] && continue
        [ "$(g++ -print-file-name="lib$name.so")" != "lib$name.so" ] && continue
        printf '%s\n' "$name"
    done
}

# Lays out a home for CPU $2 with all of example $1, and builds its program there: prints the program.
lay_out() {
    local example=$1 cpu=$2 home=$3 name folder description library makefile
    mkdir -p "$home/opp/vendors/cust/aicpu/config" "$home/opp/vendors/cust/aicpu/kernel" "$home/opp/vendors/cust/lib64" \
        "$home/opp/vendors/cust/include"
    for folder in "$toolkit"/*; do
        ln -s "$folder" "$home/"
    done
    find "$example" -name '*.h' -exec cp {} "$home/opp/vendors/cust/include/" \;
    description=$(find "$example" -name '*.json' -exec grep -l '"kernelSo"' {} + | head -n 1)
    [ -n "$description" ] || fail "$example has no description of its kernels (a .json with kernelSo)"
    cp "$description" "$home/opp/vendors/cust/aicpu/config/"
    library=$(sed -n 's/.*"kernelSo"[^"]*"\([^"]*\)".*/\1/p' "$description" | head -n 1)
    # Kernels lie in a package, with the hash of their library.
    folder=$home/package/aicpu_kernels_device
    mkdir -p "$folder"
    kernel_library "$example" "$cpu" "$folder/$library" >&2
    printf '%s=%s\n' "$library" "$(sha256sum "$folder/$library" | cut -d ' ' -f 1)" > "$folder/bin_hash.cfg"
    tar -C "$home/package" -czf "$home/opp/vendors/cust/aicpu/kernel/aicpu_${library%.so}.tar.gz" aicpu_kernels_device
    makefile=$(find "$example" -name Makefile | head -n 1)
    [ -n "$makefile" ] || fail "$example has no Makefile of a program"
    for name in $(own_libraries "$makefile"); do
        host_library "$example" "$home/opp/vendors/cust/lib64/lib$name.so" >&2
    done
    cp -r "$(dirname "$makefile")" "$home/program"
    env ASCEND_HOME_PATH="$home" LIBRARY_PATH="$home/lib64:$home/opp/vendors/cust/lib64" \
        LD_LIBRARY_PATH="$home/lib64:$home/opp/vendors/cust/lib64" \
        CPATH="$home/include:$home/opp/vendors/cust/include" make -C "$home/program" >&2
    find "$home/program" -type f -executable -not -name '*.so*' -newer "$folder/bin_hash.cfg" | head -n 1
}

for folder in "${kernels[@]}"; do
    example=$(dirname "$folder")
    name=${example#"$examples"/}
    # Who sends has a peer; the others gather.
    case $name in
        *p2p* | *send*) ranks=${RANKS//1 /} products="atlas-350 atlas-a3-training atlas-800t-a2" ;;
        *) ranks=$RANKS products=atlas-350 ;;
    esac
    for cpu in $CPUS; do
        home=$work/${name//\//-}-$cpu
        program=$(lay_out "$example" "$cpu" "$home")
        [ -n "$program" ] || fail "the Makefile of $name has built no program"
        for product in $products; do
            for count in $ranks; do
                printf '%s: %s devices, %s, %s\n' "$name" "$count" "$cpu" "$product"
                (cd "$(dirname "$program")" && env ASCEND_HOME_PATH="$home" HCOMM_SIM_CPU="$cpu" HCOMM_SIM_DEVICES="$count" \
                    HCOMM_SIM_PRODUCT="$product" LD_LIBRARY_PATH="$home/lib64:$home/opp/vendors/cust/lib64" \
                    timeout --signal=KILL "$SECONDS_MAX" "$program") ||
                    fail "$name with $count devices on $cpu ($product) has ended with code $?"
            done
        done
    done
done
printf 'vendor-examples: %s examples work\n' "${#kernels[@]}"
