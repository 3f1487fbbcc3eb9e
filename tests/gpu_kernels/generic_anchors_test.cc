// The kernels for any GPU, launched as the compiler says, on an emulated GPU against the
// interpreter.
#include <dlfcn.h>
#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gpu/instructions.h"
#include "gpu/loop_cases.h"
#include "gpu/random_tensor.h"
#include "gpu_kernels/emulated_gpu.h"
#include "ir/interpret.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::test;

namespace {

using Bytes = std::vector<std::byte>;
using Entry = void (*)(const int64_t* shape, void* const* arguments, void* const* tensors);

// Where the tile visitor puts the sums of a contraction: [batch, rows, columns].
struct TileTarget {
  int64_t rows, columns;
  std::vector<double> sums;
};

TileTarget target_of(const KernelSpec& spec) {
  const Shape& result = spec.result_types[0].shape;
  const size_t rows_end = spec.anchor == Op::kMatMul           ? result.size() - 1
                          : spec.anchor == Op::kConvWeightGrad ? 1
                                                               : 2;
  TileTarget target;
  target.rows = result[rows_end - 1];
  target.columns = element_count(Shape(result.begin() + static_cast<long>(rows_end), result.end()));
  target.sums.assign(static_cast<size_t>(element_count(result)), NAN);
  return target;
}

}  // namespace

// <8 x float> is one vector of code for x86-64-v3.
extern "C" __attribute__((target("avx"))) void sgtc_tile_store(void* const* arguments,
                                                               int64_t batch, int64_t row,
                                                               int64_t column, __m256 values,
                                                               int64_t lanes) {
  auto& target = *static_cast<TileTarget*>(arguments[0]);
  float sums[8];
  _mm256_storeu_ps(sums, values);
  for (int64_t i = 0; i < lanes; ++i) {
    target.sums.at(static_cast<size_t>((batch * target.rows + row) * target.columns + column + i)) =
        static_cast<double>(sums[i]);
  }
}

namespace {

// A graph whose kernels are all anchors without epilogues.
class EmulatedProgram {
 public:
  explicit EmulatedProgram(const testing::LoopCase& source)
      : graph_(parse_graph(source.text)), target_{kAmpereTarget.name, source.multiprocessors} {
    for (const Group& group : fuse(graph_, {}, target_)) {
      REQUIRE(group.kind == Group::Kind::kAnchor);
      specs_.push_back(form_kernel(graph_, group, 0, target_));
      REQUIRE_FALSE(specs_.back().entry.name.empty());
    }
    std::mt19937 random(1);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      const Value& value = graph_.value(id);
      memory_[id] = Bytes(bytes_of(id) + 64, std::byte{0xff});
      if (value.kind == ValueKind::kResult) continue;
      const LiteralPtr literal = value.kind == ValueKind::kConstant
                                     ? value.literal
                                     : to_literal(testing::random_tensor(value.type, random));
      std::memcpy(memory_[id].data(), literal->bytes().data(), literal->bytes().size());
      if (value.kind == ValueKind::kFeed) feeds_[id] = Tensor(*literal);
    }
  }

  void run(bool backwards) {
    status_.assign(3, 0);
    for (const KernelSpec& spec : specs_) run_kernel(spec, backwards);
  }

