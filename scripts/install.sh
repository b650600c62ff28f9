#!/usr/bin/env bash
# Installs headers, libraries, what the AI CPUs run, the command line, documents, pkg-config file and CMake package.
#
#   scripts/install.sh DIR PREFIX            DIR: where scripts/lib.sh has put the libraries; scripts/linux.sh must have run
#   scripts/install.sh --uninstall PREFIX    removes what the last run has installed
#
# DESTDIR (environment):     folder that all of it is put below, as packagers do.
# LIBDIR (environment):      folder of the libraries, by default PREFIX/lib.
# HOST_STUB (environment):   the command line program; by default that of the release build.
# HCOMM_IMAGE (environment): the device image; by default that of `make image`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
umask 022

if [ $# -ne 2 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
prefix=$(realpath -m "$2")
readonly prefix to=${DESTDIR:-}
readonly LIST=$prefix/share/hcomm-sim/installed.txt

# Removes files of the list on standard input, and folders that are empty then, up to the prefix.
remove() {
    local file folder
    while read -r file; do
        rm -f "$to$file"
        folder=${file%/*}
        while [ "$folder" != "$prefix" ] && [ -n "$folder" ] && rmdir "$to$folder" 2>/dev/null; do
            folder=${folder%/*}
        done
    done
}

if [ "$1" = --uninstall ]; then
    if [ ! -e "$to$LIST" ]; then
        printf 'install: %s is not there: nothing is installed in %s\n' "$to$LIST" "$to$prefix" >&2
        exit 1
    fi
    remove < <(
        cat "$to$LIST"
        printf '%s\n' "$LIST"
    )
    printf 'removed from %s\n' "$to$prefix"
    exit
fi

dir=$1
libdir=$(realpath -m "${LIBDIR:-$prefix/lib}")
target_dir=$(scripts/target_dir.sh)
host_stub=${HOST_STUB:-$target_dir/release/host-stub}
image=${HCOMM_IMAGE:-$target_dir/aarch64-unknown-none/image/hcomm-image}
version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
soname=$(scripts/soname.sh)
# As the paths of the build are.
from_lib_to_prefix=$(realpath -m --relative-to="$libdir" "$prefix")
# A space in a path is written as "\ ".
pc() { printf '%s' "${1// /\\ }"; }
for needed in "$host_stub:cargo build --release -p host-stub" "$image:make image"; do
    if [ ! -e "${needed%%:*}" ]; then
        printf 'install: %s is not built: %s\n' "${needed%%:*}" "${needed#*:}" >&2
        exit 3
    fi
done

# Everything is put together here first, so that the list is complete and a failure installs nothing.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
own=$stage$prefix lib=$stage$libdir

# Headers, what the AI CPUs run, and the vendor's layout beside lib.
sim=
[ "$libdir" = "$prefix/lib64" ] || sim=$(realpath -m --relative-to="$prefix/lib64" "$libdir/$soname")
DESTDIR=$stage scripts/toolkit.sh "$dir" "$prefix" "$sim" >/dev/null
install -m 755 "$image" "$own/libexec/hcomm/hcomm-image"
# For the check core. `make image` builds it; an image from elsewhere may come without.
plugin=$target_dir/debug/libhcomm_core_plugin.so
[ ! -e "$plugin" ] || install -m 755 "$plugin" "$own/libexec/hcomm/"
install -d "$lib/pkgconfig" "$lib/cmake/hcomm-sim"
install -m 644 "$dir/libhcomm_sim.a" "$lib/"
install -m 755 "$dir/$soname" "$lib/"
ln -sf "$soname" "$lib/libhcomm_sim.so"
# The library for kernels: one for each processor that it has been built for.
for library in "$dir"/device/*/libhcomm_aicpu.a; do
    [ -e "$library" ] || continue
    target=${library%/*}
    install -d "$lib/hcomm-aicpu/${target##*/}"
    install -m 644 "$library" "$lib/hcomm-aicpu/${target##*/}/"
done

# The command line, and what belongs to it.
install -d "$own/bin"
install -m 755 "$host_stub" "$own/bin/host-stub"
made=$stage.made
mkdir "$made"
trap 'rm -rf "$stage" "$made"' EXIT
"$host_stub" generate "$made"
install -d "$own/share/man/man1" "$own/share/bash-completion/completions" "$own/share/zsh/site-functions" \
    "$own/share/fish/vendor_completions.d"
install -m 644 "$made"/*.1 "$own/share/man/man1/"
install -m 644 "$made/host-stub.bash" "$own/share/bash-completion/completions/host-stub"
install -m 644 "$made/_host-stub" "$own/share/zsh/site-functions/"
install -m 644 "$made/host-stub.fish" "$own/share/fish/vendor_completions.d/"
readonly DOC=$own/share/doc/hcomm-sim
install -d "$DOC/docs"
install -m 644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$DOC/"
install -m 644 docs/*.md docs/*.svg "$DOC/docs/"

cat > "$lib/pkgconfig/hcomm-sim.pc" <<END
prefix=$(pc "$prefix")
libdir=$(pc "$libdir")
includedir=\${prefix}/include

Name: hcomm-sim
Description: Host API of Ascend communication kernels, on a simulated device
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lhcomm_sim -Wl,-rpath,\${libdir}
Libs.private: -lpthread -lm -ldl
END

cat > "$lib/cmake/hcomm-sim/hcomm-sim-config.cmake" <<END
# Targets hcomm_sim::hcomm_sim (shared) and hcomm_sim::hcomm_sim_static; function hcomm_add_kernel.
get_filename_component(_hcomm_sim_lib "\${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_hcomm_sim_prefix "\${_hcomm_sim_lib}/$from_lib_to_prefix" ABSOLUTE)
if(NOT TARGET hcomm_sim::hcomm_sim)
  add_library(hcomm_sim::hcomm_sim SHARED IMPORTED)
  set_target_properties(hcomm_sim::hcomm_sim PROPERTIES
    IMPORTED_LOCATION "\${_hcomm_sim_lib}/$soname"
    IMPORTED_SONAME "$soname"
    INTERFACE_INCLUDE_DIRECTORIES "\${_hcomm_sim_prefix}/include")
  add_library(hcomm_sim::hcomm_sim_static STATIC IMPORTED)
  # Kernels that are shared libraries look for their symbols in the program.
  set_target_properties(hcomm_sim::hcomm_sim_static PROPERTIES
    IMPORTED_LOCATION "\${_hcomm_sim_lib}/libhcomm_sim.a"
    INTERFACE_INCLUDE_DIRECTORIES "\${_hcomm_sim_prefix}/include"
    INTERFACE_LINK_LIBRARIES "pthread;m;dl"
    INTERFACE_LINK_OPTIONS "-rdynamic")
endif()
set(HCOMM_SIM_INCLUDE_DIR "\${_hcomm_sim_prefix}/include")
include("\${CMAKE_CURRENT_LIST_DIR}/hcomm-add-kernel.cmake")
unset(_hcomm_sim_prefix)
unset(_hcomm_sim_lib)
END
install -m 644 scripts/cmake/hcomm-add-kernel.cmake "$lib/cmake/hcomm-sim/"
cat > "$lib/cmake/hcomm-sim/hcomm-sim-config-version.cmake" <<END
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
# Before 1.0 every minor version may differ.
string(REGEX MATCH "^[0-9]+\\\\.[0-9]+" _series "\${PACKAGE_VERSION}")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
if(PACKAGE_FIND_VERSION_RANGE)
  # CMake 3.19 and newer: MIN...MAX, or MIN...<MAX without MAX itself.
  if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MIN
      AND (PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MAX
        OR (PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "INCLUDE"
          AND PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION_MAX)))
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
elseif("\${PACKAGE_FIND_VERSION_MAJOR}.\${PACKAGE_FIND_VERSION_MINOR}" STREQUAL "\${_series}"
    AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
END

list=$(cd "$stage" && find . -type f -o -type l | sed 's/^\.//' | sort)
# Files of an earlier version that this one does not have.
if [ -e "$to$LIST" ]; then
    remove < <(comm -23 <(sort "$to$LIST") <(printf '%s\n' "$list"))
fi
while read -r file; do
    install -d "$to${file%/*}"
    # Replaced, not written: a program that runs keeps the one it has.
    cp -P --remove-destination "$stage$file" "$to$file"
done <<<"$list"
install -d "$to${LIST%/*}"
printf '%s\n' "$list" >"$to$LIST"
printf 'installed into %s\n' "$to$prefix"
