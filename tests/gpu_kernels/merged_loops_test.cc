// Generated kernels that compute several loops, compiled for this machine and run on an emulated
// GPU: against the interpreter, and bit for bit against a kernel per loop.
#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/gpu/compile.h"
#include "gpu/instructions.h"
#include "gpu/loop_cases.h"
#include "gpu/merge_forms.h"
#include "gpu/random_tensor.h"
#include "gpu_kernels/emulated_gpu.h"
#include "ir/interpret.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "passes/relax_functions.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::test;

// What generated kernels ask of a GPU.
extern "C" {
uint32_t emulated_thread() { return gpu::thread_index(); }
uint32_t emulated_block() { return gpu::block_index(); }
uint32_t emulated_lane_number() { return gpu::thread_index() % 32; }
uint64_t emulated_time() { return 0; }
uint32_t emulated_blocks() { return gpu::block_count(); }
void emulated_barrier() { gpu::synchronize_block(); }
uint32_t emulated_butterfly(uint32_t, uint32_t word, uint32_t distance, uint32_t) {
  return gpu::word_of_lane(word, gpu::thread_index() % 32 ^ distance);
}
uint32_t emulated_lane(uint32_t, uint32_t word, uint32_t lane, uint32_t) {
  return gpu::word_of_lane(word, lane);
}
}

namespace {

using Bytes = std::vector<std::byte>;
using Entry = void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
constexpr size_t kParameters = 12;

const std::map<std::string, std::string> kInstructions = {
    {"llvm.nvvm.read.ptx.sreg.tid.x", "emulated_thread"},
    {"llvm.nvvm.read.ptx.sreg.ctaid.x", "emulated_block"},
    {"llvm.nvvm.read.ptx.sreg.nctaid.x", "emulated_blocks"},
    {"llvm.nvvm.read.ptx.sreg.laneid", "emulated_lane_number"},
    {"llvm.nvvm.read.ptx.sreg.smid", "emulated_block"},
    {"llvm.nvvm.read.ptx.sreg.globaltimer", "emulated_time"},
    {"llvm.nvvm.barrier0", "emulated_barrier"},
    {"llvm.nvvm.shfl.sync.bfly.i32", "emulated_butterfly"},
    {"llvm.nvvm.shfl.sync.idx.i32", "emulated_lane"}};

// Kernels for GPUs in this process.
class HostKernels {
 public:
  explicit HostKernels(const std::vector<KernelSpec>& kernels) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    gpu::GpuCompileOptions options;
    options.target = kHopperTarget.name;
    options.keep_llvm_ir = true;
    for (const gpu::GpuKernel& kernel : gpu::compile_gpu_kernels(kernels, options)) {
      add(kernel.llvm_ir);
    }
  }

  Entry find(const std::string& symbol) {
    return llvm::cantFail(jit_->lookup(symbol)).toPtr<Entry>();
  }

 private:
  void add(const std::string& text) {
    auto context = std::make_unique<llvm::LLVMContext>();
    llvm::SMDiagnostic diagnostic;
    std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, *context);
    INFO(diagnostic.getMessage().str());
    REQUIRE(module != nullptr);
    module->setTargetTriple(jit_->getTargetTriple().str());
    module->setDataLayout(jit_->getDataLayout());
    for (llvm::Function& function : llvm::make_early_inc_range(*module)) {
      function.removeFnAttr("target-cpu");
      function.removeFnAttr("target-features");
      const auto instruction = kInstructions.find(function.getName().str());
      if (instruction == kInstructions.end()) {
        INFO(function.getName().str());
        REQUIRE_FALSE(function.getName().starts_with("llvm.nvvm"));
        continue;
      }
      function.replaceAllUsesWith(
          module->getOrInsertFunction(instruction->second, function.getFunctionType()).getCallee());
      function.eraseFromParent();
    }
    llvm::cantFail(
        jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
  }

  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

// A graph of loops, whose results are computed in the place of states where they may be.
class LoopProgram {
 public:
  LoopProgram(const testing::LoopCase& source, bool is_merged)
      : graph_(relax_functions(parse_graph(source.text))) {
    for (const Group& group : fuse(graph_, {}, kHopperTarget)) {
      REQUIRE(group.kind == Group::Kind::kLoop);
      kernels_.push_back(form_kernel(graph_, group, 0, kHopperTarget));
    }
    if (is_merged) kernels_ = testing::merge_forms(kernels_);
    std::mt19937 random(1);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      const Value& value = graph_.value(id);
      if (value.kind == ValueKind::kResult) continue;
      const Tensor tensor = value.kind == ValueKind::kConstant
                                ? Tensor(*value.literal)
                                : testing::random_tensor(value.type, random);
      const LiteralPtr literal = to_literal(tensor);
      std::memcpy(memory(id).data(), literal->bytes().data(), literal->bytes().size());
      if (value.kind != ValueKind::kConstant) leaves_[id] = tensor;
    }
    for (const Update& update : graph_.updates) place_[update.value] = update.state;
  }

