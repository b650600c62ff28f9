# hcomm_add_kernel(NAME SOURCE... [KERNELS function...] [OPTIONS flag...] [IMAGE])
#
# Builds a library of AI CPU kernels of C and C++ sources, and describes it. With target NAME are made, below the binary folder:
#   NAME/config/NAME.json      description: an operator for each kernel, called as its function
#   NAME/config/libNAME.so     for this machine: HCOMM_SIM_CPU=native
#   NAME/kernel/libNAME.so     for AArch64 Linux: HCOMM_SIM_CPU=linux, and a card
#   NAME/kernel/NAME.elf       with IMAGE, the device image: HCOMM_SIM_CPU=qemu and HCOMM_IMAGE
# NAME_DESCRIPTION and NAME_IMAGE are set to the paths of description and image.
#
# KERNELS: functions "uint32_t f(void *)" with C linkage; without it those that the sources declare by HCOMM_KERNEL.
# OPTIONS: more options of the compilers.
# HCOMM_AARCH64_CC, HCOMM_AARCH64_CXX: compilers for AArch64 Linux. HCOMM_SIM_SOURCE: sources of hcomm-sim, which IMAGE needs.

find_program(HCOMM_AARCH64_CXX NAMES aarch64-linux-gnu-g++ DOC "C++ compiler for AArch64 Linux")
find_program(HCOMM_AARCH64_CC NAMES aarch64-linux-gnu-gcc DOC "C compiler for AArch64 Linux")

function(hcomm_add_kernel name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "IMAGE" "" "KERNELS;OPTIONS")
  set(sources)
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(source "${source}" ABSOLUTE)
    list(APPEND sources "${source}")
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "hcomm_add_kernel(${name}): no sources")
  endif()
  if(NOT HCOMM_AARCH64_CXX OR NOT HCOMM_AARCH64_CC)
    message(FATAL_ERROR "hcomm_add_kernel(${name}): there is no compiler for AArch64 Linux: "
      "apt-get install g++-aarch64-linux-gnu, or set HCOMM_AARCH64_CXX and HCOMM_AARCH64_CC")
  endif()

  # The kernels: configured again when a source changes.
  set(kernels ${arg_KERNELS})
  if(NOT kernels)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
    foreach(source IN LISTS sources)
      file(STRINGS "${source}" lines REGEX "^[ \t]*HCOMM_KERNEL\\([ \t]*[A-Za-z_][A-Za-z0-9_]*[ \t]*\\)")
      foreach(line IN LISTS lines)
        string(REGEX REPLACE "^[ \t]*HCOMM_KERNEL\\([ \t]*([A-Za-z_][A-Za-z0-9_]*).*" "\\1" kernel "${line}")
        list(APPEND kernels "${kernel}")
      endforeach()
    endforeach()
  endif()
  if(NOT kernels)
    message(FATAL_ERROR "hcomm_add_kernel(${name}): no source declares a kernel by HCOMM_KERNEL(function); KERNELS names others")
  endif()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(entries)
  foreach(kernel IN LISTS kernels)
    list(APPEND entries
      "  \"${kernel}\": {\"opInfo\": {\"opKernelLib\": \"AICPUKernel\", \"kernelSo\": \"lib${name}.so\", \"functionName\": \"${kernel}\"}}")
  endforeach()
  string(REPLACE ";" ",\n" entries "${entries}")
  file(WRITE "${folder}/config/${name}.json.new" "{\n${entries}\n}\n")
  configure_file("${folder}/config/${name}.json.new" "${folder}/config/${name}.json" COPYONLY)

  # For this machine. All Hcomm* stay undefined: they are those of the program that loads it.
  add_library(${name} MODULE ${sources})
  set_target_properties(${name} PROPERTIES PREFIX lib SUFFIX .so LIBRARY_OUTPUT_DIRECTORY "${folder}/config")
  target_include_directories(${name} PRIVATE "${HCOMM_SIM_INCLUDE_DIR}")
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})

  # For AArch64 Linux: each source by its language, and one link.
  set(objects)
  foreach(source IN LISTS sources)
    get_filename_component(file "${source}" NAME)
    list(LENGTH objects number)
    set(object "${folder}/kernel/${number}-${file}.o")
    set(compiler "${HCOMM_AARCH64_CXX}")
    if(source MATCHES "\\.c$")
      set(compiler "${HCOMM_AARCH64_CC}")
    endif()
    add_custom_command(OUTPUT "${object}"
      COMMAND "${compiler}" -g -O2 -fPIC "-I${HCOMM_SIM_INCLUDE_DIR}" ${arg_OPTIONS} -MD -MF "${object}.d" -c "${source}" -o "${object}"
      DEPENDS "${source}" DEPFILE "${object}.d" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(library "${folder}/kernel/lib${name}.so")
  add_custom_command(OUTPUT "${library}"
    COMMAND "${HCOMM_AARCH64_CXX}" -shared "-Wl,-soname,lib${name}.so" -o "${library}" ${objects}
    DEPENDS ${objects} VERBATIM)
  set(made "${library}")

  if(arg_IMAGE)
    if(NOT EXISTS "${HCOMM_SIM_SOURCE}/scripts/kernel_image.sh")
      message(FATAL_ERROR "hcomm_add_kernel(${name} IMAGE): HCOMM_SIM_SOURCE must name the sources of hcomm-sim, which the image is built of")
    endif()
    set(image "${folder}/kernel/${name}.elf")
    string(REPLACE ";" " " flags "${arg_OPTIONS}")
    string(REPLACE ";" "," functions "${arg_KERNELS}")
    add_custom_command(OUTPUT "${image}"
      COMMAND "${CMAKE_COMMAND}" -E env "CPPFLAGS=${flags}" "ENTRIES=${functions}"
        "${HCOMM_SIM_SOURCE}/scripts/kernel_image.sh" "${image}" ${sources}
      DEPENDS ${sources} VERBATIM)
    list(APPEND made "${image}")
    set(${name}_IMAGE "${image}" PARENT_SCOPE)
  endif()

  file(MAKE_DIRECTORY "${folder}/kernel")
  add_custom_target(${name}_device ALL DEPENDS ${made})
  add_dependencies(${name} ${name}_device)
  set(${name}_DESCRIPTION "${folder}/config/${name}.json" PARENT_SCOPE)
endfunction()
