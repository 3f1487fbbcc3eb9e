#include "passes/separate_loss.h"

#include <cmath>
#include <functional>
#include <map>

#include "autodiff/differentiate.h"
#include "ir/interpret.h"
#include "passes/row_weights.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

using Values = std::vector<double>;
using Text = std::function<std::string(int64_t rows)>;

std::string s(int64_t value) { return std::to_string(value); }

struct StepResult {
  double loss = 0;
  std::map<std::string, Values> gradients;
};

/// One training step in double; `feeds` hold the rows of all micro-batches.
StepResult run_step(const Text& text, int64_t rows, int64_t micro_batches,
                    const std::map<std::string, Values>& feeds,
                    LossAverage average = LossAverage::kExact, int64_t replicas = 1,
                    LastBatch last_batch = LastBatch::kDrop) {
  Diagnostics diagnostics;
  const Graph forward = separate_loss(parse_graph(text(rows)), micro_batches, replicas, average,
                                      diagnostics, last_batch);
  verify(forward, "separate_loss");
  Differentiated result = differentiate(forward, diagnostics);
  Graph& graph = result.graph;
  graph.context() = {Phase::kUpdate, 0, {}};
  std::map<std::string, ValueId> sums;
  for (const ParameterGradient& gradient : result.gradients) {
    ValueId sum = gradient.uses[0];
    for (size_t i = 1; i < gradient.uses.size(); ++i) {
      sum = graph.add(Op::kAdd, {sum, gradient.uses[i]});
    }
    sums[graph.value(gradient.state).name] = sum;
  }
  verify(graph, "differentiate");
  Interpreter interpreter(graph, Precision::kFloat64);
  for (const auto& [name, values] : feeds) {
    const auto part = static_cast<int64_t>(values.size()) / micro_batches;
    for (int64_t m = 0; m < micro_batches; ++m) {
      interpreter.set_feed(name, m, {values.begin() + m * part, values.begin() + (m + 1) * part});
    }
  }
  interpreter.run();
  StepResult step;
  step.loss = interpreter.output(graph.outputs[0].name).at(0);
  for (const auto& [name, sum] : sums) step.gradients[name] = interpreter.value(sum).reals;
  return step;
}

void check_equal(const StepResult& found, const StepResult& expected) {
  CHECK(found.loss == Approx(expected.loss).epsilon(1e-12));
  REQUIRE(found.gradients.size() == expected.gradients.size());
  for (const auto& [name, values] : expected.gradients) {
    INFO(name);
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(found.gradients.at(name)[i] == Approx(values[i]).epsilon(1e-12).margin(1e-12));
    }
  }
}

/// M micro-batches of 4/M rows must give what one batch of 4 rows gives.
void check_split(const Text& text, const std::map<std::string, Values>& feeds) {
  const StepResult whole = run_step(text, 4, 1, feeds);
  check_equal(run_step(text, 2, 2, feeds), whole);
  check_equal(run_step(text, 1, 4, feeds), whole);
}

/// Without the last of 4 rows.
std::map<std::string, Values> three_rows(const std::map<std::string, Values>& feeds) {
  std::map<std::string, Values> result;
  for (const auto& [name, values] : feeds) {
    const auto row = static_cast<int64_t>(values.size()) / 4;
    result[name] = {values.begin(), values.begin() + 3 * row};
  }
  return result;
}

std::map<std::string, Values> with_weights(std::map<std::string, Values> feeds) {
  feeds[kRowWeights] = {1, 1, 1, 0};
  return feeds;
}

/// Steps whose last of 4 rows has weight 0 must give what the other 3 give.
void check_padding(const Text& text, const std::map<std::string, Values>& feeds) {
  const StepResult whole = run_step(text, 3, 1, three_rows(feeds));
  for (int64_t micro_batches : {1, 2, 4}) {
    check_equal(run_step(text, 4 / micro_batches, micro_batches, with_weights(feeds),
                         LossAverage::kExact, 1, LastBatch::kPad),
                whole);
  }
}

