# Assembles the file PTX to CUBIN with PTXAS, and fails where ptxas spills registers or reports that
# it serialised products or ignored a change of registers (messages C75xx): such a kernel is correct
# and slow.
#
# REGISTERS is the bound per thread at entry, without which setmaxnreg has no effect.
execute_process(
  COMMAND "${PTXAS}" -arch=sm_90a --maxrregcount=${REGISTERS} -v "${PTX}" -o "${CUBIN}"
  OUTPUT_VARIABLE report ERROR_VARIABLE report RESULT_VARIABLE status)
string(REGEX MATCHALL "[^\n]*(C75[0-9][0-9]|[1-9][0-9]* bytes (stack|spill))[^\n]*" faults "${report}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${report}")
elseif(faults)
  file(REMOVE "${CUBIN}")
  list(JOIN faults "\n" text)
  message(FATAL_ERROR "${PTX}: ptxas reports\n${text}")
endif()
