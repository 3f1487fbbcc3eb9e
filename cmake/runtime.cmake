# The runtime that every output is linked with: runtime/**/*.cc, no exceptions, no RTTI.
#
#   sgtc_runtime       its sources but main.cc as a library, for unit tests
#   sgtc_runtime_blob  one relocatable object of all sources and the members of libstdc++ and libgcc
#                      that they need, so that users need no compiler, together with the start-up
#                      objects of the C library ("runtime_blob.h": sgtc_runtime_begin, ..._end,
#                      sgtc_crt1_begin, ... for crt1, crti, crtn, crtbegin, crtend)

set(SGTC_RUNTIME_FLAGS -fno-exceptions -fno-rtti)

# Asks the compiler for the path of one of its files.
function(sgtc_toolchain_file name result)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${name}
                  OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT IS_ABSOLUTE "${path}")
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} has no ${name}: install g++ and libc6-dev")
  endif()
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

# The include path, definitions and flags that both forms of the runtime share. Of the compiler it
# sees one header, plan/format.h.
function(sgtc_runtime_properties target)
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/runtime"
                                              "${CMAKE_SOURCE_DIR}/compiler")
  target_compile_definitions(${target} PUBLIC JSON_NOEXCEPTION JSON_NO_IO)
  # For one file alone: a path would make compiler caches useless for the others.
  set_source_files_properties("${CMAKE_SOURCE_DIR}/runtime/communication/gloo_library.cc" PROPERTIES
    COMPILE_DEFINITIONS SGTC_PLUGIN_FOLDER="${SGTC_PLUGIN_FOLDER}")
  target_compile_options(${target} PRIVATE ${SGTC_RUNTIME_FLAGS})
  target_link_libraries(${target} PUBLIC nlohmann_json::nlohmann_json)
endfunction()

# Prelinks the objects of sgtc_runtime_objects into OUTPUT.
function(sgtc_prelink_runtime output)
  set(archives)
  foreach(name libstdc++.a libgcc.a libgcc_eh.a libc_nonshared.a)
    sgtc_toolchain_file(${name} archive)
    list(APPEND archives "${archive}")
  endforeach()
  set(provided)
  foreach(name libc.so.6 libm.so.6 ld-linux-x86-64.so.2)
    sgtc_toolchain_file(${name} library)
    list(APPEND provided "${library}")
  endforeach()
  list(JOIN provided ":" provided)
  set(check "${CMAKE_SOURCE_DIR}/cmake/check_prelinked.cmake")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -fuse-ld=bfd -Wl,--strip-debug -o "${output}"
            "$<TARGET_OBJECTS:sgtc_runtime_objects>" -Wl,--start-group ${archives} -Wl,--end-group
    COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DOBJECT=${output} "-DPROVIDED=${provided}"
            -P "${check}"
    DEPENDS "$<TARGET_OBJECTS:sgtc_runtime_objects>" "${check}"
    COMMENT "Prelinking the runtime"
    COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

# Defines sgtc_runtime and sgtc_runtime_blob if the runtime has its main.cc.
function(sgtc_add_runtime)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "runtime/*.cc")
  set(main "${CMAKE_SOURCE_DIR}/runtime/main.cc")
  set(library_sources ${sources})
  list(REMOVE_ITEM library_sources "${main}")
  if(library_sources)
    add_library(sgtc_runtime STATIC ${library_sources})
    sgtc_runtime_properties(sgtc_runtime)
    target_link_libraries(sgtc_runtime PUBLIC sgtc_options)
  endif()
  if(NOT main IN_LIST sources)
    return()
  endif()

  add_library(sgtc_runtime_objects OBJECT ${sources})
  sgtc_runtime_properties(sgtc_runtime_objects)
  target_compile_options(sgtc_runtime_objects PRIVATE -O2 -fno-pie -ffunction-sections
                                                      -fdata-sections -fno-stack-protector)
  target_link_libraries(sgtc_runtime_objects PRIVATE sgtc_warnings)
  set(prelinked "${CMAKE_BINARY_DIR}/runtime/runtime_prelinked.o")
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/runtime")
  sgtc_prelink_runtime("${prelinked}")
  set(embedded sgtc_runtime "${prelinked}")
  foreach(name crt1 crti crtn crtbegin crtend)
    sgtc_toolchain_file(${name}.o object)
    list(APPEND embedded sgtc_${name} "${object}")
  endforeach()
  sgtc_embed(sgtc_runtime_blob ${embedded})
endfunction()
