// The plan of one device.
#include "schedule/build_plan.h"

#include <algorithm>

#include "plan_of.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

// y = x w, loss = sum of y: one step of SGD without micro-batches.
const std::string kLinear = R"(graph "linear" rows 4 micro_batches 1
feed %x: f32[4,8]
state parameter %w: f32[8,2] = normal(0.0, 0.02, seed 7)
control %learning_rate: f32[]
constant %one: f32[4,2] = fill(1)
%y = matmul(%x, %w) "layer.0/MatMul"
%loss = reduce_sum(%y) {axes=[0,1]} "loss"
%dw = matmul(%x, %one) {transpose_a=1} @backward
%d = mul(%dw, %learning_rate) @update
%new = sub(%w, %d) @update
output "loss" %loss
update %w = %new
)";

// The same with three micro-batches.
const std::string kMicroBatches = R"(graph "linear" rows 4 micro_batches 3
feed %x: f32[4,8]
state parameter %w: f32[8,2] = normal(0.0, 0.02, seed 7)
state accumulator %grad: f32[8,2] = zero
state accumulator %total: f32[1,1] = zero
control %learning_rate: f32[]
constant %one: f32[4,2] = fill(1)
%y = matmul(%x, %w)
%h = exp(%y)
%part = reduce_sum(%h) {axes=[0,1]}
%sum = accumulate(%total, %part)
%dy = mul(%h, %one) @backward
%dw = matmul(%x, %dy) {transpose_a=1} @backward
%g = accumulate(%grad, %dw) @backward
%d = mul(%g, %learning_rate) @update
%new = sub(%w, %d) @update
output "loss" %sum
output "y" %y
update %w = %new
)";

const plan::State& state(const plan::Plan& plan, const std::string& name) {
  const auto found = std::find_if(plan.states.begin(), plan.states.end(),
                                  [&](const plan::State& state) { return state.name == name; });
  REQUIRE(found != plan.states.end());
  return *found;
}

// Names of the buffers that a task's calls touch, in order.
std::vector<std::vector<std::string>> arguments_of(const plan::Plan& plan,
                                                   const std::string& task) {
  std::vector<std::vector<std::string>> calls;
  for (const plan::Call& call : find_task(plan, task)->calls) {
    std::vector<std::string>& names = calls.emplace_back();
    for (const plan::Argument& argument : call.arguments) names.push_back(argument.buffer);
  }
  return calls;
}

}  // namespace

TEST_CASE("a step has forward, backward and update") {
  for (const bool fused : {false, true}) {
    const plan::Plan plan = plan_of(kLinear, fused);
    CHECK(fault_texts(plan) == "");
    CHECK(entries_text(plan, "train") == "forward 0, backward 0, update 0");
    CHECK(plan.micro_batches == 1);
    CHECK(plan.micro_batch_rows == 4);
  }
}

TEST_CASE("micro-batches run forward and backward in turn") {
  for (const bool fused : {false, true}) {
    const plan::Plan plan = plan_of(kMicroBatches, fused);
    CHECK(fault_texts(plan) == "");
    CHECK(entries_text(plan, "train") ==
          "forward 0, backward 0, forward 1, backward 1, forward 2, backward 2, update 0");
  }
}

TEST_CASE("a new value takes the place of its state") {
  const plan::Plan plan = plan_of(kLinear);
  const auto calls = arguments_of(plan, "update");
  REQUIRE(calls.size() == 2);
  CHECK(std::count(calls[1].begin(), calls[1].end(), "w") == 2);
  CHECK(find_buffer(plan, "new") == nullptr);
}

TEST_CASE("a state that is read after its new value gets it by a copy") {
  const plan::Plan plan = plan_of(R"(
state parameter %w: f32[100] = zero
state moment %m: f32[100] = zero
%new_w = exp(%w) @update
%new_m = add(%w, %m) @update
output "loss" %new_m
update %w = %new_w
update %m = %new_m
)");
  CHECK(fault_texts(plan) == "");
  const auto calls = arguments_of(plan, "update");
  REQUIRE(calls.size() == 3);
  CHECK(calls[2] == std::vector<std::string>{"new_w", "w"});
}

