#!/usr/bin/env bash
# Installs headers, libraries, pkg-config file and CMake package.
#
#   scripts/install.sh DIR PREFIX      DIR: where scripts/lib.sh has put the libraries; with DESTDIR=… below that
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -ne 2 ]; then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
dir=$1
prefix=$(realpath -m "$2")
to=${DESTDIR:-}$prefix
# A space in a path is written as "\ ".
pc_prefix=${prefix// /\\ }
version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)

# Headers, and the vendor's layout beside lib.
scripts/toolkit.sh "$dir" "$prefix" ../lib/libhcomm_sim.so.0 >/dev/null
install -d "$to/lib/pkgconfig" "$to/lib/cmake/hcomm-sim"
install -m 644 "$dir/libhcomm_sim.a" "$to/lib/"
install -m 755 "$dir/libhcomm_sim.so.0" "$to/lib/"
ln -sf libhcomm_sim.so.0 "$to/lib/libhcomm_sim.so"
# The library for kernels: one for each processor that it has been built for.
for library in "$dir"/device/*/libhcomm_aicpu.a; do
    [ -e "$library" ] || continue
    target=${library%/*}
    install -d "$to/lib/hcomm-aicpu/${target##*/}"
    install -m 644 "$library" "$to/lib/hcomm-aicpu/${target##*/}/"
done

cat > "$to/lib/pkgconfig/hcomm-sim.pc" <<END
prefix=$pc_prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: hcomm-sim
Description: Host API of Ascend communication kernels, on a simulated device
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lhcomm_sim -Wl,-rpath,\${libdir}
Libs.private: -lpthread -lm -ldl
END

cat > "$to/lib/cmake/hcomm-sim/hcomm-sim-config.cmake" <<'END'
# Targets hcomm_sim::hcomm_sim (shared) and hcomm_sim::hcomm_sim_static.
get_filename_component(_hcomm_sim_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET hcomm_sim::hcomm_sim)
  add_library(hcomm_sim::hcomm_sim SHARED IMPORTED)
  set_target_properties(hcomm_sim::hcomm_sim PROPERTIES
    IMPORTED_LOCATION "${_hcomm_sim_prefix}/lib/libhcomm_sim.so.0"
    IMPORTED_SONAME "libhcomm_sim.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_hcomm_sim_prefix}/include")
  add_library(hcomm_sim::hcomm_sim_static STATIC IMPORTED)
  # Kernels that are shared libraries look for their symbols in the program.
  set_target_properties(hcomm_sim::hcomm_sim_static PROPERTIES
    IMPORTED_LOCATION "${_hcomm_sim_prefix}/lib/libhcomm_sim.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_hcomm_sim_prefix}/include"
    INTERFACE_LINK_LIBRARIES "pthread;m;dl"
    INTERFACE_LINK_OPTIONS "-rdynamic")
endif()
unset(_hcomm_sim_prefix)
END
cat > "$to/lib/cmake/hcomm-sim/hcomm-sim-config-version.cmake" <<END
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
printf 'installed into %s\n' "$to"
