// Random graphs with their gradients: kernels against an interpreter in double, and the gradients
// against differences.
//
// SGTC_RANDOM_GRAPHS says how many, few by default, and SGTC_FIRST_RANDOM_GRAPH from which on.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "autodiff/differentiate.h"
#include "autodiff/gradient_check.h"
#include "autodiff/gradients.h"
#include "codegen/random_graph_makers.h"
#include "codegen/run_graph.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/expand_compositions.h"
#include "passes/fold_constants.h"
#include "passes/simplify.h"
#include "passes/split_reductions.h"

namespace sgtc::test {

void Coverage::add(const Graph& graph) {
  std::set<Op> present;
  for (const Node& node : graph.nodes) present.insert(node.op);
  for (Op op : present) ++used[op];
  std::vector<int> depth(graph.values.size(), 0);
  int deepest = 0;
  for (const Node& node : graph.nodes) {
    int most = 0;
    for (ValueId id : node.operands) most = std::max(most, depth[static_cast<size_t>(id)]);
    for (ValueId id : node.results) depth[static_cast<size_t>(id)] = most + 1;
    deepest = std::max(deepest, most + 1);
  }
  bool has_empty = false, has_single = false;
  for (const Value& value : graph.values) {
    const Shape& shape = value.type.shape;
    has_empty = has_empty || element_count(shape) == 0;
    has_single =
        has_single || (std::count(shape.begin(), shape.end(), 1) > 0 && element_count(shape) > 1);
  }
  size_t most_users = 0;
  for (const auto& users : users_of(graph)) most_users = std::max(most_users, users.size());
  deep += deepest >= 10 ? 1 : 0;
  empty += has_empty ? 1 : 0;
  single += has_single ? 1 : 0;
  fanning += most_users >= 3 ? 1 : 0;
}

void Coverage::add(const Coverage& other) {
  for (const auto& [op, graphs] : other.used) used[op] += graphs;
  deep += other.deep;
  empty += other.empty;
  single += other.single;
  fanning += other.fanning;
}

int64_t RandomGraph::integer(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random_);
}

bool RandomGraph::chance(double probability) {
  return std::bernoulli_distribution(probability)(random_);
}

Shape RandomGraph::shape(size_t least_rank, size_t most_rank) {
  Shape shape(static_cast<size_t>(
      integer(static_cast<int64_t>(least_rank), static_cast<int64_t>(most_rank))));
  for (int64_t& size : shape) size = chance(0.02) ? 0 : integer(1, 5);
  return shape;
}

ValueId RandomGraph::parameter(const Shape& shape) {
  Initializer initial;
  initial.kind = Initializer::Kind::kRandomUniform;
  initial.a = -1;
  initial.b = 1;
  initial.seed = ++parameters_;
  return graph_.add_state("p" + std::to_string(parameters_), {DType::kFloat32, shape},
                          StateRole::kParameter, initial);
}

ValueId RandomGraph::integers(const Shape& shape, int64_t low, int64_t high) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < element_count(shape); ++i) values.push_back(integer(low, high));
  const DType dtype = chance(0.5) ? DType::kInt64 : DType::kInt32;
  return graph_.add_constant(make_literal(dtype, shape, values), "i");
}

ValueId RandomGraph::value(size_t least_rank, size_t most_rank) {
  std::vector<ValueId> fitting;
  for (ValueId id : values_) {
    const size_t rank = graph_.shape(id).size();
    if (rank >= least_rank && rank <= most_rank) fitting.push_back(id);
  }
  if (fitting.empty()) return parameter(shape(std::max<size_t>(least_rank, 1), most_rank));
  if (chance(0.5)) return fitting.back();
  return fitting[static_cast<size_t>(integer(0, std::ssize(fitting) - 1))];
}

ValueId RandomGraph::like(const Shape& shape) {
  for (size_t i = values_.size(); i-- > 0;) {
    if (graph_.shape(values_[i]) == shape && chance(0.5)) return values_[i];
  }
  return parameter(shape);
}

