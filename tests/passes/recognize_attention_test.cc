#include "passes/recognize_attention.h"

#include <cmath>
#include <map>

#include "autodiff/differentiate.h"
#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

const std::string kOperands =
    "state parameter %q: f32[2,2,4,3] = uniform(-1.0, 1.0, seed 1)\n"
    "state parameter %k: f32[2,2,4,3] = uniform(-1.0, 1.0, seed 2)\n"
    "state parameter %v: f32[2,2,4,5] = uniform(-1.0, 1.0, seed 3)\n"
    "constant %half: f32[] = [0.5]\nconstant %zero: f32[] = [0]\nconstant %inf: f32[] = [-inf]\n";
const std::string kScores = "%p = matmul(%q, %k) {transpose_b=1}\n%s = mul(%p, %half)\n";
const std::string kOutput = "output \"o\" %o\n";
// Ends with the scores %h.
const std::string kMixed = "%w = softmax(%h) {axis=3}\n%o = matmul(%w, %v)\n" + kOutput;

const std::string kTriangle =
    "constant %m: f32[4,4] = [0, -inf, -inf, -inf, 0, 0, -inf, -inf, 0, 0, 0, -inf, 0, 0, 0, 0]\n";
const std::string kFiniteTriangle =
    "constant %m: f32[4,4] = [0, -1e4, -1e4, -1e4, 0, 0, -1e4, -1e4, 0, 0, 0, -1e4, 0, 0, 0, 0]\n";
const std::string kSeen =
    "constant %seen: bool[4,4] = [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]\n";

// The operator's text in the rewritten graph; nothing if there is none.
std::string recognized(const std::string& text) {
  const Graph graph = recognize_attention(parse_graph(text));
  verify(graph, "recognize_attention");
  const std::string result = to_text(graph);
  const size_t begin = result.find(" = attention(");
  if (begin == std::string::npos) return "";
  return result.substr(begin + 3, result.find('}', begin) - begin - 2);
}

// Outputs and gradients of the sum of their squares, in double.
std::map<std::string, Tensor> values_of(Graph graph,
                                        const std::map<std::string, std::vector<double>>& feeds) {
  const ValueId output = graph.outputs[0].value;
  std::vector<int64_t> axes = all_axes(static_cast<int64_t>(graph.shape(output).size()));
  const ValueId square = graph.add(Op::kMul, {output, output});
  const ValueId sum = graph.add(Op::kReduceSum, {square}, {{"axes", axes}});
  graph.outputs = {{"loss", graph.add(Op::kReshape, {sum}, {{"shape", Shape{}}})}, {"o", output}};
  Diagnostics diagnostics;
  const Differentiated result = differentiate(graph, diagnostics);
  Interpreter interpreter(result.graph, Precision::kFloat64);
  for (const auto& [name, values] : feeds) interpreter.set(name, values);
  interpreter.run();
  std::map<std::string, Tensor> values = {{"o", interpreter.output("o")}};
  for (const ParameterGradient& gradient : result.gradients) {
    Tensor sum = interpreter.value(gradient.uses[0]);
    for (size_t use = 1; use < gradient.uses.size(); ++use) {
      const Tensor& next = interpreter.value(gradient.uses[use]);
      for (size_t i = 0; i < sum.reals.size(); ++i) sum.reals[i] += next.reals[i];
    }
    values["d" + result.graph.value(gradient.state).name] = sum;
  }
  return values;
}

