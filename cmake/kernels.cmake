# Kernels that are written, not generated: kernels/NAME/cpu*.cc, freestanding C++ that clang 19
# compiles to LLVM bitcode when sgtc is built.
#
#   sgtc_kernels_blob  the bitcode of all of them, linked into one module and embedded
#                      ("kernels_blob.h": sgtc_kernels_cpu_begin, sgtc_kernels_cpu_end), and that of
#                      kernels/NAME/gpu*.cc and kernels/NAME/{gpu,sm_80,sm_90a}/*.cc, but for what
#                      their hosts do (schedule.cc), for GPUs (sgtc_kernels_gpu_begin, …_end)
#   sgtc_kernels_cpu   the same bitcode as machine code, one object per source, for the tests and
#                      benchmarks that stand beside the kernels

find_program(SGTC_CLANG NAMES clang++-19 HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED)
find_program(SGTC_LLVM_LINK NAMES llvm-link-19 llvm-link HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED)

# Contraction would make bits depend on what is inlined next to what, hence -ffp-contract=off;
# -fno-math-errno and -fno-builtin keep calls out of the loops.
set(SGTC_KERNEL_FLAGS
    -std=c++20 -O2 -ffreestanding -fno-exceptions -fno-rtti -fno-builtin -fno-math-errno
    -ffp-contract=off -fno-stack-protector -Wall -Wextra)
# -mavx512f serves the calling convention alone (kernels/include/vector.h).
set(SGTC_KERNEL_CPU_FLAGS ${SGTC_KERNEL_FLAGS} -march=x86-64-v3 -mavx512f -Wno-psabi)

# For GPUs. Without -fconvergent-functions LLVM would move barriers and products of warps in and out
# of branches.
set(SGTC_KERNEL_SM_90A_FLAGS ${SGTC_KERNEL_FLAGS})
list(REMOVE_ITEM SGTC_KERNEL_SM_90A_FLAGS -fno-stack-protector)
list(APPEND SGTC_KERNEL_SM_90A_FLAGS
    --target=nvptx64-nvidia-cuda -march=sm_90a -Xclang -target-feature -Xclang
    +ptx80 -fconvergent-functions)

# Compiles SOURCE to OUTPUT; the further arguments are compiler flags.
function(sgtc_compile_kernel source output)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_VARIABLE name)
  cmake_path(GET output PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${SGTC_CLANG} ${ARGN} -I "${CMAKE_SOURCE_DIR}/kernels"
            -I "${CMAKE_SOURCE_DIR}/kernels/include" -c "${source}"
            -o "${output}" -MD -MF "${output}.d"
    DEPENDS "${source}"
    DEPFILE "${output}.d"
    COMMENT "Compiling the kernels of ${name}"
    VERBATIM)
endfunction()

# The same to bitcode.
function(sgtc_compile_to_bitcode source output)
  sgtc_compile_kernel("${source}" "${output}" -emit-llvm ${ARGN})
endfunction()

# Compiles the kernels for GPUs to bitcode files BUILD/NAME.bc, where NAME is the source's path below
# kernels, and links them into OUTPUT. A compiled model sets the target anew; until then all are for
# the newest one.
function(sgtc_link_gpu_kernels build output)
  file(GLOB sources CONFIGURE_DEPENDS "kernels/*/gpu*.cc" "kernels/*/gpu/*.cc"
       "kernels/*/sm_80/*.cc" "kernels/*/sm_90a/*.cc")
  list(FILTER sources EXCLUDE REGEX "/schedule\\.cc$")
  set(modules)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}/kernels"
               OUTPUT_VARIABLE name)
    set(flags ${SGTC_KERNEL_SM_90A_FLAGS})
    # Those for all types are optimised when their shapes are known and only one type is left.
    if(name MATCHES "/gpu/")
      list(APPEND flags -Xclang -disable-llvm-passes)
    endif()
    sgtc_compile_to_bitcode("${source}" "${build}/${name}.bc" ${flags})
    list(APPEND modules "${build}/${name}.bc")
  endforeach()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${SGTC_LLVM_LINK} -o "${output}" ${modules}
    DEPENDS ${modules}
    COMMENT "Linking the GPU kernels"
    VERBATIM)
endfunction()

# Defines sgtc_kernels_blob and sgtc_kernels_cpu if there is a kernel.
function(sgtc_add_kernels)
  file(GLOB sources CONFIGURE_DEPENDS "kernels/*/cpu*.cc")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  if(NOT sources)
    return()
  endif()
  set(build "${CMAKE_BINARY_DIR}/kernels")
  set(modules)
  set(objects)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}/kernels"
               OUTPUT_VARIABLE name)
    set(module "${build}/${name}.bc")
    set(object "${build}/${name}.o")
    sgtc_compile_to_bitcode("${source}" "${module}" ${SGTC_KERNEL_CPU_FLAGS})
    add_custom_command(
      OUTPUT "${object}"
      COMMAND ${SGTC_CLANG} -O2 -fPIC -march=x86-64-v3 -c "${module}" -o "${object}"
      DEPENDS "${module}"
      COMMENT "Compiling the bitcode of ${name}"
      VERBATIM)
    list(APPEND modules "${module}")
    list(APPEND objects "${object}")
  endforeach()
  set(linked "${build}/kernels_cpu.bc")
  add_custom_command(
    OUTPUT "${linked}"
    COMMAND ${SGTC_LLVM_LINK} -o "${linked}" ${modules}
    DEPENDS ${modules}
    COMMENT "Linking the CPU kernels"
    VERBATIM)
  sgtc_link_gpu_kernels("${build}" "${build}/kernels_gpu.bc")
  sgtc_embed(sgtc_kernels_blob
    sgtc_kernels_cpu "${linked}" sgtc_kernels_gpu "${build}/kernels_gpu.bc")
  add_library(sgtc_kernels_cpu STATIC ${objects})
  set_target_properties(sgtc_kernels_cpu PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(sgtc_kernels_cpu INTERFACE "${CMAKE_SOURCE_DIR}/kernels"
                                                        "${CMAKE_SOURCE_DIR}/kernels/include")
  # Shared by the kernels, the compiler (the constants of a kernel) and the interpreter.
  target_include_directories(sgtc_kernels_blob PUBLIC "${CMAKE_SOURCE_DIR}/kernels/include")
  file(GLOB benchmarks CONFIGURE_DEPENDS "kernels/*/*_bench.cc")
  foreach(source IN LISTS benchmarks)
    cmake_path(GET source STEM name)
    add_executable(${name} EXCLUDE_FROM_ALL "${source}")
    target_link_libraries(${name} PRIVATE sgtc_kernels_cpu sgtc_options)
  endforeach()
endfunction()
