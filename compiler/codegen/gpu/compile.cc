#include "codegen/gpu/compile.h"

#include <llvm/Transforms/Scalar/Scalarizer.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "codegen/gpu/emit_anchors.h"
#include "codegen/gpu/emit_loops.h"
#include "codegen/gpu/emit_merged_loops.h"
#include "codegen/gpu/emit_stamps.h"
#include "codegen/gpu/emit_strided_store.h"
#include "codegen/gpu/emit_tile_visitor.h"
#include "codegen/gpu/ptxas.h"
#include "codegen/module.h"
#include "kernels_blob.h"
#include "passes/anchor_geometry.h"
#include "support/diagnostics.h"
#include "support/parallel.h"

namespace sgtc::gpu {
namespace {

// A thread has scalar registers: only loads and stores stay vectors.
void add_scalarizer(llvm::ModulePassManager& passes) {
  llvm::ScalarizerPassOptions options;
  options.ScalarizeVariableInsertExtract = true;
  options.ScalarizeLoadStore = false;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ScalarizerPass(options)));
}

llvm::PipelineTuningOptions gpu_tuning() {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  return tuning;
}

void emit_kernel(llvm::Module& module, const KernelSpec& spec) {
  if (spec.merged != nullptr) return emit_merged_loops(module, spec);
  if (spec.kind == "loop") return emit_loop_kernel(module, spec);
  if (spec.kind == mark_kernel().kind) return emit_mark(module, spec);
  emit_anchor_kernel(module, spec);
  if (!spec.result_layouts.empty()) return emit_strided_stores(module, spec);
  if (!anchor_visits_tiles(spec.anchor, spec.result_types[0].dtype)) return;
  emit_tile_store(module, spec);
  emit_tile_load(module, spec);
  emit_tile_store_loaded(module, spec);
  emit_tile_prefetch(module, spec);
}

// The NVPTX backend remembers what it knows of kernels, their threads per block among it, by the
// address of the module, and may take it for that of a later module at the same address: then it
// drops checks of bounds. So addresses are not used again.
void* new_module_address() {
  struct Place {
    alignas(llvm::Module) std::byte bytes[sizeof(llvm::Module)];
  };
  static std::mutex mutex;
  static std::deque<Place> places;
  const std::lock_guard<std::mutex> lock(mutex);
  return places.emplace_back().bytes;
}

GpuKernel compile_kernel(const KernelSpec& spec, const GpuCompileOptions& options) {
  SGTC_CHECK(has_gpu_code(spec), spec.kind + " has no GPU code");
  GpuKernel kernel;
  kernel.symbol = spec.symbol;
  llvm::LLVMContext context;
  struct Destroy {
    void operator()(llvm::Module* module) const { module->~Module(); }
  };
  const std::unique_ptr<llvm::Module, Destroy> owner(new (new_module_address())
                                                         llvm::Module(spec.symbol, context));
  llvm::Module& module = *owner;
  const std::unique_ptr<llvm::TargetMachine> machine = make_gpu_machine(options.target);
  emit_kernel(module, spec);
  check_module(module, spec.symbol, "as emitted");
  link_written_kernels(
      module, spec.symbol,
      {sgtc_kernels_gpu_begin, static_cast<size_t>(sgtc_kernels_gpu_end - sgtc_kernels_gpu_begin)});
  set_gpu_target(module, *machine);
  optimize_module(module, *machine, gpu_tuning(), add_scalarizer);
  emit_stamps(module.getFunction(spec.symbol));
  check_module(module, spec.symbol, "after optimisation");
  if (options.keep_llvm_ir) kernel.llvm_ir = to_text(module);
  kernel.ptx = generate_file(module, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (options.ptxas.empty()) return kernel;
  Assembled assembled = assemble_ptx(options.ptxas, kernel.ptx, options.target);
  kernel.cubin = std::move(assembled.cubin);
  kernel.report = std::move(assembled.report);
  return kernel;
}

}  // namespace

bool has_gpu_code(const KernelSpec& spec) {
  return spec.kind == "loop" || spec.kind == mark_kernel().kind || !spec.entry.name.empty();
}

std::vector<GpuKernel> compile_gpu_kernels(const std::vector<KernelSpec>& specs,
                                           const GpuCompileOptions& options) {
  std::vector<const KernelSpec*> distinct;
  std::set<std::string> symbols;
  for (const KernelSpec& spec : specs) {
    if (symbols.insert(spec.symbol).second) distinct.push_back(&spec);
  }
  std::vector<GpuKernel> kernels(distinct.size());
  parallel_for(static_cast<int64_t>(distinct.size()), options.jobs, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    kernels[at] = compile_kernel(*distinct[at], options);
  });
  return kernels;
}

}  // namespace sgtc::gpu