/// Numerators and denominators of all micro-batches, combined.
double evaluate(const Text& text, int64_t rows, int64_t micro_batches,
                const std::map<std::string, Values>& feeds, LastBatch last_batch) {
  Diagnostics diagnostics;
  const EvaluationLoss evaluation = separate_evaluation_loss(
      parse_graph(text(rows)), LossAverage::kExact, diagnostics, last_batch);
  verify(evaluation.graph, "separate_evaluation_loss");
  std::map<std::string, double> sums;
  for (int64_t m = 0; m < micro_batches; ++m) {
    Interpreter interpreter(evaluation.graph, Precision::kFloat64);
    for (const auto& [name, values] : feeds) {
      const auto part = static_cast<int64_t>(values.size()) / micro_batches;
      interpreter.set(name, {values.begin() + m * part, values.begin() + (m + 1) * part});
    }
    interpreter.run();
    for (const LossRatio& ratio : evaluation.ratios) {
      sums[ratio.numerator] += interpreter.output(ratio.numerator).at(0);
      sums[ratio.denominator] += interpreter.output(ratio.denominator).at(0);
    }
  }
  double loss = 0;
  for (const LossRatio& ratio : evaluation.ratios) {
    loss += sums[ratio.numerator] / sums[ratio.denominator];
  }
  return loss;
}

/// Both, for means.
void check_mean(const Text& text, const std::map<std::string, Values>& feeds) {
  check_split(text, feeds);
  check_padding(text, feeds);
  const double whole = evaluate(text, 3, 1, three_rows(feeds), LastBatch::kDrop);
  CHECK(evaluate(text, 2, 2, with_weights(feeds), LastBatch::kPad) == Approx(whole));
}

std::string header(int64_t rows) { return "graph \"g\" rows " + s(rows) + " micro_batches 1\n"; }

/// Linear classifier of 3 classes over [rows,2] with labels; -100 is ignored.
std::string logits(int64_t rows) {
  return header(rows) + "feed %x: f64[" + s(rows) + ",2]\nfeed %label: i64[" + s(rows) + R"(]
state parameter %w: f64[2,3] = literal [0.5, -1, 0.25, 2, 0.1, -0.3]
constant %ignored: i64[] = [-100]
constant %zero: i64[] = [0]
constant %none: f64[] = [0]
%z = matmul(%x, %w)
%counts = not_equal(%label, %ignored)
%safe = where(%counts, %label, %zero)
%index = reshape(%safe) {shape=[)" +
         s(rows) + R"(,1]}
%lp = log_softmax(%z) {axis=1}
%picked = pick(%lp, %index) {axis=1}
%row = reshape(%picked) {shape=[)" +
         s(rows) + R"(]}
%minus = neg(%row)
%nll = where(%counts, %minus, %none)
%mask = cast(%counts) {to="f64"}
%N = reduce_sum(%nll) {axes=[0]}
%D = reduce_sum(%mask) {axes=[0]}
)";
}

const std::map<std::string, Values> kClassified = {{"x", {1, 2, -1, 0.5, 0.3, 0.7, -2, 1}},
                                                   {"label", {0, -100, 2, 1}}};

}  // namespace

TEST_CASE("mean cross-entropy with ignored labels") {
  check_mean(
      [](int64_t rows) {
        return logits(rows) + "%q = div(%N, %D)\n%l = reshape(%q) {shape=[]}\noutput \"loss\" %l\n";
      },
      kClassified);
}

