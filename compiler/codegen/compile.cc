#include "codegen/compile.h"

#include <set>
#include <utility>

#include "codegen/anchors.h"
#include "codegen/emit_epilogue.h"
#include "codegen/emit_loops.h"
#include "codegen/module.h"
#include "kernels_blob.h"
#include "passes/anchor_geometry.h"
#include "support/parallel.h"

namespace sgtc {
namespace {

void emit_kernel(llvm::Module& module, const KernelSpec& spec, const Target& target) {
  if (spec.kind == "loop") return emit_loop_kernel(module, spec);
  emit_anchor_kernel(module, spec, target.wide_vectors);
  if (anchor_visits_tiles(spec.anchor, spec.result_types[0].dtype)) {
    emit_tile_store(module, spec);
    emit_tile_prefetch(module, spec);
  }
}

llvm::PipelineTuningOptions tuning_of(const KernelSpec& spec) {
  const bool is_loop = spec.kind == "loop";
  llvm::PipelineTuningOptions tuning;
  // Loop kernels are written as vectors; what is left in scalars is meant to be.
  tuning.LoopVectorization = !is_loop;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = !is_loop;
  return tuning;
}

CompiledKernel compile_kernel(const KernelSpec& spec, const CompileOptions& options) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(options.target);
  std::unique_ptr<llvm::Module> module =
      build_kernel_module(context, spec, options.target, *machine);
  CompiledKernel kernel;
  kernel.symbol = spec.symbol;
  kernel.object = generate_file(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (options.keep_assembly) {
    kernel.assembly = generate_file(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  }
  if (options.keep_llvm_ir) kernel.llvm_ir = to_text(*module);
  return kernel;
}

}  // namespace

std::unique_ptr<llvm::Module> build_kernel_module(llvm::LLVMContext& context,
                                                  const KernelSpec& spec, const Target& target,
                                                  llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>(spec.symbol, context);
  emit_kernel(*module, spec, target);
  check_module(*module, spec.symbol, "as emitted");
  link_written_kernels(
      *module, spec.symbol,
      {sgtc_kernels_cpu_begin, static_cast<size_t>(sgtc_kernels_cpu_end - sgtc_kernels_cpu_begin)});
  set_target(*module, target, machine);
  optimize_module(*module, machine, tuning_of(spec));
  check_module(*module, spec.symbol, "after optimisation");
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
