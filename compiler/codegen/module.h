// Steps from an emitted module to a file that CPUs and GPUs share.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <string>

namespace sgtc {

/// Fails where LLVM's verifier refuses the module of kernel `symbol`.
void check_module(const llvm::Module& module, const std::string& symbol, const char* when);

/// Links what the module calls from `bitcode`, the written kernels, and hides everything but
/// `symbol`. Fails where something is called that they do not define.
void link_written_kernels(llvm::Module& module, const std::string& symbol, llvm::StringRef bitcode);

/// LLVM's pipeline at level 2, after the passes that `add_first` adds to its start.
void optimize_module(
    llvm::Module& module, llvm::TargetMachine& machine, const llvm::PipelineTuningOptions& tuning,
    const std::function<void(llvm::ModulePassManager&)>& add_first = [](auto&) {});

/// The module as an object file or as assembly text. Leaves the module as it is.
std::string generate_file(const llvm::Module& module, llvm::TargetMachine& machine,
                          llvm::CodeGenFileType type);

/// The module as LLVM's text.
std::string to_text(const llvm::Module& module);

}  // namespace sgtc