TEST_CASE("every state of a fused update is computed in place") {
  const plan::Plan plan = plan_of(R"(
feed %x: f32[100]
state parameter %w: f32[100] = zero
state moment %m: f32[100] = zero
state moment %v: f32[100] = zero
%loss = reduce_sum(%x) {axes=[0]}
%g = exp(%x) @update
%m2 = add(%m, %g) @update
%gg = mul(%g, %g) @update
%v2 = add(%v, %gg) @update
%d = div(%m2, %v2) @update
%w2 = sub(%w, %d) @update
output "loss" %loss
update %w = %w2
update %m = %m2
update %v = %v2
)",
                                  true);
  CHECK(fault_texts(plan) == "");
  CHECK(arguments_of(plan, "update").size() == 1);
  for (const char* name : {"w2", "m2", "v2"}) CHECK(find_buffer(plan, name) == nullptr);
}

TEST_CASE("states that exchange their contents go through temporaries") {
  const plan::Plan plan = plan_of(R"(
state parameter %a: f32[100] = zero
state parameter %b: f32[100] = fill(1)
state parameter %c: f32[] = zero
%loss = exp(%c)
output "loss" %loss
update %a = %b
update %b = %a
)");
  CHECK(fault_texts(plan) == "");
  const auto calls = arguments_of(plan, "update");
  REQUIRE(calls.size() == 4);
  CHECK(calls[0] == std::vector<std::string>{"b", "saved.b"});
  CHECK(calls[1] == std::vector<std::string>{"a", "saved.a"});
  CHECK(calls[2] == std::vector<std::string>{"saved.b", "a"});
  CHECK(calls[3] == std::vector<std::string>{"saved.a", "b"});
}

TEST_CASE("a view of an input that no kernel reads is an output") {
  const plan::Plan plan = plan_of(R"(graph "view" rows 2 micro_batches 1
feed %x: f32[2]
state parameter %w: f32[3] = fill(1.0)
control %learning_rate: f32[]
%loss = reduce_sum(%w) {axes=[0]}
%seen = reshape(%x) {shape=[2,1]}
%d = mul(%w, %learning_rate) @update
output "loss" %loss
output "seen" %seen
update %w = %d
)");
  REQUIRE(plan.results.size() == 2);
  CHECK(plan.results[1].name == "seen");
  CHECK(plan.results[1].buffer == "x");
}

TEST_CASE("an output that is an updated state shows the old contents") {
  const plan::Plan plan = plan_of(R"(
state parameter %w: f32[100] = zero
%new = exp(%w) @update
output "w" %w
update %w = %new
)");
  CHECK(fault_texts(plan) == "");
  CHECK(plan.results[0].buffer == "output.w");
}

TEST_CASE("states without elements are copied and saved like others") {
  const plan::Plan plan = plan_of(R"(
state parameter %w: f32[0,4] = zero
state parameter %v: f32[0,4] = zero
state parameter %c: f32[] = zero
%loss = exp(%c)
%new = exp(%w) @update
output "loss" %loss
output "w" %w
update %w = %new
update %v = %w
)");
  CHECK(fault_texts(plan) == "");
  CHECK(plan.results[1].buffer == "output.w");
}

TEST_CASE("views share the buffer of their source through chains") {
  const plan::Plan plan = plan_of(R"(
feed %x: f32[4,6]
state parameter %w: f32[6,6] = zero
%y = matmul(%x, %w)
%a = reshape(%y) {shape=[24]}
%b = reshape(%a) {shape=[2,12]}
%loss = reduce_sum(%b) {axes=[0,1]}
output "loss" %loss
)");
  CHECK(fault_texts(plan) == "");
  CHECK(find_buffer(plan, "y") != nullptr);
  CHECK(find_buffer(plan, "a") == nullptr);
  CHECK(find_buffer(plan, "b") == nullptr);
  CHECK(arguments_of(plan, "forward")[1][0] == "y");
}