TEST_CASE("a denominator behind max(count, 1), a product with its reciprocal, a scale") {
  check_mean(
      [](int64_t rows) {
        return logits(rows) +
               "constant %one: f64[] = [1]\n%c = max(%D, %one)\n%q = div(%N, %c)\n"
               "%l = reshape(%q) {shape=[]}\noutput \"loss\" %l\n";
      },
      kClassified);
  check_mean(
      [](int64_t rows) {
        return logits(rows) +
               "%r = reciprocal(%D)\n%q = mul(%N, %r)\nconstant %k: f64[] = [0.5]\n"
               "%m = mul(%k, %q)\n%l = reshape(%m) {shape=[]}\noutput \"loss\" %l\n";
      },
      kClassified);
}

TEST_CASE("a sum of terms, a difference and batch-free decay") {
  check_mean(
      [](int64_t rows) {
        return logits(rows) + "constant %n: f64[] = [" + s(rows) + R"(]
constant %k: f64[] = [0.01]
%q = div(%N, %D)
%sq = mul(%z, %z)
%Z = reduce_sum(%sq) {axes=[0,1]}
%z1 = reshape(%Z) {shape=[1]}
%zm = div(%z1, %n)
%diff = sub(%q, %zm)
%ww = mul(%w, %w)
%W = reduce_sum(%ww) {axes=[0,1]}
%decay0 = mul(%W, %k)
%decay = reshape(%decay0) {shape=[1]}
%all = add(%diff, %decay)
%l = reshape(%all) {shape=[]}
output "loss" %l
)";
      },
      kClassified);
}

TEST_CASE("a decay inside the mean is counted once") {
  check_mean(
      [](int64_t rows) {
        return logits(rows) + R"(
%ww = mul(%w, %w)
%W = reduce_sum(%ww) {axes=[0,1]}
%W1 = reshape(%W) {shape=[1]}
constant %n: f64[] = [)" +
               s(rows) + R"(]
%q = div(%N, %n)
%all = add(%q, %W1)
%l = reshape(%all) {shape=[]}
output "loss" %l
)";
      },
      kClassified);
}

namespace {

std::string regression(int64_t rows, const std::string& loss) {
  return header(rows) + "feed %x: f64[" + s(rows) + ",2]\nfeed %t: f64[" + s(rows) + R"(,2]
state parameter %w: f64[2,2] = literal [0.5, -1, 2, 0.1]
%y = matmul(%x, %w)
%d = sub(%y, %t)
%e = mul(%d, %d)
)" + loss +
         "output \"loss\" %l\n";
}

const std::map<std::string, Values> kRegression = {{"x", {1, 2, -1, 0.5, 0.3, 0.7, -2, 1}},
                                                   {"t", {0, 1, 2, 3, 4, 5, 6, 7}}};

}  // namespace

TEST_CASE("mean squared error: over all elements, per sample first, and per column first") {
  check_mean(
      [](int64_t rows) {
        return regression(rows, "%S = reduce_sum(%e) {axes=[0,1]}\nconstant %n: f64[] = [" +
                                    s(rows * 2) +
                                    "]\n%m = div(%S, %n)\n%l = reshape(%m) {shape=[]}\n");
      },
      kRegression);
  check_mean(
      [](int64_t rows) {
        return regression(rows,
                          "%R = reduce_sum(%e) {axes=[1]}\nconstant %k: f64[] = [3]\n"
                          "%r = div(%R, %k)\n%S = reduce_sum(%r) {axes=[0]}\n"
                          "constant %n: f64[] = [" +
                              s(rows) + "]\n%m = div(%S, %n)\n%l = reshape(%m) {shape=[]}\n");
      },
      kRegression);
  check_mean(
      [](int64_t rows) {
        return regression(rows, "%C = reduce_sum(%e) {axes=[0]}\nconstant %n: f64[] = [" + s(rows) +
                                    "]\n%c = div(%C, %n)\n%m = reduce_sum(%c) {axes=[1]}\n"
                                    "%l = reshape(%m) {shape=[]}\n");
      },
      kRegression);
}

