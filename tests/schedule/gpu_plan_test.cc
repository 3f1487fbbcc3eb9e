// Plans for GPUs: launches, and what kernels need beside their tensors.
#include <algorithm>

#include "plan_of.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

using Strings = std::vector<std::string>;

// Two products: %y forward and %dw backward.
const std::string kTwoProducts = R"(graph "linear" rows 4 micro_batches 2
feed %x: f32[4,8]
state parameter %w: f32[8,4] = normal(0.0, 0.02, seed 7)
state accumulator %grad: f32[8,4] = zero
state accumulator %total: f32[1,1] = zero
control %learning_rate: f32[]
%y = matmul(%x, %w)
%part = reduce_sum(%y) {axes=[0,1]}
%sum = accumulate(%total, %part)
%dy = exp(%y) @backward
%dw = matmul(%x, %dy) {transpose_a=1} @backward
%g = accumulate(%grad, %dw) @backward
%d = mul(%g, %learning_rate) @update
%new = sub(%w, %d) @update
output "loss" %sum
update %w = %new
)";

LiteralPtr table_of(const std::vector<int64_t>& bytes) {
  return make_literal(DType::kUInt8, {static_cast<int64_t>(bytes.size())}, bytes);
}

// The program, whose products are given a launch and further arguments.
class GpuProgram {
 public:
  explicit GpuProgram(const std::string& text) : graph_(parse_graph(text)) {
    input_.train.kernels = kernelize(graph_, false, 0, kHopperTarget);
    for (KernelSpec& kernel : input_.train.kernels.kernels) {
      if (kernel.kind == "matmul") products.push_back(&kernel);
    }
    for (size_t i = 0; i < products.size(); ++i) {
      products[i]->symbol += "_" + std::to_string(i);
      products[i]->blocks = 4;
      products[i]->launch.threads = 128;
      products[i]->launch.tensor_maps.clear();
    }
  }

  void add_argument(size_t product, KernelArgument::Kind kind, AccessMode mode) {
    products[product]->arguments.push_back({kind, kNone, mode, {}});
  }

  plan::Plan plan() {
    input_.train.placement = place_on_one(input_.train.kernels);
    WeightsBlob weights;
    plan::Plan plan = build_plan(input_, weights).plan;
    weights_bytes = weights.size();
    place_apart(plan);
    CHECK(fault_texts(plan) == "");
    return plan;
  }

  std::vector<KernelSpec*> products;
  int64_t weights_bytes = 0;

 private:
  Graph graph_;
  PlanInput input_;
};

const plan::Kernel& kernel_of(const plan::Plan& plan, const std::string& symbol) {
  return *std::find_if(plan.kernels.begin(), plan.kernels.end(),
                       [&](const plan::Kernel& kernel) { return kernel.symbol == symbol; });
}

// Last arguments of the calls of a kernel.
Strings last_arguments(const plan::Plan& plan, const std::string& symbol) {
  Strings names;
  for (const plan::Task& task : plan.positions[0].tasks) {
    for (const plan::Call& call : task.calls) {
      if (call.kernel == symbol) names.push_back(call.arguments.back().buffer);
    }
  }
  return names;
}

// "name role init data_offset" of the states that kernels need.
Strings constants_of(const plan::Plan& plan) {
  Strings texts;
  for (const plan::State& state : plan.states) {
    if (state.role != "constant") continue;
    texts.push_back(state.name + " " + state.init + " " + std::to_string(state.data_offset));
  }
  return texts;
}

}  // namespace