TEST_CASE("a chain of elementwise kernels works in one buffer") {
  const plan::Plan plan = plan_of(R"(
feed %x: f32[64]
%a = exp(%x)
%b = tanh(%a)
%c = neg(%b)
%loss = reduce_sum(%c) {axes=[0]}
output "loss" %loss
)");
  CHECK(fault_texts(plan) == "");
  CHECK(find_buffer(plan, "a") != nullptr);
  CHECK(find_buffer(plan, "b") == nullptr);
  CHECK(find_buffer(plan, "c") == nullptr);
}

TEST_CASE("an operand that is read later is not overwritten") {
  const plan::Plan plan = plan_of(R"(
feed %x: f32[64]
%a = exp(%x)
%b = tanh(%a)
%c = mul(%a, %b)
%loss = reduce_sum(%c) {axes=[0]}
output "loss" %loss
)");
  CHECK(fault_texts(plan) == "");
  CHECK(find_buffer(plan, "b") != nullptr);
}

TEST_CASE("feeds are never overwritten") {
  const plan::Plan plan = plan_of(kMicroBatches);
  const plan::Buffer& x = *find_buffer(plan, "x");
  CHECK(x.scope == "micro_batch");
  CHECK(x.count == 3);
  CHECK(x.bytes == 128);
  REQUIRE(plan.feeds.size() == 1);
  CHECK(plan.feeds[0].shape == std::vector<int64_t>{4, 8});
}

TEST_CASE("scopes follow from where a value is used") {
  const plan::Plan plan = plan_of(kMicroBatches);
  CHECK(find_buffer(plan, "w")->scope == "persistent");
  CHECK(find_buffer(plan, "y")->scope == "micro_batch");
  CHECK(find_buffer(plan, "h")->scope == "slot");
  CHECK(find_buffer(plan, "dw")->scope == "task");
  CHECK(find_buffer(plan, "total")->scope == "persistent");
  CHECK(plan.results[0].buffer == "total");
  CHECK(find_buffer(plan_of(kLinear), "dw")->scope == "step");
}

TEST_CASE("a value of one micro-batch cannot reach the update of several") {
  std::string text = kLinear;
  text.replace(text.find("micro_batches 1"), 15, "micro_batches 2");
  CHECK_THROWS_WITH(plan_of(text), ContainsSubstring("value \"dw\" of one micro-batch"));
}

TEST_CASE("stacked rows live until the update") {
  const plan::Plan plan = plan_of(R"(graph "stack" rows 4 micro_batches 2
feed %x: f32[4,32]
state statistic %s: f32[1,32] = zero
%m = reduce_sum(%x) {axes=[0]}
%all = stack_micro_batches(%m) {micro_batches=2}
%e = exp(%x)
%loss = reduce_sum(%e) {axes=[0,1]}
%t = tanh(%e) @backward
%unused = reduce_sum(%t) {axes=[0,1]} @backward
%r = reduce_sum(%all) {axes=[0]} @update
%r1 = reshape(%r) {shape=[1,32]} @update
output "loss" %loss
output "u" %unused
update %s = %r1
)");
  CHECK(fault_texts(plan) == "");
  CHECK(find_buffer(plan, "all")->scope == "step");
  CHECK(find_buffer(plan, "r") == nullptr);  // computed in place of %s
}

TEST_CASE("a scatter changes its data in place if nothing else reads them") {
  const auto plan_with = [](const std::string& more) {
    return plan_of(R"(graph "scatter" rows 4 micro_batches 1
feed %x: f32[4,32]
feed %i: i64[4]
state parameter %w: f32[9,32] = zero
%e = exp(%w)
%s = scatter_add(%e, %i, %x) {axis=0}
%loss = reduce_sum(%s) {axes=[0,1]}
%d = tanh(%s) @update
)" + more + R"(output "loss" %loss
update %w = %d
)",
                   true);
  };
  const plan::Plan alone = plan_with("");
  CHECK((find_buffer(alone, "e") == nullptr) != (find_buffer(alone, "s") == nullptr));
  const plan::Plan read_again = plan_with("%f = neg(%e) @update\noutput \"f\" %f\n");
  CHECK(find_buffer(read_again, "e") != nullptr);
  CHECK(find_buffer(read_again, "s") != nullptr);
}

