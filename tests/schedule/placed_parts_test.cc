// Tensors that several kernels write part by part.
#include <set>

#include "passes/sink_movements.h"
#include "plan_of.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// The gradients of q and of k with v are parts of %dx.
const std::string kAttention = R"(graph "attention" rows 2 micro_batches 1
feed %q: bf16[2,4,80,16]
feed %k: bf16[2,4,80,16]
feed %g: bf16[2,4,80,16]
state parameter %w: f32[1,1,1,16] = zero
%o, %m, %s = attention(%q, %k, %k) {scale=0.25}
%f = cast(%o) {to="f32"}
%loss = reduce_sum(%f) {axes=[0,1,2,3]}
%dq, %t = attention_query_grad(%q, %k, %k, %o, %m, %s, %g) {scale=0.25} @backward
%dk, %dv = attention_key_grad(%q, %k, %k, %g, %t) {scale=0.25} @backward
%dx = concat(%dq, %dk, %dv) {axis=2} @backward
%e = cast(%dx) {to="f32"} @backward
%d = reduce_sum(%e) {axes=[0,1,2]} @backward
%new = sub(%w, %d) @update
output "loss" %loss
update %w = %new
)";

// Buffers of the arguments of the calls whose kernel is of that kind.
std::set<std::string> buffers_of(const plan::Plan& plan, const std::string& kind) {
  std::set<std::string> names;
  for (const plan::Task& task : plan.positions[0].tasks) {
    for (const plan::Call& call : task.calls) {
      if (call.kernel.find("k_" + kind + "_") != 0) continue;
      for (const plan::Argument& argument : call.arguments) names.insert(argument.buffer);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("kernels write the parts of a tensor into one buffer") {
  const Graph graph = sink_movements(parse_graph(kAttention), kHopperTarget);
  PlanInput input;
  input.train.kernels = kernelize(graph, true, 0, kHopperTarget);
  input.train.placement = place_on_one(input.train.kernels);
  WeightsBlob weights;
  plan::Plan plan = build_plan(input, weights).plan;
  place_apart(plan);
  CHECK(fault_texts(plan) == "");
  const plan::Buffer* whole = nullptr;
  for (const plan::Buffer& buffer : plan.positions[0].buffers) {
    if (buffer.bytes == 2 * 4 * 240 * 16 * 2) whole = &buffer;
  }
  REQUIRE(whole != nullptr);
  for (const char* kind : {"attention_query_grad", "attention_key_grad", "loop"}) {
    CHECK(buffers_of(plan, kind).count(whole->name) == 1);
  }
}
