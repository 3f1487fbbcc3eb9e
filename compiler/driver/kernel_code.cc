#include "driver/kernel_code.h"

#include <algorithm>
#include <set>
#include <thread>

#include "codegen/gpu/emit_stamps.h"
#include "codegen/gpu/ptxas.h"

namespace sgtc {
namespace {

int jobs_of(const Options& options) {
  if (options.jobs > 0) return options.jobs;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::vector<CompiledKernel> compile_for_cpu(const std::vector<KernelSpec>& specs,
                                            const Options& options, const Target& cpu) {
  CompileOptions compile;
  compile.target = cpu;
  compile.jobs = jobs_of(options);
  compile.keep_llvm_ir = emits(options, "llvm-ir");
  compile.keep_assembly = emits(options, "asm");
  return compile_kernels(specs, compile);
}

// The path of the assembler; empty: none.
std::string ptxas_of(const Options& options) {
  if (options.ptxas == "none") return "";
  return options.ptxas.empty() ? gpu::find_ptxas() : options.ptxas;
}

std::string types_text(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(type.dtype)) + to_string(type.shape);
  }
  return text;
}

std::vector<gpu::GpuKernel> compile_for_gpu(std::vector<KernelSpec> specs, const Options& options) {
  gpu::GpuCompileOptions compile;
  compile.target = options.target;
  compile.jobs = jobs_of(options);
  compile.keep_llvm_ir = emits(options, "llvm-ir");
  if (makes_executable(options)) compile.ptxas = ptxas_of(options);
  specs.push_back(gpu::mark_kernel());
  return gpu::compile_gpu_kernels(specs, compile);
}

}  // namespace

bool emits(const Options& options, const std::string& what) {
  return std::any_of(options.emit.begin(), options.emit.end(),
                     [&](const EmitRequest& request) { return request.what == what; });
}

bool makes_executable(const Options& options) {
  return !options.output.empty() || emits(options, "exe");
}

void check_code_options(const Options& options) {
  const bool is_cpu = options.target == "cpu";
  if (is_cpu && emits(options, "ptx")) {
    throw Error("--emit=ptx: the target is cpu; add --target sm_90a or --target sm_80");
  }
  if (!is_cpu && emits(options, "asm")) {
    throw Error("--emit=asm: the target is " + options.target +
                ", whose assembly is PTX; use --emit=ptx");
  }
}

void check_gpu_code(const KernelizedGraph& program, Diagnostics& diagnostics) {
  std::set<std::string> told;
  for (const KernelSpec& spec : program.kernels) {
    const bool is_view = spec.symbol.empty();
    if (is_view || gpu::has_gpu_code(spec) || !told.insert(spec.symbol).second) continue;
    diagnostics.error(spec.sources.empty() ? spec.kind : spec.sources.front(),
                      "operator " + spec.kind + " of (" + types_text(spec.operand_types) +
                          ") has no kernel for " + program.target.name +
                          "; compile with --target cpu");
  }
}

KernelCode compile_all_kernels(const std::vector<KernelSpec>& specs, const Options& options,
                               const Target& cpu, Diagnostics& diagnostics) {
  if (options.target == "cpu") return {compile_for_cpu(specs, options, cpu), {}};
  KernelCode code{{}, compile_for_gpu(specs, options)};
  std::set<std::string> slow;
  for (const gpu::GpuKernel& kernel : code.gpu) {
    if (gpu::serializes_products(kernel.report)) slow.insert(kernel.symbol);
  }
  for (const KernelSpec& spec : specs) {
    if (slow.erase(spec.symbol) == 0) continue;
    diagnostics.warning(
        spec.sources.empty() ? spec.kind : spec.sources.front(),
        "kernel " + spec.symbol + " has too few registers: its products wait for each other");
  }
  return code;
}

std::string code_text(const KernelCode& code, const std::string& what) {
  std::string text;
  for (const CompiledKernel& kernel : code.cpu) {
    text += what == "llvm-ir" ? kernel.llvm_ir : kernel.assembly;
  }
  for (const gpu::GpuKernel& kernel : code.gpu) {
    text += what == "llvm-ir" ? kernel.llvm_ir : kernel.ptx;
  }
  return text;
}

void add_code(const KernelCode& code, ExecutableInput& input, Sha256& fingerprint) {
  for (const CompiledKernel& kernel : code.cpu) {
    input.symbols.push_back(kernel.symbol);
    input.objects.push_back(kernel.object);
    fingerprint.update(kernel.object);
  }
  for (const gpu::GpuKernel& kernel : code.gpu) {
    input.gpu_kernels.push_back({kernel.symbol, input.gpu_images.size()});
    input.gpu_images.push_back({kernel.cubin, kernel.ptx});
    fingerprint.update(kernel.ptx);
    fingerprint.update(kernel.cubin);
  }
}

}  // namespace sgtc