TEST_CASE("constants of kernels are persistent and have data") {
  const plan::Plan plan = plan_of(kLinear);
  const plan::State& one = state(plan, "one");
  CHECK(one.role == "constant");
  CHECK(one.init == "data");
  CHECK(find_buffer(plan, "one")->scope == "persistent");
}

TEST_CASE("states carry their initial values") {
  const Graph graph = parse_graph(R"(
feed %x: f32[2]
state parameter %a: f32[2] = literal [1, 2]
state frozen %b: f32[2] = literal [3, 4]
state statistic %c: f32[2] = fill(1.5)
state moment %d: f32[2] = zero
%y = add(%x, %a)
output "y" %y
)");
  PlanInput input;
  input.train = program_of(graph, true);
  WeightsBlob weights;
  const BuiltPlan built = build_plan(input, weights);
  CHECK(state(built.plan, "a").data_offset == 0);
  CHECK(state(built.plan, "b").data_offset == 64);
  CHECK(state(built.plan, "c").init == "fill");
  CHECK(state(built.plan, "c").a == 1.5);
  CHECK(state(built.plan, "d").init == "zero");
  CHECK(state(built.plan, "b").role == "frozen");
  CHECK(weights.size() == 128);
  REQUIRE(weights.segments().size() == 2);
  CHECK(weights.segments()[1].literal->as_double(1) == 4);
}

TEST_CASE("a blob stores equal bytes once") {
  WeightsBlob weights;
  CHECK(weights.add(scalar_literal(DType::kFloat32, 1)) == 0);
  CHECK(weights.add(scalar_literal(DType::kFloat32, 2)) == 64);
  CHECK(weights.add(scalar_literal(DType::kFloat32, 1)) == 0);
  CHECK(weights.add(scalar_literal(DType::kFloat64, 1)) == 128);
  CHECK(weights.size() == 192);
}

TEST_CASE("evaluation shares states and feeds") {
  const std::string evaluate = R"(graph "linear" rows 4 micro_batches 1
feed %x: f32[4,8]
state parameter %w: f32[8,2] = normal(0.0, 0.02, seed 7)
%y = matmul(%x, %w)
%e = exp(%y)
%loss = reduce_sum(%e) {axes=[0,1]}
output "loss" %loss
output "y" %y
)";
  for (const bool fused : {false, true}) {
    const plan::Plan plan = plan_of(kMicroBatches, evaluate, fused);
    CHECK(fault_texts(plan) == "");
    CHECK(entries_text(plan, "evaluate") == "evaluate 0, evaluate 1, evaluate 2");
    CHECK(plan.feeds.size() == 1);
    REQUIRE(plan.evaluate_results.size() == 2);
    const plan::Buffer& y = *find_buffer(plan, plan.evaluate_results[1].buffer);
    CHECK(y.scope == "micro_batch");
    CHECK(y.count == 3);
  }
}

TEST_CASE("loss terms name buffers of the evaluation") {
  const Graph graph = parse_graph(kLinear);
  const Graph forward = parse_graph(R"(graph "linear" rows 4 micro_batches 1
feed %x: f32[4,8]
%n = reduce_sum(%x) {axes=[0,1]}
output "loss.numerator.0" %n
)");
  PlanInput input;
  input.train = program_of(graph, true);
  input.evaluate = program_of(forward, true);
  input.loss_terms = {{2.0, "loss.numerator.0", "", 4}};
  WeightsBlob weights;
  plan::Plan plan = build_plan(input, weights).plan;
  place_apart(plan);
  CHECK(fault_texts(plan) == "");
  REQUIRE(plan.loss_terms.size() == 1);
  CHECK(plan.loss_terms[0].coefficient == 2.0);
  CHECK(plan.loss_terms[0].numerator == plan.evaluate_results[0].buffer);
  CHECK(plan.loss_terms[0].denominator_constant == 4);
}