  size_t launches() const { return kernels_.size(); }

  void run(uint32_t most_blocks) {
    HostKernels code(kernels_);
    for (const KernelSpec& kernel : kernels_) run(kernel, code.find(kernel.symbol), most_blocks);
  }

  // The bytes of every result.
  std::map<std::string, Bytes> results() {
    std::map<std::string, Bytes> all;
    for (const Output& output : graph_.outputs) all[output.name] = memory(output.value);
    for (const Update& update : graph_.updates) {
      all[graph_.value(update.state).name] = memory(update.value);
    }
    return all;
  }

  void check_results(double tolerance) {
    Interpreter interpreter(graph_);
    for (const auto& [id, tensor] : leaves_) interpreter.set(graph_.value(id).name, tensor);
    interpreter.run();
    for (const Output& output : graph_.outputs) check(interpreter, output.value, tolerance);
    for (const Update& update : graph_.updates) check(interpreter, update.value, tolerance);
  }

 private:
  static constexpr size_t kBehind = 64;  // bytes that nobody may touch

  // Poison at first.
  Bytes& memory(ValueId id) {
    const auto place = place_.find(id);
    if (place != place_.end()) return memory(place->second);
    Bytes& bytes = memory_[id];
    const int64_t size = element_count(graph_.shape(id)) * size_of(graph_.dtype(id));
    if (bytes.empty()) bytes.assign(static_cast<size_t>(size) + kBehind, std::byte{0xff});
    return bytes;
  }

  void run(const KernelSpec& kernel, Entry entry, uint32_t most_blocks) {
    std::vector<uint64_t> parameters;
    for (const KernelArgument& argument : kernel.arguments) {
      const std::byte* address = argument.kind == KernelArgument::Kind::kTable
                                     ? kernel.table->bytes().data()
                                     : memory(argument.value).data();
      parameters.push_back(reinterpret_cast<uint64_t>(address));
    }
    const std::vector<uint64_t> table = parameters;
    if (kernel.launch.indirect) parameters = {reinterpret_cast<uint64_t>(table.data())};
    parameters.push_back(0);  // the micro-batch
    parameters.push_back(0);  // no stamps
    REQUIRE(parameters.size() <= kParameters);
    parameters.resize(kParameters);
    const EmulatedLaunch launch = {std::min(static_cast<uint32_t>(kernel.blocks), most_blocks),
                                   static_cast<uint32_t>(kernel.launch.threads), 0,
                                   most_blocks < kernel.blocks};
    const std::vector<uint64_t>& p = parameters;
    run_emulated(launch, [&] {
      entry(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11]);
    });
  }

  void check(const Interpreter& interpreter, ValueId id, double tolerance) {
    const Tensor& expected = interpreter.value(id);
    const TensorType& type = graph_.type(id);
    const auto bytes = std::make_shared<Bytes>(memory(id));
    const std::span<const std::byte> all(*bytes);
    const Tensor found(Literal(type.dtype, type.shape, all.first(all.size() - kBehind), bytes));
    double worst = 0;
    for (int64_t i = 0; i < expected.count(); ++i) {
      const double error = std::abs(found.at(i) - expected.at(i)) / (1 + std::abs(expected.at(i)));
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    INFO(graph_.value(id).name);
    CHECK(worst <= tolerance);
    for (const std::byte byte : all.last(kBehind)) REQUIRE(byte == std::byte{0xff});
  }

  Graph graph_;
  std::vector<KernelSpec> kernels_;
  std::map<ValueId, Bytes> memory_;
  std::map<ValueId, ValueId> place_;
  std::map<ValueId, Tensor> leaves_;
};

}  // namespace

TEST_CASE("merged loops compute what the loops do, to the bit and on grids of any size") {
  for (const testing::LoopCase& source : testing::checked_merged_loops()) {
    INFO(source.name);
    LoopProgram merged(source, true);
    LoopProgram apart(source, false);
    CHECK(merged.launches() < apart.launches());
    merged.run(UINT32_MAX);
    apart.run(UINT32_MAX);
    merged.check_results(source.tolerance);
    const bool has_same_bits = merged.results() == apart.results();
    CHECK(has_same_bits);
    LoopProgram again(source, true);
    again.run(3);
    const bool repeats = again.results() == merged.results();
    CHECK(repeats);
  }
}