ValueId RandomGraph::broadcast_like(const Shape& shape) {
  Shape other = shape;
  for (int64_t& size : other) size = chance(0.2) ? 1 : size;
  if (!other.empty() && chance(0.2)) other.erase(other.begin());
  return like(other);
}

int64_t RandomGraph::axis(ValueId x) {
  const int64_t found = integer(0, e_.rank(x) - 1);
  return e_.size(x, found) > 0 ? found : -1;
}

std::vector<int64_t> RandomGraph::axes(ValueId x) {
  std::vector<int64_t> result;
  for (int64_t axis = 0; axis < e_.rank(x); ++axis) {
    if (chance(0.5)) result.push_back(axis);
  }
  return result;
}

// Values stay small and of moderate size, whatever made them.
void RandomGraph::keep(ValueId x) {
  if (element_count(e_.shape(x)) > 200) x = e_.sum(x, all_axes(e_.rank(x)));
  values_.push_back(chance(0.3) ? bounded(x) : x);
}

Graph RandomGraph::build(int operators, Coverage& coverage) {
  std::vector<MakerOf> deck = makers();
  size_t next = deck.size();
  values_.push_back(parameter(shape(1, 4)));
  for (int drawn = 0; drawn < operators;) {
    if (next == deck.size()) {
      std::shuffle(deck.begin(), deck.end(), random_);
      next = 0;
    }
    const ValueId made = deck[next++].make(*this);
    if (made == kNone) continue;
    keep(made);
    ++drawn;
  }
  coverage.add(graph_);
  const auto users = users_of(graph_);
  // The first parameter too, so that there is something to train whatever was drawn.
  for (ValueId id : values_) {
    if (users[static_cast<size_t>(id)].empty() || id == values_.front()) {
      graph_.outputs.push_back({graph_.value(id).name, id});
    }
  }
  return with_weighted_loss(std::move(graph_));
}

std::vector<Op> RandomGraph::operators() {
  std::vector<Op> operators;
  for (const MakerOf& maker : makers()) operators.push_back(maker.op);
  return operators;
}

namespace {

int number_of(const char* variable, int otherwise) {
  const char* wanted = std::getenv(variable);
  return wanted ? std::atoi(wanted) : otherwise;
}

// The loss and the gradients of all parameters, as outputs.
Graph with_gradients(const Graph& forward) {
  Diagnostics diagnostics;
  Differentiated result = differentiate(forward, diagnostics);
  Graph& graph = result.graph;
  graph.context() = {Phase::kUpdate, 0, {}};
  for (const ParameterGradient& gradient : result.gradients) {
    ValueId sum = gradient.uses[0];
    for (size_t i = 1; i < gradient.uses.size(); ++i) {
      sum = graph.add(Op::kAdd, {sum, gradient.uses[i]});
    }
    graph.outputs.push_back({"grad." + graph.value(gradient.state).name, sum});
  }
  return std::move(graph);
}

Graph optimized(Graph graph) {
  graph = simplify(fold_constants(graph));
  graph = simplify(fold_constants(expand_compositions(graph)));
  graph = eliminate_dead_nodes(eliminate_common_subexpressions(graph));
  return split_reductions(graph, kCpuReductionSplit);
}

std::map<std::string, Tensor> outputs_of(const Graph& graph,
                                         const std::map<std::string, Values>& parameters) {
  Interpreter interpreter(graph, Precision::kFloat64);
  for (const auto& [name, values] : parameters) interpreter.set(name, values);
  interpreter.run();
  std::map<std::string, Tensor> outputs;
  for (const Output& output : graph.outputs) outputs[output.name] = interpreter.output(output.name);
  return outputs;
}

double scale_of(const Tensor& tensor) {
  double largest = 1;
  for (int64_t i = 0; i < tensor.count(); ++i) largest = std::max(largest, std::abs(tensor.at(i)));
  return largest;
}

// The largest difference relative to the size of the tensor.
double distance(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double difference = std::abs(a.at(i) - b.at(i));
    worst = std::isnan(difference) ? difference : std::max(worst, difference);
  }
  return worst / scale_of(b);
}

