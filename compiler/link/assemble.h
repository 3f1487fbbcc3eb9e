// Data as an object file.
#pragma once

#include <string>

namespace sgtc {

/// Assembles GNU x86-64 assembly text with LLVM's integrated assembler; returns an ELF object.
std::string assemble(const std::string& text);

}  // namespace sgtc