TEST_CASE("a sum over samples stays a sum") {
  const Text text = [](int64_t rows) {
    return regression(rows,
                      "%S = reduce_sum(%e) {axes=[0,1]}\nconstant %k: f64[] = [0.5]\n"
                      "%m = mul(%S, %k)\n%l = reshape(%m) {shape=[]}\n");
  };
  check_split(text, kRegression);
  check_padding(text, kRegression);
}

TEST_CASE("tokens: the batch stays the major part of a merged dimension") {
  check_mean(
      [](int64_t rows) {
        return header(rows) + "feed %x: f64[" + s(rows) + R"(,3,2]
state parameter %w: f64[2,2] = literal [0.5, -1, 2, 0.1]
%y = matmul(%x, %w)
%p = softmax(%y) {axis=2}
%t = transpose(%p) {perm=[0,2,1]}
%u = transpose(%t) {perm=[0,2,1]}
%f = reshape(%u) {shape=[)" +
               s(rows * 3) + R"(,2]}
%e = mul(%f, %f)
%S = reduce_sum(%e) {axes=[0,1]}
constant %n: f64[] = [)" +
               s(rows * 3) + R"(]
%m = div(%S, %n)
%l = reshape(%m) {shape=[]}
output "loss" %l
)";
      },
      {{"x", {1, 2, -1, 0.5, 0.3, 0.7, -2, 1,   0,   1,   2,   3,
              4, 5, 6,  7,   -1,  -2,  -3, 0.1, 0.2, 0.3, 0.4, 0.5}}});
}

namespace {

/// Logits x + b of 8 classes, all labels 0 or ignored.
std::string counted_rows(int64_t rows) {
  return header(rows) + "feed %x: f64[" + s(rows) + ",8]\nfeed %label: i64[" + s(rows) + R"(]
state parameter %b: f64[8] = zero
constant %ignored: i64[] = [-100]
constant %zero: i64[] = [0]
constant %none: f64[] = [0]
%z = add(%x, %b)
%lp = log_softmax(%z) {axis=1}
%counts = not_equal(%label, %ignored)
%safe = where(%counts, %label, %zero)
%index = reshape(%safe) {shape=[)" +
         s(rows) + R"(,1]}
%picked = pick(%lp, %index) {axis=1}
%row = reshape(%picked) {shape=[)" +
         s(rows) + R"(]}
%minus = neg(%row)
%nll = where(%counts, %minus, %none)
%mask = cast(%counts) {to="f64"}
%N = reduce_sum(%nll) {axes=[0]}
%D = reduce_sum(%mask) {axes=[0]}
%q = div(%N, %D)
%l = reshape(%q) {shape=[]}
output "loss" %l
)";
}

/// Row 1 alone and padded with two ignored rows; rows 2 to 4.
std::map<std::string, Values> unequal_micro_batches() {
  Values x(48, 0);
  for (size_t row : {3, 4, 5}) x[row * 8] = std::log(7);
  return {{"x", x}, {"label", {0, -100, -100, 0, 0, 0}}};
}

}  // namespace

TEST_CASE("micro-batches with different numbers of labels weigh each label equally") {
  const StepResult exact = run_step(counted_rows, 3, 2, unequal_micro_batches());
  CHECK(exact.loss == Approx(1.5 * std::log(2)));
  CHECK(exact.gradients.at("b")[0] == Approx(-0.59375));
  for (size_t i = 1; i < 8; ++i) CHECK(exact.gradients.at("b")[i] == Approx(0.08482143));
  check_equal(run_step(counted_rows, 6, 1, unequal_micro_batches()), exact);
}

TEST_CASE("mean of means weighs micro-batches equally") {
  const StepResult step =
      run_step(counted_rows, 3, 2, unequal_micro_batches(), LossAverage::kMeanOfMeans);
  CHECK(step.loss == Approx(1.3862944));
  CHECK(step.gradients.at("b")[0] == Approx(-0.6875));
  CHECK(step.gradients.at("b")[1] == Approx(0.09821429));
}

TEST_CASE("a micro-batch in which all labels are ignored adds nothing") {
  std::map<std::string, Values> feeds = {{"x", Values(16, 0)}, {"label", {0, -100}}};
  feeds["x"][0] = 1;
  const StepResult both = run_step(counted_rows, 1, 2, feeds);
  const StepResult alone =
      run_step(counted_rows, 1, 1, {{"x", {1, 0, 0, 0, 0, 0, 0, 0}}, {"label", {0}}});
  check_equal(both, alone);
}

TEST_CASE("replicas scale the constants: each adds its part") {
  const Text text = [](int64_t rows) {
    return regression(rows, "%S = reduce_sum(%e) {axes=[0,1]}\nconstant %n: f64[] = [" +
                                s(rows * 2) + "]\n%m = div(%S, %n)\n%l = reshape(%m) {shape=[]}\n");
  };
  const StepResult whole = run_step(text, 4, 1, kRegression);
  double sum = 0;
  for (size_t replica : {0, 1}) {
    std::map<std::string, Values> feeds;
    for (const auto& [name, values] : kRegression) {
      const auto half = values.begin() + static_cast<int64_t>(replica) * 4;
      feeds[name] = {half, half + 4};
    }
    sum += run_step(text, 2, 1, feeds, LossAverage::kExact, 2).loss;
  }
  CHECK(sum == Approx(whole.loss));
}

TEST_CASE("one micro-batch of one replica leaves the graph as it is") {
  Diagnostics diagnostics;
  const Graph graph = parse_graph(counted_rows(3));
  CHECK(to_text(separate_loss(graph, 1, 1, LossAverage::kExact, diagnostics)) == to_text(graph));
}

TEST_CASE("the denominator is computed in the prologue") {
  Diagnostics diagnostics;
  const Graph graph =
      separate_loss(parse_graph(counted_rows(3)), 2, 2, LossAverage::kExact, diagnostics);
  const ValueId state = graph.find("loss.denominator.0");
  REQUIRE(state != kNone);
  CHECK(graph.value(state).role == StateRole::kAccumulator);
  CHECK(graph.find("loss.total") != kNone);
  CHECK(graph.micro_batches == 2);
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::kPrologue) CHECK(node.op != Op::kLogSoftmax);
  }
}

