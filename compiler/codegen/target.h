// The machine that code is generated for.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

namespace sgtc {

/// A level of the x86-64 instruction set.
struct Target {
  std::string cpu;            // x86-64-v3, x86-64-v4, or the name LLVM gives this machine's CPU
  std::string features;       // "+avx2,-avx512f…" beyond the CPU's own; only for "native"
  bool wide_vectors = false;  // 32 vector registers of 512 bits
};

/// The target called x86-64-v3, x86-64-v4 or native. Throws Error for any other name.
Target make_target(const std::string& name);

/// Features of CPUID that the generated code uses and the executable checks at its start.
std::vector<std::string> required_features(const Target& target);

/// A machine that neither contracts nor reassociates floating-point operations.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target);

/// Sets data layout and triple of the module, and CPU and features of every function alike: LLVM
/// refuses to inline across a difference.
void set_target(llvm::Module& module, const Target& target, const llvm::TargetMachine& machine);

}  // namespace sgtc
