#include "codegen/module.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <memory>
#include <utility>

#include "support/diagnostics.h"

namespace sgtc {

void check_module(const llvm::Module& module, const std::string& symbol, const char* when) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  SGTC_CHECK(!llvm::verifyModule(module, &stream),
             "LLVM refuses kernel " + symbol + " " + when + ": " + text);
}

void link_written_kernels(llvm::Module& module, const std::string& symbol,
                          llvm::StringRef bitcode) {
  auto kernels =
      llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bitcode, "kernels"), module.getContext());
  SGTC_CHECK(static_cast<bool>(kernels), "the embedded kernels are no bitcode");
  // Layouts and triples agree in all that matters here; the target is set after linking.
  module.setDataLayout((*kernels)->getDataLayout());
  module.setTargetTriple((*kernels)->getTargetTriple());
  bool failed =
      llvm::Linker::linkModules(module, std::move(*kernels), llvm::Linker::Flags::LinkOnlyNeeded);
  SGTC_CHECK(!failed, "the embedded kernels do not link into " + symbol);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) {
      SGTC_CHECK(function.isIntrinsic(), "kernel " + symbol + " needs " + function.getName().str() +
                                             ", which kernels/ does not define");
    } else if (function.getName() != symbol) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.setComdat(nullptr);
    }
  }
}

void optimize_module(llvm::Module& module, llvm::TargetMachine& machine,
                     const llvm::PipelineTuningOptions& tuning,
                     const std::function<void(llvm::ModulePassManager&)>& add_first) {
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  add_first(passes);
  passes.addPass(builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2));
  passes.run(module, modules);
}

std::string generate_file(const llvm::Module& module, llvm::TargetMachine& machine,
                          llvm::CodeGenFileType type) {
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, type);
  SGTC_CHECK(!refused, "LLVM cannot write this kind of file");
  passes.run(*copy);
  return std::string(bytes.begin(), bytes.end());
}

std::string to_text(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace sgtc
