// The collectives of data parallelism.
#include "shard/replicate.h"

#include "autodiff/optimizer.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

// Two micro-batches, two replicas, a denominator, a tied parameter and a frozen one.
const std::string kForward = R"(graph "tied" rows 2 micro_batches 2 replicas 2
feed %x: f32[2,3]
feed %weights: f32[2,3]
state parameter %w: f32[3] = normal(0.0, 0.02, seed 7)
state frozen %b: f32[3] = zero
state statistic %mean: f32[3] = zero
state accumulator %d: f32[1,1] = zero
state accumulator %total: f32[1,1] = zero
%count = reduce_sum(%weights) {axes=[0,1]} @prologue
%denominator = accumulate(%d, %count) @prologue "Count"
%h = mul(%x, %w) "Mul"
%k = mul(%h, %b)
%y = add(%k, %w)
%s = reduce_sum(%y) {axes=[0,1]}
%part = div(%s, %denominator)
%loss = accumulate(%total, %part)
%column = reduce_sum(%x) {axes=[0]}
%row = reshape(%column) {shape=[3]}
%rows = stack_micro_batches(%row) {micro_batches=4} "Norm"
%last = slice(%rows) {starts=[3,0], sizes=[1,3], steps=[1,1]} @update
%flat = reshape(%last) {shape=[3]} @update
output "loss" %loss
update %mean = %flat
)";

Differentiated differentiated(const std::string& text) {
  Diagnostics diagnostics;
  return differentiate(parse_graph(text), diagnostics);
}

// The line of a graph's text that defines `name`.
std::string line_of(const Graph& graph, const std::string& name) {
  const std::string text = to_text(graph);
  const size_t begin = text.find("\n%" + name + ":") + 1;
  return begin == 0 ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

int64_t count(const Graph& graph, Op op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op == op; });
}

}  // namespace

TEST_CASE("replicas sum denominators, each use of a gradient and the loss") {
  const Differentiated replicated = replicate(differentiated(kForward));
  verify(replicated.graph, "replicate");
  CHECK_THAT(line_of(replicated.graph, "denominator.all"),
             ContainsSubstring("all_reduce(%denominator) @prologue"));
  CHECK_THAT(line_of(replicated.graph, "part"), ContainsSubstring("div(%s, %denominator.all)"));
  CHECK_THAT(line_of(replicated.graph, "loss.all"), ContainsSubstring("all_reduce(%loss) @update"));
  REQUIRE(replicated.gradients.size() == 1);
  CHECK(replicated.gradients[0].uses.size() == 2);
  for (const ValueId use : replicated.gradients[0].uses) {
    CHECK(replicated.graph.producer(use)->op == Op::kAllReduce);
    CHECK(replicated.graph.producer(use)->sources == std::vector<std::string>{"gradient of w"});
  }
  CHECK(count(replicated.graph, Op::kAllReduce) == 4);
  CHECK(replicated.graph.value(replicated.graph.outputs[0].value).name == "loss.all");
}

TEST_CASE("replicas gather stacked rows before the update reads them") {
  const Graph graph = replicate(differentiated(kForward)).graph;
  CHECK_THAT(line_of(graph, "rows.all"), ContainsSubstring("all_gather(%rows) @update"));
  CHECK_THAT(line_of(graph, "last"), ContainsSubstring("slice(%rows.all)"));
  CHECK(count(graph, Op::kAllGather) == 1);
}

TEST_CASE("a single replica has no collectives") {
  std::string text = kForward;
  text.replace(text.find(" replicas 2"), 11, "");
  text.replace(text.find("micro_batches=4"), 15, "micro_batches=2");
  text.replace(text.find("starts=[3,0]"), 12, "starts=[1,0]");
  const Graph graph = replicate(differentiated(text)).graph;
  CHECK(count(graph, Op::kAllReduce) + count(graph, Op::kAllGather) == 0);
}

namespace {

// %w can be shared out by two replicas, %b is too small.
const std::string kShared = R"(graph "shared" rows 2 replicas 2
feed %x: f32[2,64]
state parameter %w: f32[64,64] = normal(0.0, 0.02, seed 7)
state parameter %b: f32[64] = zero
%m = matmul(%x, %w)
%y = add(%m, %b)
%loss = reduce_sum(%y) {axes=[0,1]}
output "loss" %loss
)";

}  // namespace

TEST_CASE("gradients of what replicas share out are scattered, the others reduced") {
  const Differentiated shared = replicate(differentiated(kShared), Sharding::kOptimizer);
  verify(shared.graph, "replicate");
  REQUIRE(shared.gradients.size() == 2);
  for (const ParameterGradient& gradient : shared.gradients) {
    const bool is_large = shared.graph.value(gradient.state).name == "w";
    CHECK(gradient.sharded == is_large);
    const Node& sum = *shared.graph.producer(gradient.uses[0]);
    CHECK(sum.op == (is_large ? Op::kReduceScatter : Op::kAllReduce));
    CHECK(shared.graph.shape(gradient.uses[0]) == (is_large ? Shape{2048} : Shape{64}));
  }
}

TEST_CASE("the optimizer keeps and updates a replica's shard") {
  OptimizerOptions options;
  options.clip_norm = 1;
  const Graph graph =
      add_optimizer(replicate(differentiated(kShared), Sharding::kOptimizer), options);
  verify(graph, "add-optimizer");
  CHECK(to_text(parse_graph(to_text(graph))) == to_text(graph));
  CHECK_THAT(to_text(graph), ContainsSubstring("state moment %w.exp_avg: f32[2048] of [64,64] = "));
  CHECK_THAT(to_text(graph), ContainsSubstring("state moment %b.exp_avg: f32[64] = zero"));
  CHECK(count(graph, Op::kGatherShards) == 1);
  for (const Update& update : graph.updates) {
    if (graph.value(update.state).name != "w") continue;
    const Node& gather = *graph.producer(update.value);
    CHECK(gather.op == Op::kGatherShards);
    CHECK(graph.shape(gather.operands[0]) == Shape{2048});
  }
  // The norm adds up squares of all shards: one sum of squares, the loss, and %b's gradient.
  CHECK(count(graph, Op::kAllReduce) == 3);
}
