# Kernels that are written for GPUs, in kernels/NAME/sm_90a, and what tests them.
#
#   gpu_kernels             the kernels of the tests as PTX, and as cubins where ptxas is found, in
#                           build/gpu: the kernels' bitcode linked with a tile visitor from
#                           kernels/NAME/sm_90a/test, inlined and optimised as a model's kernels are
#   gpu_matmul_check        compare them with references on a GPU
#   gpu_attention_check
#   gpu_matmul_bench        measure them
#   gpu_attention_bench
#   gpu_training_check      trains a program made by hand through the whole runtime
#   pack_loops              compiles the kernels of test graphs, with inputs and expected results
#   gpu_loops_check         runs what it has packed, or measures it
#
# Programs and cubins can be carried to a machine with a GPU: scripts/gpu.sh.

find_program(SGTC_OPT NAMES opt-19 opt HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED)
find_program(SGTC_LLC NAMES llc-19 llc HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED)
find_program(SGTC_PTXAS ptxas HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT SGTC_PTXAS)
  message(STATUS "ptxas not found: GPU kernels are built as PTX only")
endif()

set(SGTC_GPU_FOLDER "${CMAKE_BINARY_DIR}/gpu")

# Adds gpu/NAME.ptx and gpu/NAME.cubin from bitcode MODULES; KERNELS are the names of its kernels,
# which have at most REGISTERS registers per thread at entry.
function(sgtc_add_cubin name registers kernels modules)
  list(JOIN kernels "," public)
  set(linked "${SGTC_GPU_FOLDER}/${name}.linked.bc")
  set(optimised "${SGTC_GPU_FOLDER}/${name}.bc")
  set(ptx "${SGTC_GPU_FOLDER}/${name}.ptx")
  add_custom_command(
    OUTPUT "${ptx}"
    COMMAND ${SGTC_LLVM_LINK} -o "${linked}" ${modules}
    COMMAND ${SGTC_OPT} -passes=internalize,default<O3> -internalize-public-api-list=${public}
            "${linked}" -o "${optimised}"
    COMMAND ${SGTC_LLC} -O3 -mcpu=sm_90a -mattr=+ptx80 "${optimised}" -o "${ptx}"
    DEPENDS ${modules}
    COMMENT "Compiling the GPU kernels ${name}"
    VERBATIM)
  set(outputs "${ptx}")
  if(SGTC_PTXAS)
    set(cubin "${SGTC_GPU_FOLDER}/${name}.cubin")
    add_custom_command(
      OUTPUT "${cubin}"
      COMMAND ${CMAKE_COMMAND} -DPTXAS=${SGTC_PTXAS} -DREGISTERS=${registers} -DPTX=${ptx}
              -DCUBIN=${cubin} -P "${CMAKE_SOURCE_DIR}/cmake/assemble_ptx.cmake"
      DEPENDS "${ptx}" "${CMAKE_SOURCE_DIR}/cmake/assemble_ptx.cmake"
      COMMENT "Assembling the GPU kernels ${name}"
      VERBATIM)
    list(APPEND outputs "${cubin}")
  endif()
  set(SGTC_GPU_OUTPUTS ${SGTC_GPU_OUTPUTS} ${outputs} PARENT_SCOPE)
endfunction()

# Adds a cubin for each visitor of kernels/FOLDER/sm_90a/test, with the kernels that the visitor's
# source lists in lines SGTC_…_TEST_KERNEL(NAME) and a bound of registers in a line
# "// REGISTERS registers…".
function(sgtc_add_test_cubins folder)
  file(GLOB kernel_sources CONFIGURE_DEPENDS "kernels/${folder}/sm_90a/*.cc")
  list(FILTER kernel_sources EXCLUDE REGEX "/schedule\\.cc$")
  set(kernel_modules)
  foreach(source IN LISTS kernel_sources)
    cmake_path(GET source FILENAME name)
    list(APPEND kernel_modules "${CMAKE_BINARY_DIR}/kernels/${folder}/sm_90a/${name}.bc")
  endforeach()
  file(GLOB visitors CONFIGURE_DEPENDS "kernels/${folder}/sm_90a/test/*.cc")
  foreach(visitor IN LISTS visitors)
    cmake_path(GET visitor STEM name)
    file(STRINGS "${visitor}" lines REGEX "^SGTC_[A-Z_]+_TEST_KERNEL")
    string(REGEX REPLACE "SGTC_[A-Z_]+_TEST_KERNEL\\(([a-z0-9_]+)\\)" "\\1" kernels "${lines}")
    set(registers 168)
    file(STRINGS "${visitor}" bound REGEX "^// [0-9]+ registers")
    if(bound)
      string(REGEX REPLACE "^// ([0-9]+) registers.*" "\\1" registers "${bound}")
    endif()
    set(module "${CMAKE_BINARY_DIR}/kernels/${folder}/sm_90a/test/${name}.cc.bc")
    sgtc_compile_to_bitcode("${visitor}" "${module}" ${SGTC_KERNEL_SM_90A_FLAGS})
    sgtc_add_cubin(${name} ${registers} "${kernels}" "${kernel_modules};${module}")
  endforeach()
  set(SGTC_GPU_OUTPUTS ${SGTC_GPU_OUTPUTS} PARENT_SCOPE)