TEST_CASE("an input with a reserved name is refused") {
  CHECK_THROWS_WITH(plan_of("feed %status: f32[2]\n%y = exp(%status)\noutput \"y\" %y\n"),
                    ContainsSubstring("input \"status\""));
}

TEST_CASE("outputs may be leaves") {
  const plan::Plan plan = plan_of(R"(
feed %x: f32[4]
state frozen %w: f32[2] = zero
constant %c: f32[3] = [1, 2, 3]
%y = exp(%x)
output "y" %y
output "x" %x
output "w" %w
output "c" %c
)");
  CHECK(fault_texts(plan) == "");
  CHECK(plan.results[1].buffer == "x");
  CHECK(plan.results[2].buffer == "w");
  CHECK(plan.results[3].buffer == "c");
}

TEST_CASE("an output may be a feed that only the evaluation computes with") {
  const std::string head =
      "graph \"fed\" rows 4 micro_batches 1\nfeed %x: f32[4]\n"
      "state parameter %w: f32[4] = zero\n";
  const plan::Plan plan = plan_of(head + R"(%loss = reduce_sum(%w) {axes=[0]}
output "loss" %loss
output "x" %x
)",
                                  head + R"(%y = mul(%x, %w)
%loss = reduce_sum(%y) {axes=[0]}
output "loss" %loss
output "x" %x
)",
                                  false);
  CHECK(fault_texts(plan) == "");
  CHECK(plan.feeds.size() == 1);
  REQUIRE(plan.results.size() == 2);
  CHECK(plan.results[1].buffer == "x");
}

TEST_CASE("control scalars are parts of one buffer") {
  const plan::Plan plan = plan_of(kLinear);
  const plan::Call& call = find_task(plan, "update")->calls[0];
  const auto control = std::find_if(call.arguments.begin(), call.arguments.end(),
                                    [](const auto& a) { return a.buffer == "control"; });
  REQUIRE(control != call.arguments.end());
  CHECK(control->offset.base == 0);
  CHECK(control->bytes == 4);
  CHECK(plan.control.size() == 3);
}

TEST_CASE("checked nodes of both graphs are named") {
  const std::string text = R"(
feed %i: i64[4]
state parameter %w: f32[10,8] = zero
%y = gather(%w, %i) {axis=0} "embedding"
%loss = reduce_sum(%y) {axes=[0,1]}
output "loss" %loss
)";
  const plan::Plan plan = plan_of(text, text, true);
  CHECK(fault_texts(plan) == "");
  CHECK(plan.checked_nodes == std::vector<std::string>{"embedding", "embedding"});
}

TEST_CASE("the model fingerprint depends on model, states and optimizer") {
  const auto fingerprint = [](const std::string& text, const std::string& optimizer) {
    const Graph graph = parse_graph(text);
    PlanInput input;
    input.train = program_of(graph, true);
    input.optimizer = optimizer;
    WeightsBlob weights;
    return build_plan(input, weights).plan.model_fingerprint;
  };
  const std::string sgd = fingerprint(kLinear, "sgd");
  CHECK(sgd.size() == 64);
  CHECK(sgd == fingerprint(kMicroBatches, "sgd"));
  CHECK(sgd != fingerprint(kLinear, "adamw"));
}

TEST_CASE("equal kernels are one with the nodes of all") {
  const plan::Plan plan = plan_of(perceptron(4, 1));
  CHECK(fault_texts(plan) == "");
  CHECK(plan.kernels.size() <
        find_task(plan, "forward")->calls.size() + find_task(plan, "backward")->calls.size());
}

TEST_CASE("plans of chains are sound for every depth and number of micro-batches") {
  for (int layers = 1; layers <= 6; ++layers) {
    for (const int micro_batches : {1, 2, 5}) {
      for (const bool fused : {false, true}) {
        INFO(layers << " layers, " << micro_batches << " micro-batches, fused " << fused);
        CHECK(fault_texts(plan_of(perceptron(layers, micro_batches), fused)) == "");
      }
    }
  }
}
