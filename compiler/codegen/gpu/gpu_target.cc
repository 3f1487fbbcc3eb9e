#include "codegen/gpu/gpu_target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>

#include <mutex>

#include "support/diagnostics.h"

namespace sgtc::gpu {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
// The PTX that CUDA 12.0 and its drivers understand.
constexpr const char* kFeatures = "+ptx80";

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

}  // namespace

const std::vector<std::string>& gpu_targets() {
  static const std::vector<std::string> kTargets = {"sm_80", "sm_90a"};
  return kTargets;
}

std::unique_ptr<llvm::TargetMachine> make_gpu_machine(const std::string& target) {
  initialize_once();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
  SGTC_CHECK(found != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(kTriple, target, kFeatures, options, llvm::Reloc::PIC_,
                                 std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  SGTC_CHECK(machine != nullptr, "LLVM has no machine for " + target);
  return machine;
}

void set_gpu_target(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(kTriple);
  for (llvm::Function& function : module) {
    if (function.isIntrinsic()) continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("no-builtins");
  }
}

}  // namespace sgtc::gpu
