#include "codegen/target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <mutex>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

const std::vector<std::string> kLevel3 = {"avx", "avx2",  "bmi",   "bmi2",  "f16c",
                                          "fma", "lzcnt", "movbe", "popcnt"};
const std::vector<std::string> kLevel4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq",
                                          "avx512vl"};
// Further instructions that LLVM may choose for arithmetic on vectors. Others (of the system, of
// cryptography, of matrix tiles) appear in no generated code, so no executable needs them.
const std::vector<std::string> kBeyondLevel4 = {
    "avx512bf16", "avx512bitalg", "avx512fp16", "avx512ifma",      "avx512vbmi", "avx512vbmi2",
    "avx512vnni", "avxifma",      "avxvnni",    "avx512vpopcntdq", "gfni"};

bool is_used_by_code(const std::string& feature) {
  for (const auto* list : {&kLevel3, &kLevel4, &kBeyondLevel4}) {
    if (std::find(list->begin(), list->end(), feature) != list->end()) return true;
  }
  return false;
}

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmParser();
    LLVMInitializeX86AsmPrinter();
  });
}

Target native_target() {
  Target target;
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> listed;
  for (const auto& feature : features) {
    listed.push_back((feature.getValue() ? "+" : "-") + feature.getKey().str());
  }
  std::sort(listed.begin(), listed.end());
  for (const std::string& feature : listed) {
    target.features += (target.features.empty() ? "" : ",") + feature;
  }
  target.wide_vectors = true;
  for (const std::string& feature : kLevel4) {
    target.wide_vectors = target.wide_vectors && features.lookup(feature);
  }
  return target;
}

}  // namespace

Target make_target(const std::string& name) {
  if (name == "x86-64-v3") return {name, "", false};
  if (name == "x86-64-v4") return {name, "", true};
  if (name == "native") return native_target();
  throw Error("CPU '" + name + "': expected x86-64-v3, x86-64-v4 or native");
}

std::vector<std::string> required_features(const Target& target) {
  std::vector<std::string> features = kLevel3;
  if (target.wide_vectors) features.insert(features.end(), kLevel4.begin(), kLevel4.end());
  if (target.features.empty()) return features;
  features.clear();
  for (size_t begin = 0; begin < target.features.size();) {
    size_t end = std::min(target.features.find(',', begin), target.features.size());
    const std::string feature = target.features.substr(begin + 1, end - begin - 1);
    if (target.features[begin] == '+' && is_used_by_code(feature)) features.push_back(feature);
    begin = end + 1;
  }
  return features;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target) {
  initialize_once();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, error);
  SGTC_CHECK(found != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(kTriple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                 std::nullopt, llvm::CodeGenOptLevel::Default));
  SGTC_CHECK(machine != nullptr, "LLVM has no machine for " + target.cpu);
  return machine;
}

void set_target(llvm::Module& module, const Target& target, const llvm::TargetMachine& machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(kTriple);
  for (llvm::Function& function : module) {
    if (function.isIntrinsic()) continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.removeFnAttr("target-features");
    if (!target.features.empty()) function.addFnAttr("target-features", target.features);
    function.removeFnAttr("tune-cpu");
    function.removeFnAttr("min-legal-vector-width");
    function.removeFnAttr("prefer-vector-width");
    if (target.wide_vectors) function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("no-builtins");
  }
}

}  // namespace sgtc
