#include "codegen/compile.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <set>
#include <utility>

#include "codegen/anchors.h"
#include "codegen/emit_epilogue.h"
#include "codegen/emit_loops.h"
#include "kernels_blob.h"
#include "passes/anchor_geometry.h"
#include "support/diagnostics.h"
#include "support/parallel.h"

namespace sgtc {
namespace {

void check_module(const llvm::Module& module, const KernelSpec& spec, const char* when) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  SGTC_CHECK(!llvm::verifyModule(module, &stream),
             "LLVM refuses kernel " + spec.symbol + " " + when + ": " + text);
}

void emit_kernel(llvm::Module& module, const KernelSpec& spec, const Target& target) {
  if (spec.kind == "loop") return emit_loop_kernel(module, spec);
  emit_anchor_kernel(module, spec, target.wide_vectors);
  if (anchor_visits_tiles(spec.anchor, spec.result_types[0].dtype)) emit_tile_store(module, spec);
}

// Links what the module calls from the bitcode of kernels/ and hides everything but the kernel.
void link_written_kernels(llvm::Module& module, const KernelSpec& spec) {
  llvm::StringRef bitcode(sgtc_kernels_cpu_begin,
                          static_cast<size_t>(sgtc_kernels_cpu_end - sgtc_kernels_cpu_begin));
  auto kernels =
      llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bitcode, "kernels"), module.getContext());
  SGTC_CHECK(static_cast<bool>(kernels), "the embedded kernels are no bitcode");
  // Layouts and triples agree in all that matters here; the target is set after linking.
  module.setDataLayout((*kernels)->getDataLayout());
  module.setTargetTriple((*kernels)->getTargetTriple());
  bool failed =
      llvm::Linker::linkModules(module, std::move(*kernels), llvm::Linker::Flags::LinkOnlyNeeded);
  SGTC_CHECK(!failed, "the embedded kernels do not link into " + spec.symbol);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) {
      SGTC_CHECK(function.isIntrinsic(), "kernel " + spec.symbol + " needs " +
                                             function.getName().str() +
                                             ", which kernels/ does not define");
    } else if (function.getName() != spec.symbol) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.setComdat(nullptr);
    }
  }
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, bool is_loop) {
  llvm::PipelineTuningOptions tuning;
  // Loop kernels are written as vectors; what is left in scalars is meant to be.
  tuning.LoopVectorization = !is_loop;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = !is_loop;
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
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

std::string generate(const llvm::Module& module, llvm::TargetMachine& machine,
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

CompiledKernel compile_kernel(const KernelSpec& spec, const CompileOptions& options) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(options.target);
  std::unique_ptr<llvm::Module> module =
      build_kernel_module(context, spec, options.target, *machine);
  CompiledKernel kernel;
  kernel.symbol = spec.symbol;
  kernel.object = generate(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (options.keep_assembly) {
    kernel.assembly = generate(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  }
  if (options.keep_llvm_ir) {
    llvm::raw_string_ostream stream(kernel.llvm_ir);
    module->print(stream, nullptr);
  }
  return kernel;
}

}  // namespace

std::unique_ptr<llvm::Module> build_kernel_module(llvm::LLVMContext& context,
                                                  const KernelSpec& spec, const Target& target,
                                                  llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>(spec.symbol, context);
  emit_kernel(*module, spec, target);
  check_module(*module, spec, "as emitted");
  link_written_kernels(*module, spec);
  set_target(*module, target, machine);
  optimize(*module, machine, spec.kind == "loop");
  check_module(*module, spec, "after optimisation");
  return module;
}

std::vector<CompiledKernel> compile_kernels(const std::vector<KernelSpec>& specs,
                                            const CompileOptions& options) {
  std::vector<const KernelSpec*> distinct;
  std::set<std::string> symbols;
  for (const KernelSpec& spec : specs) {
    if (symbols.insert(spec.symbol).second) distinct.push_back(&spec);
  }
  std::vector<CompiledKernel> kernels(distinct.size());
  parallel_for(static_cast<int64_t>(distinct.size()), options.jobs, [&](int64_t i) {
    size_t at = static_cast<size_t>(i);
    kernels[at] = compile_kernel(*distinct[at], options);
  });
  return kernels;
}

}  // namespace sgtc
