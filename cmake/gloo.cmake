# libsgtc_gloo.so: plugins/gloo.cc with Gloo, for programs whose ranks lie on several hosts.
#
# The runtime looks for it beside the program, in SGTC_PLUGIN_PATH, and in SGTC_PLUGIN_FOLDER.

set(SGTC_PLUGIN_FOLDER "${CMAKE_BINARY_DIR}/lib")

function(sgtc_add_gloo_plugin)
  find_library(GLOO_LIBRARY gloo)
  find_path(GLOO_INCLUDE gloo/transport/tcp/device.h)
  if(NOT GLOO_LIBRARY OR NOT GLOO_INCLUDE)
    message(WARNING "Gloo is missing (libgloo-dev): programs will not run on several hosts")
    return()
  endif()
  add_library(sgtc_gloo MODULE plugins/gloo.cc)
  set_target_properties(sgtc_gloo PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${SGTC_PLUGIN_FOLDER}" CXX_VISIBILITY_PRESET hidden)
  target_include_directories(sgtc_gloo PRIVATE "${CMAKE_SOURCE_DIR}/runtime")
  target_include_directories(sgtc_gloo SYSTEM PRIVATE "${GLOO_INCLUDE}")
  target_link_libraries(sgtc_gloo PRIVATE "${GLOO_LIBRARY}" sgtc_options)
endfunction()