TEST_CASE("a plan names the GPU that it is for, and every kernel has its launch") {
  GpuProgram program(kTwoProducts);
  KernelSpec& product = *program.products[0];
  product.launch.shared_bytes = 1024;
  product.launch.cluster = 2;
  product.launch.resident = true;
  product.launch.tensor_maps = {{0, 16, DType::kFloat32, {4, 2}, {16}, {4, 2}}};
  const plan::Plan plan = program.plan();
  CHECK(plan.target == "sm_90a");
  CHECK(plan.multiprocessors == 132);
  for (const plan::Kernel& kernel : plan.kernels) CHECK(kernel.launch.threads >= 32);
  const plan::Launch launch = kernel_of(plan, product.symbol).launch;
  CHECK(launch.threads == 128);
  CHECK(launch.shared_bytes == 1024);
  CHECK(launch.cluster == 2);
  CHECK(launch.resident);
  REQUIRE(launch.tensor_maps.size() == 1);
  CHECK(launch.tensor_maps[0].offset == 16);
  CHECK(launch.tensor_maps[0].dtype == "f32");
  CHECK(launch.tensor_maps[0].sizes == Shape{4, 2});
}

TEST_CASE("control values are aligned like other arguments") {
  for (const plan::Control& control : GpuProgram(kTwoProducts).plan().control) {
    CHECK(control.offset % 16 == 0);
  }
}

TEST_CASE("copies that the schedule adds are kernels for the GPU") {
  const plan::Plan plan = GpuProgram(R"(graph "swap" rows 4 micro_batches 1
feed %x: f32[4]
state parameter %a: f32[4] = zero
state parameter %b: f32[4] = zero
%loss = reduce_sum(%x) {axes=[0]}
output "loss" %loss
update %a = %b
update %b = %a
)")
                              .plan();
  REQUIRE(plan.kernels.size() == 2);
  for (const plan::Kernel& kernel : plan.kernels) CHECK(kernel.launch.threads >= 32);
}

TEST_CASE("equal tables are one constant") {
  GpuProgram program(kTwoProducts);
  for (size_t i = 0; i < 2; ++i) {
    program.add_argument(i, KernelArgument::Kind::kTable, AccessMode::kRead);
    program.products[i]->table = table_of({1, 2, 3});
  }
  const plan::Plan equal = program.plan();
  CHECK(constants_of(equal) == Strings{"table data 0"});
  CHECK(find_buffer(equal, "table")->scope == "persistent");
  CHECK(find_buffer(equal, "table")->bytes == 3);
  for (const KernelSpec* product : program.products) {
    CHECK(last_arguments(equal, product->symbol) == Strings{"table"});
  }
  CHECK(program.weights_bytes == 64);
  program.products[1]->table = table_of({1, 2, 4});
  const plan::Plan different = program.plan();
  CHECK(constants_of(different) == Strings{"table data 0", "table_1 data 64"});
  CHECK(last_arguments(different, program.products[1]->symbol) == Strings{"table_1"});
}

TEST_CASE("all kernels share the flags, which start as zeros") {
  GpuProgram program(kTwoProducts);
  CHECK(find_buffer(program.plan(), "flags") == nullptr);
  for (size_t i = 0; i < 2; ++i) {
    program.add_argument(i, KernelArgument::Kind::kFlags, AccessMode::kUpdate);
    program.products[i]->flag_bytes = i == 0 ? 4096 : 64;
  }
  const plan::Plan plan = program.plan();
  CHECK(constants_of(plan) == Strings{"flags zero 0"});
  CHECK(find_buffer(plan, "flags")->scope == "persistent");
  CHECK(find_buffer(plan, "flags")->bytes == 4096);
  for (const KernelSpec* product : program.products) {
    CHECK(last_arguments(plan, product->symbol) == Strings{"flags"});
  }
}

TEST_CASE("each call has a workspace of its own, for as long as its task") {
  GpuProgram program(kTwoProducts);
  for (size_t i = 0; i < 2; ++i) {
    program.add_argument(i, KernelArgument::Kind::kWorkspace, AccessMode::kWrite);
    program.products[i]->workspace_bytes = 512;
  }
  const plan::Plan plan = program.plan();
  CHECK(last_arguments(plan, program.products[0]->symbol) == Strings{"workspace"});
  CHECK(last_arguments(plan, program.products[1]->symbol) == Strings{"workspace_1"});
  for (const char* name : {"workspace", "workspace_1"}) {
    CHECK(find_buffer(plan, name)->scope == "task");
    CHECK(find_buffer(plan, name)->bytes == 512);
  }
}