// A graph is left out where a small change of the parameters changes a result by more than 200
// times as much: beside a jump or a kink, where differences are no derivatives, or with a condition
// that single precision cannot follow.
constexpr double kNudge = 1e-6;
constexpr double kWellConditioned = 2e-4;
constexpr double kTolerance = 2e-4;

bool is_well_conditioned(const Graph& graph, const std::map<std::string, Values>& parameters,
                         const std::map<std::string, Tensor>& expected) {
  std::mt19937 random(1);
  for (const double share_of_positive : {0.0, 1.0, 0.5, 0.5, 0.5, 0.5}) {
    std::map<std::string, Values> nudged = parameters;
    std::bernoulli_distribution is_positive(share_of_positive);
    for (auto& [name, values] : nudged) {
      for (double& value : values) value += is_positive(random) ? kNudge : -kNudge;
    }
    for (const auto& [name, tensor] : outputs_of(graph, nudged)) {
      if (!(distance(tensor, expected.at(name)) < kWellConditioned)) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("random graphs draw every operator that has a gradient") {
  const std::vector<Op> drawn = RandomGraph::operators();
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = Op(i);
    if (gradient_rule(op) == nullptr || info(op).kind == OpKind::kMicroBatch) continue;
    INFO(name_of(op));
    CHECK(std::count(drawn.begin(), drawn.end(), op) == 1);
  }
}

TEST_CASE("random graphs compute what an interpreter in double computes") {
  const int count = number_of("SGTC_RANDOM_GRAPHS", 20);
  const int first = number_of("SGTC_FIRST_RANDOM_GRAPH", 1);
  Coverage coverage;
  double worst = 0;
  int checked = 0;
  for (int seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    Coverage shown;
    const Graph forward = RandomGraph(static_cast<unsigned>(seed)).build(12 + seed % 12, shown);
    verify(forward, "the generator");
    std::map<std::string, Values> parameters = initial_parameters(forward);
    // Single precision has to start from the same numbers.
    for (auto& [name, values] : parameters) {
      for (double& value : values) value = static_cast<float>(value);
    }
    const Graph step = with_gradients(forward);
    verify(step, "differentiate");
    const std::map<std::string, Tensor> expected = outputs_of(step, parameters);
    if (!is_well_conditioned(step, parameters, expected)) continue;
    std::string refusal;
    const std::optional<double> error = directional_error(forward, refusal);
    CHECK(refusal.empty());
    CHECK(error.value_or(0) < 1e-4);
    const Graph program = optimized(step);
    GraphRunner runner(program);
    for (const auto& [name, values] : parameters) {
      const ValueId state = program.find(name);
      if (state != kNone) runner.set(state, Tensor(program.type(state), values));
    }
    runner.run(Phase::kPrologue, Phase::kUpdate, 0);
    for (const Output& output : program.outputs) {
      INFO(output.name);
      const double found = distance(runner.tensor(output.value), expected.at(output.name));
      CHECK(found < kTolerance);
      worst = std::max(worst, found);
    }
    coverage.add(shown);
    ++checked;
  }
  std::printf(
      "%d graphs from %d on, %d compared (largest error %.1e), %d of depth 10 or more, %d with "
      "tensors "
      "without "
      "elements, %d with dimensions of 1, %d with values that have three users\n",
      count, first, checked, worst, coverage.deep, coverage.empty, coverage.single,
      coverage.fanning);
  CHECK(checked > count * 9 / 10 - 1);
  CHECK(coverage.deep > count / 2);
  CHECK(coverage.empty > count / 50);
  CHECK(coverage.single > count / 2);
  CHECK(coverage.fanning > count / 2);
  for (Op op : RandomGraph::operators()) {
    INFO(name_of(op) << " in " << coverage.used[op] << " of " << count << " graphs");
    CHECK(coverage.used[op] >= count / 100);
  }
}

}  // namespace sgtc::test
