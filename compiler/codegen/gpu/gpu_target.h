// The GPUs that code is generated for.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

namespace sgtc::gpu {

/// The names of all GPU targets: sm_80 (Ampere), sm_90a (Hopper).
const std::vector<std::string>& gpu_targets();

/// A machine for one of them that neither contracts nor reassociates floating-point operations.
std::unique_ptr<llvm::TargetMachine> make_gpu_machine(const std::string& target);

/// Sets data layout and triple of the module, and the target of every function alike.
void set_gpu_target(llvm::Module& module, const llvm::TargetMachine& machine);

}  // namespace sgtc::gpu
