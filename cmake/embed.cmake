# sgtc_embed(TARGET FILE_NAME SYMBOL FILE [SYMBOL FILE]...)
#
# Defines the static library TARGET that holds the bytes of each FILE between the symbols
# SYMBOL_begin and SYMBOL_end, which the generated header TARGET's name without `sgtc_` declares:
# sgtc_kernels_blob has "kernels_blob.h".
function(sgtc_embed target)
  string(REGEX REPLACE "^sgtc_" "" stem "${target}")
  set(folder "${CMAKE_BINARY_DIR}/embedded/${stem}")
  set(assembly ".section .rodata\n")
  set(header "#pragma once\n\nextern \"C\" {\n")
  set(files)
  set(arguments ${ARGN})
  while(arguments)
    list(POP_FRONT arguments symbol file)
    list(APPEND files "${file}")
    string(APPEND assembly
           ".global ${symbol}_begin\n.global ${symbol}_end\n.balign 16\n"
           "${symbol}_begin:\n.incbin \"${file}\"\n${symbol}_end:\n.byte 0\n")
    string(APPEND header "extern const char ${symbol}_begin[];\nextern const char ${symbol}_end[];\n")
  endwhile()
  string(APPEND assembly ".section .note.GNU-stack,\"\",@progbits\n")
  string(APPEND header "}\n")
  file(CONFIGURE OUTPUT "${folder}/${stem}.S" CONTENT "${assembly}" @ONLY)
  file(CONFIGURE OUTPUT "${folder}/${stem}.h" CONTENT "${header}" @ONLY)
  set_source_files_properties("${folder}/${stem}.S" PROPERTIES OBJECT_DEPENDS "${files}")
  add_library(${target} STATIC "${folder}/${stem}.S")
  target_include_directories(${target} PUBLIC "${folder}")
endfunction()
