# Defines the imported static library `onnx` (with its headers, definitions and protobuf).
#
# The library is built at configure time into SGTC_ONNX_PREFIX, once for all build folders that
# name the same prefix; a stamp there says from what it was built. The source distribution is
# expected in the prefix as onnx-VERSION.tar.gz and checked against cmake/onnx-requirements.txt.

set(onnx_default_prefix "${CMAKE_BINARY_DIR}/_onnx")
if(DEFINED ENV{SGTC_ONNX_PREFIX})
  set(onnx_default_prefix "$ENV{SGTC_ONNX_PREFIX}")
endif()
set(SGTC_ONNX_PREFIX "${onnx_default_prefix}" CACHE PATH "Where ONNX's C++ library is built once")

set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
find_package(Threads REQUIRED)

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/onnx-requirements.txt" onnx_pin REGEX "^onnx==")
if(NOT onnx_pin MATCHES "^onnx==([0-9.]+) --hash=sha256:([0-9a-f]+)$")
  message(FATAL_ERROR "cmake/onnx-requirements.txt: expected 'onnx==VERSION --hash=sha256:HASH', "
                      "found '${onnx_pin}'")
endif()
set(onnx_version "${CMAKE_MATCH_1}")
set(onnx_hash "${CMAKE_MATCH_2}")
set(onnx_project "${CMAKE_CURRENT_LIST_DIR}/onnx")
file(SHA256 "${onnx_project}/CMakeLists.txt" onnx_project_hash)
set(onnx_stamp "${onnx_hash} ${onnx_project_hash} protobuf ${Protobuf_VERSION}")

# Unpacks, compiles and installs the library and leaves the stamp.
function(sgtc_build_onnx)
  set(archive "${SGTC_ONNX_PREFIX}/onnx-${onnx_version}.tar.gz")
  if(NOT EXISTS "${archive}")
    message(FATAL_ERROR "ONNX's source distribution is missing (${archive}): run scripts/build.sh, "
                        "which fetches it, or set SGTC_ONNX_PREFIX to a prefix that has it")
  endif()
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL onnx_hash)
    message(FATAL_ERROR "${archive}: expected sha256 ${onnx_hash}, found ${found}: remove the file "
                        "and run scripts/build.sh")
  endif()
  set(work "${SGTC_ONNX_PREFIX}/work")
  file(REMOVE_RECURSE "${work}")
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${work}")
  message(STATUS "Building ONNX ${onnx_version} into ${SGTC_ONNX_PREFIX} (once, some minutes)")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${onnx_project}" -B "${work}/build" -G "${CMAKE_GENERATOR}"
            "-DONNX_SOURCE=${work}/onnx-${onnx_version}" -DCMAKE_BUILD_TYPE=Release
            "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_INSTALL_PREFIX=${SGTC_ONNX_PREFIX}"
            COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${work}/build" --target install
                  COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE "${work}")
  file(WRITE "${SGTC_ONNX_PREFIX}/stamp" "${onnx_stamp}")
endfunction()

file(MAKE_DIRECTORY "${SGTC_ONNX_PREFIX}")
file(LOCK "${SGTC_ONNX_PREFIX}/lock" GUARD FILE TIMEOUT 1800)
set(onnx_found_stamp)
if(EXISTS "${SGTC_ONNX_PREFIX}/stamp")
  file(READ "${SGTC_ONNX_PREFIX}/stamp" onnx_found_stamp)
endif()
if(NOT onnx_found_stamp STREQUAL onnx_stamp)
  sgtc_build_onnx()
endif()

add_library(onnx STATIC IMPORTED GLOBAL)
set_target_properties(onnx PROPERTIES IMPORTED_LOCATION "${SGTC_ONNX_PREFIX}/lib/libonnx.a")
target_include_directories(onnx SYSTEM INTERFACE "${SGTC_ONNX_PREFIX}/include")
target_compile_definitions(onnx INTERFACE ONNX_NAMESPACE=onnx ONNX_ML=1 __STDC_FORMAT_MACROS)
target_link_libraries(onnx INTERFACE protobuf::libprotobuf Threads::Threads)
