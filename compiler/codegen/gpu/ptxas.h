// NVIDIA's assembler, which users who have CUDA have.
#pragma once

#include <string>

namespace sgtc::gpu {

/// The path of ptxas: the first of $PATH, $CUDA_HOME/bin and /usr/local/cuda/bin; empty without
/// one.
std::string find_ptxas();

struct Assembled {
  std::string cubin;
  std::string report;  // what `ptxas -v` says of registers and spills
};

/// Assembles PTX for `target` (sm_90a). Throws Error with the assembler's words where it fails, or
/// where a temporary file cannot be written.
Assembled assemble_ptx(const std::string& ptxas, const std::string& ptx, const std::string& target);

/// Whether the assembler reports (messages C75xx) that products wait for each other or that a
/// change of registers was ignored: the kernel is right, and slower than it should be.
bool serializes_products(const std::string& report);

}  // namespace sgtc::gpu
