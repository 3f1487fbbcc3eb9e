# cmake -DNM=... -DOBJECT=... -DPROVIDED=LIBRARY:LIBRARY... -P check_prelinked.cmake
#
# Fails if OBJECT, the prelinked runtime, needs a symbol that neither the C library (PROVIDED), the
# linker and start-up objects, nor the output program (prefix sgtc_) defines.

set(linker_symbols "^(_GLOBAL_OFFSET_TABLE_|__dso_handle|__ehdr_start|_end|__(start|stop)_.*)$")

# Sets RESULT to the names that nm prints for FILE, without versions.
function(symbol_names result)
  execute_process(COMMAND ${NM} --format=posix ${ARGN} OUTPUT_VARIABLE text
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${text}")
  list(TRANSFORM lines REPLACE "[@ ].*" "")
  set(${result} ${lines} PARENT_SCOPE)
endfunction()

execute_process(COMMAND ${NM} --format=posix -u ${OBJECT} OUTPUT_VARIABLE text
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+ U[^\n]*" missing "${text}")
list(TRANSFORM missing REPLACE " .*" "")
string(REPLACE ":" ";" libraries "${PROVIDED}")
foreach(library IN LISTS libraries)
  symbol_names(names -D --defined-only ${library})
  list(REMOVE_ITEM missing ${names})
endforeach()
list(FILTER missing EXCLUDE REGEX "^sgtc_")
list(FILTER missing EXCLUDE REGEX "${linker_symbols}")
if(missing)
  file(REMOVE ${OBJECT})
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "The prelinked runtime needs symbols that the C library does not have:\n"
                      "  ${missing}\n"
                      "Avoid what pulls them in; symbols of the output program begin with sgtc_.")
endif()