TEST_CASE("a denominator may be a sum of any result of an operator") {
  Diagnostics diagnostics;
  const Graph graph = separate_loss(parse_graph(R"(graph "n" rows 2
feed %x: f32[2,3]
%y, %mean, %variance = normalize(%x) {axes=[1], epsilon=0.001}
%a = reduce_sum(%y) {axes=[0,1]}
%b = reduce_sum(%mean) {axes=[0,1]}
%loss = div(%a, %b)
output "loss" %loss
)"),
                                    2, 1, LossAverage::kExact, diagnostics);
  verify(graph, "separate_loss");
  std::string prologue;
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::kPrologue) prologue += std::string(name_of(node.op)) + " ";
  }
  CHECK(prologue == "normalize reduce_sum accumulate ");
}

namespace {

std::string refusal(const std::string& loss) {
  Diagnostics diagnostics;
  try {
    separate_loss(parse_graph(regression(2, loss)), 2, 1, LossAverage::kExact, diagnostics);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("losses that mix samples are refused by node name, with the remedy") {
  const std::string text = refusal(
      "%p = softmax(%e) {axis=0} #90 \"over_batch\"\n%S = reduce_sum(%p) {axes=[0,1]}\n"
      "%l = reshape(%S) {shape=[]}\n");
  CHECK_THAT(text, ContainsSubstring("over_batch") && ContainsSubstring("softmax") &&
                       ContainsSubstring("--loss-average=mean-of-means"));
  CHECK_THAT(refusal("%S = reduce_max(%e) {axes=[0,1]} #90 \"worst\"\n"
                     "%l = reshape(%S) {shape=[]}\n"),
             ContainsSubstring("worst"));
  CHECK_THAT(refusal("%S = reduce_sum(%e) {axes=[0,1]}\n%r = sqrt(%S) #90 \"root\"\n"
                     "%l = reshape(%r) {shape=[]}\n"),
             ContainsSubstring("root") && ContainsSubstring("not linear"));
}

TEST_CASE("a denominator that depends on a parameter is refused") {
  CHECK_THAT(refusal("%S = reduce_sum(%e) {axes=[0,1]}\n%A = reduce_sum(%y) {axes=[0,1]}\n"
                     "%r = div(%S, %A) #90 \"ratio\"\n%l = reshape(%r) {shape=[]}\n"),
             ContainsSubstring("ratio"));
}

TEST_CASE("a refused loss is accepted as a mean of means") {
  Diagnostics diagnostics;
  const Graph graph =
      parse_graph(regression(2, "%S = reduce_max(%e) {axes=[0,1]}\n%l = reshape(%S) {shape=[]}\n"));
  const Graph separated = separate_loss(graph, 2, 1, LossAverage::kMeanOfMeans, diagnostics);
  verify(separated, "separate_loss");
  CHECK(separated.micro_batches == 2);
}

TEST_CASE("evaluation reports numerators and denominators") {
  Diagnostics diagnostics;
  const EvaluationLoss evaluation =
      separate_evaluation_loss(parse_graph(counted_rows(3)), LossAverage::kExact, diagnostics);
  verify(evaluation.graph, "separate_evaluation_loss");
  REQUIRE(evaluation.ratios.size() == 1);
  const std::map<std::string, Values> feeds = unequal_micro_batches();
  double above = 0;
  double below = 0;
  for (int64_t m : {0, 1}) {
    Interpreter interpreter(evaluation.graph, Precision::kFloat64);
    for (const auto& [name, values] : feeds) {
      const auto part = static_cast<int64_t>(values.size()) / 2;
      interpreter.set(name, Values(values.begin() + m * part, values.begin() + (m + 1) * part));
    }
    interpreter.run();
    above += interpreter.output("loss.numerator.0").at(0);
    below += interpreter.output("loss.denominator.0").at(0);
  }
  CHECK(below == 4);
  CHECK(above / below == Approx(1.5 * std::log(2)));
}

TEST_CASE("evaluation of batch-free terms has the denominator 1, of sums none") {
  Diagnostics diagnostics;
  const EvaluationLoss evaluation = separate_evaluation_loss(parse_graph(regression(2, R"(
%S0 = reduce_sum(%e) {axes=[0,1]}
%S = reshape(%S0) {shape=[]}
%ww = mul(%w, %w)
%W0 = reduce_sum(%ww) {axes=[0,1]}
%W = reshape(%W0) {shape=[]}
%l = add(%S, %W)
)")),
                                                             LossAverage::kExact, diagnostics);
  REQUIRE(evaluation.ratios.size() == 2);
  CHECK(evaluation.ratios[0].denominator.empty());
  CHECK(evaluation.ratios[1].denominator == "loss.denominator.1");
}

TEST_CASE("evaluation of a loss without that form collects the error and gives no ratios") {
  Diagnostics diagnostics;
  const Graph graph =
      parse_graph(regression(2, "%S = reduce_max(%e) {axes=[0,1]}\n%l = reshape(%S) {shape=[]}\n"));
  CHECK(separate_evaluation_loss(graph, LossAverage::kExact, diagnostics).ratios.empty());
  CHECK(diagnostics.has_errors());
  Diagnostics means;
  CHECK(separate_evaluation_loss(graph, LossAverage::kMeanOfMeans, means).ratios.size() == 1);
  CHECK_FALSE(means.has_errors());
}

TEST_CASE("padding: sums are weighted, also the products that contract rows") {
  const Text gram = [](int64_t rows) {
    return regression(rows,
                      "%G = matmul(%d, %y) {transpose_a=1}\n%S = reduce_sum(%G) {axes=[0,1]}\n"
                      "constant %n: f64[] = [" +
                          s(rows) + "]\n%m = div(%S, %n)\n%l = reshape(%m) {shape=[]}\n");
  };
  check_padding(gram, kRegression);
}

TEST_CASE("padding is refused where weights do not keep it out") {
  const auto refusal_of = [](const std::string& graph) {
    Diagnostics diagnostics;
    try {
      separate_loss(parse_graph(graph), 1, 1, LossAverage::kExact, diagnostics, LastBatch::kPad);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string mean =
      "%S = reduce_sum(%e) {axes=[0,1]}\nconstant %n: f64[] = [4]\n%m = div(%S, %n)\n";
  CHECK_THAT(refusal_of(regression(2, mean + "%r = sqrt(%m) #90 \"root\"\n"
                                             "%l = reshape(%r) {shape=[]}\n")),
             ContainsSubstring("root") && ContainsSubstring("padding") &&
                 ContainsSubstring("--last-batch=drop"));
  CHECK_THAT(refusal_of(regression(2, mean + "%u, %mu, %rs = normalize(%y) {axes=[0], "
                                             "epsilon=0.1} #91 \"norm\"\n"
                                             "%l = reshape(%m) {shape=[]}\n")),
             ContainsSubstring("norm") && ContainsSubstring("statistics"));
  CHECK_THAT(refusal_of("graph \"\" rows 2 micro_batches 1\nfeed %x: f64[2]\nfeed %k: f64[4]\n"
                        "%s = reduce_sum(%x) {axes=[0]}\n%l = reshape(%s) {shape=[]}\n"
                        "output \"loss\" %l\n"),
             ContainsSubstring("input k") && ContainsSubstring("expected 2 rows"));
  CHECK_THAT(refusal_of("graph \"\" rows 0 micro_batches 1\nstate parameter %w: f64[] = zero\n"
                        "%l = mul(%w, %w)\noutput \"loss\" %l\n"),
             ContainsSubstring("no input with rows"));
}

namespace {

double share(const std::string& graph, LossAverage average = LossAverage::kExact) {
  Diagnostics diagnostics;
  return share_of_micro_batch(parse_graph(graph), 4, 1, average, diagnostics);
}

// sum(x) / the given divisor.
std::string divided(const std::string& divisor) {
  return "graph \"\" rows 3 micro_batches 1\nfeed %x: f64[3]\nfeed %n: f64[3]\nconstant %c: f64[] "
         "= [3]\n"
         "%s = reduce_sum(%x) {axes=[0]}\n%a = reshape(%s) {shape=[]}\n"
         "%t = reduce_sum(%n) {axes=[0]}\n%b = reshape(%t) {shape=[]}\n" +
         divisor + "output \"loss\" %l\n";
}

}  // namespace

TEST_CASE("gradients of one micro-batch have a share in those of the step") {
  CHECK(share(divided("%l = neg(%a)\n")) == 1);
  CHECK(share(divided("%l = div(%a, %c)\n")) == 0.25);
  CHECK_THROWS_WITH(share(divided("%l = div(%a, %b)\n")),
                    ContainsSubstring("divides by what differs between micro-batches"));
  CHECK(share(divided("%l = div(%a, %b)\n"), LossAverage::kMeanOfMeans) == 0.25);
}

TEST_CASE("a mean written as a sum of parts divided by their number") {
  check_mean(
      [](int64_t rows) {
        return logits(rows) + "constant %n: f64[] = [" + s(rows) +
               "]\n%parts = div(%row, %n)\n%sum = reduce_sum(%parts) {axes=[0]}\n"
               "%l = reshape(%sum) {shape=[]}\noutput \"loss\" %l\n";
      },
      {{"x", {1, 2, -1, 0.5, 0.3, 0.7, -2, 1}}, {"label", {0, 1, 2, 1}}});
}