void check_same(const std::string& text,
                const std::map<std::string, std::vector<double>>& feeds = {}) {
  const Graph graph = parse_graph(text);
  const auto expected = values_of(graph, feeds),
             found = values_of(recognize_attention(graph), feeds);
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    for (int64_t i = 0; i < tensor.count(); ++i) {
      CHECK(found.at(name).at(i) == Approx(tensor.at(i)).margin(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("products and a softmax become attention") {
  const std::string text =
      kOperands + kScores + "%w = softmax(%s) {axis=3}\n%o = matmul(%w, %v)\n" + kOutput;
  CHECK(recognized(text) == "attention(%q, %k, %v) {causal=0, scale=0.5, zero_empty=0}");
  check_same(text);
}

TEST_CASE("as exporters write it: both operands scaled, the key transposed, a guard against NaN") {
  const std::string text =
      kOperands + kTriangle +
      "%k1 = reshape(%k) {shape=[4,4,3]}\n%k2 = transpose(%k1) {perm=[0,2,1]}\n"
      "%k3 = reshape(%k2) {shape=[2,2,3,4]}\n%a = mul(%q, %half)\n%b = mul(%half, %k3)\n"
      "%p = matmul(%a, %b)\n%h = add(%p, %m)\n%y = softmax(%h) {axis=3}\n%n = is_nan(%y)\n"
      "%w = where(%n, %zero, %y)\n%o = matmul(%w, %v)\n" +
      kOutput;
  CHECK(recognized(text) == "attention(%q, %k, %v) {causal=1, scale=0.25, zero_empty=1}");
  check_same(text);
}

TEST_CASE("operands in other layouts: transposed, or of other leading dimensions") {
  const std::string text =
      "state parameter %q: f32[3,3,4] = uniform(-1.0, 1.0, seed 1)\n"
      "state parameter %k: f32[3,4,3] = uniform(-1.0, 1.0, seed 2)\n"
      "state parameter %v: f32[3,5,4] = uniform(-1.0, 1.0, seed 3)\n"
      "%p = matmul(%q, %k) {transpose_a=1, transpose_b=1}\n%w = softmax(%p) {axis=2}\n"
      "%o = matmul(%w, %v) {transpose_b=1}\n" +
      kOutput;
  CHECK(recognized(text) ==
        "attention(%reshape, %reshape_1, %reshape_2) "
        "{causal=0, scale=1.0, zero_empty=0}");
  check_same(text);
  check_same(
      "state parameter %q: f32[4,3] = uniform(-1.0, 1.0, seed 1)\n"
      "%p = matmul(%q, %q) {transpose_b=1}\n%w = softmax(%p) {axis=1}\n"
      "constant %v: f32[4,2] = [1, 2, 3, 4, 5, 6, 7, 8]\n%o = matmul(%w, %v)\n" +
      kOutput);
}

TEST_CASE("a constant lower triangle is causal, however it is written") {
  const std::string flags = "attention(%q, %k, %v) {causal=1, scale=0.5, zero_empty=0}";
  const std::string seen =
      GENERATE(as<std::string>(), kTriangle + "%h = add(%s, %m)\n",
               kFiniteTriangle + "%h = add(%m, %s)\n", kSeen + "%h = where(%seen, %s, %inf)\n",
               kSeen +
                   "constant %low: f32[] = [-1e4]\n"
                   "%h = where(%seen, %s, %low)\n",
               "constant %hidden: bool[1,1,4,4] = [0, 1, 1, 1, 0, 0, 1, 1, "
               "0, 0, 0, 1, 0, 0, 0, 0]\n%h = where(%hidden, %inf, %s)\n");
  const std::string text = kOperands + kScores + seen + kMixed;
  CHECK(recognized(text) == flags);
  check_same(text);
}

TEST_CASE("a triangle that is computed from indices is a constant one") {
  const std::string indices =
      "%rows = iota() {shape=[4,1], axis=0, dtype=\"i64\"}\n"
      "%columns = iota() {shape=[1,4], axis=1, dtype=\"i64\"}\n"
      "%seen = greater_equal(%rows, %columns)\n";
  const std::string text = kOperands + kScores + indices + "%h = where(%seen, %s, %inf)\n" + kMixed;
  CHECK(recognized(text) == "attention(%q, %k, %v) {causal=1, scale=0.5, zero_empty=0}");
  check_same(text);
}

TEST_CASE("a condition below the scale") {
  const std::string text = kOperands + kSeen +
                           "%p = matmul(%q, %k) {transpose_b=1}\n%c = where(%seen, %p, %inf)\n"
                           "%h = mul(%c, %half)\n" +
                           kMixed;
  CHECK(recognized(text) == "attention(%q, %k, %v) {causal=1, scale=0.5, zero_empty=0}");
  check_same(text);
}

TEST_CASE("a constant mask that hides nothing goes") {
  const std::string text =
      kOperands + kScores + "constant %m: f32[1,1,4,4] = fill(0)\n%h = add(%s, %m)\n" + kMixed;
  CHECK(recognized(text) == "attention(%q, %k, %v) {causal=0, scale=0.5, zero_empty=0}");
}

TEST_CASE("masks from feeds stay masks") {
  const std::string additive =
      kOperands + kScores + "feed %m: f32[2,1,1,4]\n%h = add(%s, %m)\n" + kMixed;
  CHECK(recognized(additive) == "attention(%q, %k, %v, %m) {causal=0, scale=0.5, zero_empty=0}");
  check_same(additive, {{"m", {0, 1, -1e4, -2, 0, -3e38, 0, 0}}});
  check_same(additive, {{"m", {-3e38, -3e38, -3e38, -3e38, -1e4, -1e4, -1e4, -1e4}}});

  const std::string condition = kOperands + kScores +
                                "feed %m: bool[2,1,4]\n%m4 = reshape(%m) {shape=[2,1,1,4]}\n"
                                "%h = where(%m4, %s, %inf)\n" +
                                kMixed;
  CHECK_FALSE(recognized(condition).empty());
  check_same(condition, {{"m", {1, 0, 1, 1, 0, 0, 0, 1}}});

  const std::string both = kOperands + kScores + kTriangle +
                           "feed %f: f32[2,4,4]\n%f4 = reshape(%f) {shape=[2,1,4,4]}\n"
                           "%h1 = add(%f4, %s)\n%h = add(%h1, %m)\n" +
                           kMixed;
  CHECK(recognized(both) == "attention(%q, %k, %v, %f4) {causal=1, scale=0.5, zero_empty=0}");
  check_same(both, {{"f", std::vector<double>(32, 0.25)}});
}

TEST_CASE("a query that sees no key: NaN, and zeros where NaN is guarded against") {
  const std::string text = kOperands + kScores + "feed %m: f32[2,1,1,4]\n%h = add(%s, %m)\n";
  const std::vector<double> mask = {0, 0, 0, 0, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
  const auto outputs = [&](const std::string& end) {
    return values_of(recognize_attention(parse_graph(text + end)), {{"m", mask}}).at("o");
  };
  const Tensor plain = outputs(kMixed);
  CHECK_FALSE(std::isnan(plain.at(0)));
  CHECK(std::isnan(plain.at(40)));
  const Tensor guarded = outputs(
      "%y = softmax(%h) {axis=3}\n%n = is_nan(%y)\n%w = where(%n, %zero, %y)\n"
      "%o = matmul(%w, %v)\n" +
      kOutput);
  CHECK(guarded.at(0) == plain.at(0));
  CHECK(guarded.at(40) == 0);
}

TEST_CASE("query heads that share a key head") {
  const std::string text =
      "state parameter %q: f32[2,4,3,2] = uniform(-1.0, 1.0, seed 1)\n"
      "state parameter %k: f32[2,2,3,2] = uniform(-1.0, 1.0, seed 2)\n"
      "state parameter %v: f32[2,2,3,5] = uniform(-1.0, 1.0, seed 3)\n"
      "%k1 = reshape(%k) {shape=[2,2,1,3,2]}\n%k2 = broadcast(%k1) {shape=[2,2,2,3,2]}\n"
      "%k3 = reshape(%k2) {shape=[2,4,3,2]}\n%v1 = reshape(%v) {shape=[2,2,1,3,5]}\n"
      "%v2 = broadcast(%v1) {shape=[2,2,2,3,5]}\n%v3 = reshape(%v2) {shape=[2,4,3,5]}\n"
      "%h = matmul(%q, %k3) {transpose_b=1}\n%w = softmax(%h) {axis=3}\n%o = matmul(%w, %v3)\n" +
      kOutput;
  CHECK(recognized(text) == "attention(%q, %k, %v) {causal=0, scale=1.0, zero_empty=0}");
  check_same(text);
}

TEST_CASE("heads in five dimensions, whose keys the products repeat") {
  const std::string text =
      "state parameter %q: f32[2,2,2,3,2] = uniform(-1.0, 1.0, seed 1)\n"
      "state parameter %k: f32[2,2,1,3,2] = uniform(-1.0, 1.0, seed 2)\n"
      "%h = matmul(%q, %k) {transpose_b=1}\n%w = softmax(%h) {axis=4}\n%o = matmul(%w, %k)\n" +
      kOutput;
  CHECK(recognized(text) ==
        "attention(%reshape, %reshape_1, %reshape_2) "
        "{causal=0, scale=1.0, zero_empty=0}");
  check_same(text);
}

TEST_CASE("the operator attention gets its flags and shared key heads") {
  CHECK(recognized(kOperands + kTriangle +
                   "%o, %max, %sum = attention(%q, %k, %v, %m) {scale=0.5}\n" + kOutput) ==
        "attention(%q, %k, %v) {causal=1, scale=0.5, zero_empty=0}");
  const std::string shown = kOperands + kTriangle +
                            "%o, %max, %sum = attention(%q, %k, %v, %m) {scale=0.5}\n" + kOutput +
                            "output \"sum\" %sum\n";
  CHECK(recognized(shown) == "attention(%q, %k, %v, %m) {scale=0.5}");
}

TEST_CASE("left alone: scores or weights that others read") {
  const std::string text = kOperands + kScores + "%h = add(%s, %half)\n" + kMixed;
  CHECK_FALSE(recognized(text).empty());
  for (const char* value : {"p", "s", "h", "w"}) {
    CHECK(recognized(text + "output \"seen\" %" + value + "\n").empty());
  }
}

TEST_CASE("left alone: masks that are trained, and low scores under a mask that may hide all") {
  CHECK(recognized(kOperands + kScores +
                   "state parameter %m: f32[2,4,4] = zero\n%h = add(%s, %m)\n" + kMixed)
            .empty());
  CHECK(recognized(kOperands + kScores +
                   "feed %m: bool[4,4]\nconstant %low: f32[] = [-1e9]\n"
                   "%h = where(%m, %s, %low)\n" +
                   kMixed)
            .empty());
  CHECK(recognized(kOperands + kScores + kSeen +
                   "constant %low: f32[] = [-1e9]\nfeed %f: f32[2,1,1,4]\n"
                   "%c = where(%seen, %s, %low)\n%h = add(%c, %f)\n" +
                   kMixed)
            .empty());
  CHECK(recognized(kOperands + kScores + kSeen +
                   "constant %low: f32[] = [-10]\n%h = where(%seen, %s, %low)\n" + kMixed)
            .empty());
}

TEST_CASE("left alone: dropout of the weights, other axes, 16-bit types") {
  CHECK(recognized(kOperands + kScores +
                   "control %seed: i64[]\ncontrol %step: i64[]\n%y = softmax(%s) {axis=3}\n"
                   "%r = random_uniform(%seed, %step) {shape=[2,2,4,4], stream=1}\n"
                   "%kept = greater_equal(%r, %half)\n%w = where(%kept, %y, %zero)\n"
                   "%o = matmul(%w, %v)\n" +
                   kOutput)
            .empty());
  CHECK(
      recognized(kOperands + kScores + "%w = softmax(%s) {axis=2}\n%o = matmul(%w, %v)\n" + kOutput)
          .empty());
  CHECK(recognized("feed %q: f16[1,2,4,4]\n%h = matmul(%q, %q)\n%w = softmax(%h) {axis=3}\n"
                   "%o = matmul(%w, %q)\n" +
                   kOutput)
            .empty());
}