endfunction()

function(sgtc_add_gpu_kernels)
  file(MAKE_DIRECTORY "${SGTC_GPU_FOLDER}")
  set(SGTC_GPU_OUTPUTS)
  sgtc_add_test_cubins(matmul)
  sgtc_add_test_cubins(attention)
  set(helpers "${CMAKE_BINARY_DIR}/kernels/helpers.cc.bc")
  sgtc_compile_to_bitcode("${CMAKE_SOURCE_DIR}/tests/gpu/helpers.cc" "${helpers}"
                          ${SGTC_KERNEL_SM_90A_FLAGS} -I "${CMAKE_SOURCE_DIR}/tests")
  sgtc_add_cubin(helpers 168 "fill_random;count_poison;count_differences" "${helpers}")
  set(regression "${CMAKE_BINARY_DIR}/kernels/regression.cc.bc")
  sgtc_compile_to_bitcode("${CMAKE_SOURCE_DIR}/tests/gpu/regression.cc" "${regression}"
                          ${SGTC_KERNEL_SM_90A_FLAGS})
  sgtc_add_cubin(regression 168 "forward;backward;update;evaluate;faulty" "${regression}")
  add_custom_target(gpu_kernels ALL DEPENDS ${SGTC_GPU_OUTPUTS})
endfunction()

function(sgtc_add_gpu_programs)
  # What the host decides about GPU kernels.
  add_library(sgtc_kernels_host STATIC
    kernels/attention/sm_90a/schedule.cc kernels/matmul/sm_90a/schedule.cc)
  target_include_directories(sgtc_kernels_host PUBLIC "${CMAKE_SOURCE_DIR}/kernels")
  target_link_libraries(sgtc_kernels_host PRIVATE sgtc_options)
  add_library(sgtc_gpu_testing STATIC EXCLUDE_FROM_ALL
    tests/gpu/attention_gradient.cc tests/gpu/attention_problem.cc tests/gpu/cublas.cc tests/gpu/cuda_driver.cc
    tests/gpu/matmul_problem.cc)
  target_include_directories(sgtc_gpu_testing PUBLIC "${CMAKE_SOURCE_DIR}/tests")
  target_link_libraries(sgtc_gpu_testing PUBLIC sgtc_kernels_host sgtc_options ${CMAKE_DL_LIBS})
  # Static, because the machine with the GPU may have an older C++ library.
  target_link_options(sgtc_gpu_testing PUBLIC -static-libstdc++ -static-libgcc)
  add_executable(pack_loops tests/gpu/anchor_cases.cc tests/gpu/attention_cases.cc
    tests/gpu/loop_cases.cc tests/gpu/matmul_cases.cc tests/gpu/merged_loop_cases.cc tests/gpu/pack_loops.cc)
  target_include_directories(pack_loops PRIVATE tests)
  target_link_libraries(pack_loops PRIVATE sgtc_codegen sgtc_options)
  add_executable(gpu_loops_check tests/gpu/loops_check.cc)
  target_include_directories(gpu_loops_check PRIVATE compiler)
  target_link_libraries(gpu_loops_check PRIVATE sgtc_gpu_testing)
  foreach(name matmul attention)
    add_executable(gpu_${name}_check tests/gpu/${name}_check.cc)
    add_executable(gpu_${name}_bench EXCLUDE_FROM_ALL tests/gpu/${name}_bench.cc)
    target_link_libraries(gpu_${name}_check PRIVATE sgtc_gpu_testing)
    target_link_libraries(gpu_${name}_bench PRIVATE sgtc_gpu_testing)
  endforeach()
  add_executable(gpu_training_check tests/gpu/training_check.cc)
  target_include_directories(gpu_training_check PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  target_link_libraries(gpu_training_check PRIVATE sgtc_runtime sgtc_options)
  target_link_options(gpu_training_check PRIVATE -static-libstdc++ -static-libgcc)
endfunction()