  std::vector<double> values(ValueId id) const {
    const auto found = sums_.find(id);
    if (found != sums_.end()) return found->second;
    const TensorType& type = graph_.type(id);
    const auto memory = std::make_shared<Bytes>(memory_.at(id));
    const Tensor tensor(
        Literal(type.dtype, type.shape, std::span(*memory).first(bytes_of(id)), memory));
    std::vector<double> values;
    for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.at(i));
    return values;
  }

  void check_results(double tolerance) const {
    Interpreter interpreter(graph_);
    for (const auto& [id, tensor] : feeds_) interpreter.set(graph_.value(id).name, tensor);
    interpreter.run();
    for (const Output& output : graph_.outputs) {
      const Tensor& expected = interpreter.value(output.value);
      const std::vector<double> found = values(output.value);
      REQUIRE(static_cast<int64_t>(found.size()) == expected.count());
      double worst = 0;
      for (int64_t i = 0; i < expected.count(); ++i) {
        const double wanted = expected.at(i), got = found[static_cast<size_t>(i)];
        const double error = std::abs(got - wanted) / (1 + std::abs(wanted));
        worst = got == wanted ? worst : std::isnan(error) ? INFINITY : std::max(worst, error);
      }
      INFO("output " << output.name);
      CHECK(worst <= tolerance);
    }
  }

  const Graph& graph() const { return graph_; }
  const std::vector<int64_t>& status() const { return status_; }

 private:
  size_t bytes_of(ValueId id) const {
    return static_cast<size_t>(element_count(graph_.shape(id)) * size_of(graph_.dtype(id)));
  }

  void* address_of(const KernelSpec& spec, const TensorPointer& tensor) {
    if (tensor.kind == TensorPointer::Kind::kNull) return nullptr;
    const KernelArgument& argument = spec.arguments[static_cast<size_t>(tensor.index)];
    switch (argument.kind) {
      case KernelArgument::Kind::kStatus:
        return status_.data();
      case KernelArgument::Kind::kWorkspace:
        workspace_.assign(static_cast<size_t>(spec.workspace_bytes), std::byte{0xff});
        return workspace_.data();
      case KernelArgument::Kind::kFlags:
        flags_.assign(static_cast<size_t>(spec.flag_bytes), std::byte{0});
        return flags_.data();
      default:
        return memory_.at(argument.value).data();
    }
  }

  void run_kernel(const KernelSpec& spec, bool backwards) {
    const auto entry = reinterpret_cast<Entry>(dlsym(RTLD_DEFAULT, spec.entry.name.c_str()));
    INFO(spec.entry.name);
    REQUIRE(entry != nullptr);
    flags_.clear();
    std::vector<void*> tensors;
    for (const TensorPointer& tensor : spec.entry.tensors) {
      tensors.push_back(address_of(spec, tensor));
    }
    TileTarget target;
    if (spec.nest.stores.size() == 1) target = target_of(spec);
    void* arguments[] = {&target};
    const EmulatedLaunch launch = {static_cast<uint32_t>(spec.blocks),
                                   static_cast<uint32_t>(spec.launch.threads),
                                   static_cast<uint32_t>(spec.launch.shared_bytes), backwards};
    run_emulated(launch, [&] { entry(spec.entry.shape.data(), arguments, tensors.data()); });
    if (spec.nest.stores.size() == 1) sums_[graph_.outputs[0].value] = target.sums;
    for (std::byte flag : flags_) REQUIRE(flag == std::byte{0});
  }

  Graph graph_;
  KernelTarget target_;
  std::vector<KernelSpec> specs_;
  std::map<ValueId, Bytes> memory_;
  std::map<ValueId, Tensor> feeds_;
  std::map<ValueId, std::vector<double>> sums_;  // of contractions
  std::vector<int64_t> status_;
  Bytes workspace_, flags_;
};

// Runs the cases whose names begin with `kind`, with the first and with the last block first.
void check_cases(const std::string& kind,
                 const std::vector<testing::LoopCase>& cases = testing::checked_anchors()) {
  size_t count = 0;
  for (const testing::LoopCase& source : cases) {
    if (source.name.rfind(kind, 0) != 0) continue;
    INFO(source.name);
    ++count;
    EmulatedProgram program(source), again(source);
    program.run(false);
    again.run(true);
    if (!source.status.empty()) {
      CHECK(program.status() == source.status);
      continue;
    }
    program.check_results(source.tolerance);
    for (const Output& output : program.graph().outputs) {
      CHECK(program.values(output.value) == again.values(output.value));
    }
  }
  CHECK(count > 0);
}

}  // namespace

TEST_CASE("matrix products for any GPU") { check_cases("matmul"); }
TEST_CASE("convolutions for any GPU") { check_cases("conv "); }
TEST_CASE("gradients of convolutions for any GPU") { check_cases("conv_"); }
TEST_CASE("maximum pools for any GPU") { check_cases("max_pool"); }
TEST_CASE("average pools for any GPU") { check_cases("average_pool"); }
TEST_CASE("scatters of rows for any GPU") { check_cases("scatter_add"); }
TEST_CASE("scatters of slices for any GPU") { check_cases("scatter_nd"); }
TEST_CASE("scatters of elements for any GPU") { check_cases("scatter_elements"); }
TEST_CASE("cumulative sums for any GPU") { check_cases("cum_sum"); }
TEST_CASE("positions of extrema for any GPU") { check_cases("extrema"); }
TEST_CASE("sorting for any GPU") { check_cases("top_k"); }
TEST_CASE("attention for any GPU") {
  check_cases("attention", testing::checked_generic_attentions());
}

TEST_CASE("threads that wait for others that do not come are an error") {
  const EmulatedLaunch launch = {1, 64, 0, false};
  CHECK_THROWS_AS(run_emulated(launch,
                               [] {
                                 if (sgtc::gpu::thread_index() < 40) sgtc::gpu::synchronize_warp();
                               }),
                  std::runtime_error);
}
