#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Doubles x and adds the number of the iteration; stacks what it adds up.
std::string doubling_loop(const std::string& trips, const std::string& condition) {
  return R"(
    g (float[2] x) => (float[2] last, float[N,2] all) <int64 n = {)" +
         trips + "}, bool go = {" + condition + R"(}> {
      last, all = Loop (n, go, x) <body =
        body (int64 i, bool before, float[2] v) => (bool after, float[2] next, float[2] shown) {
          after = Identity (before)
          i_float = Cast <to = 1> (i)
          twice = Add (v, v)
          next = Add (twice, i_float)
          shown = Identity (next)
        }>
    })";
}

}  // namespace

TEST_CASE("a loop with a known trip count is unrolled") {
  const Values found = run(import_text(doubling_loop("3", "1")), {{"x", {1, 2}}});
  CHECK(found.at("last") == Reals{12, 20});
  CHECK(found.at("all") == Reals{2, 4, 5, 9, 12, 20});
}

TEST_CASE("a loop without iterations passes its values on and stacks nothing") {
  for (const auto& [trips, condition] : {std::pair("0", "1"), {"-2", "1"}, {"4", "0"}}) {
    const Graph graph = import_text(doubling_loop(trips, condition));
    const Values found = run(graph, {{"x", {1, 2}}});
    CHECK(found.at("last") == Reals{1, 2});
    CHECK(graph.shape(graph.outputs[1].value) == Shape{0, 2});
  }
}

TEST_CASE("a loop ends when its condition, which folds, becomes false") {
  const Graph graph = import_text(R"(
    g (float[1] x) => (float[1] y) <int64 none, bool go = {1}> {
      y = Loop ("", go, x) <body =
        body (int64 i, bool before, float[1] v) => (bool after, float[1] next) {
          bound = Constant <value = int64 {4}> ()
          after = Less (i, bound)
          next = Add (v, v)
        }>
    })");
  CHECK(run(graph, {{"x", {1}}}).at("y") == Reals{32});
}

TEST_CASE("carried values may change their shape and see the values around the loop") {
  const Graph graph = import_text(R"(
    g (float[1] x, float[1] w) => (float[N] y) <int64 n = {3}, bool go = {1}> {
      y = Loop (n, go, x) <body =
        body (int64 i, bool before, float[N] v) => (bool before, float[M] next) {
          next = Concat <axis = 0> (v, w)
        }>
    })");
  CHECK(run(graph, {{"x", {1}}, {"w", {7}}}).at("y") == Reals{1, 7, 7, 7});
}

TEST_CASE("a loop that data ends is refused by the name of the node") {
  const std::string error = import_error(R"(
    g (float[1] x, float[1] limit) => (float[1] y) <int64 n = {3}, bool go = {1}> {
      y = Loop (n, go, x) <body =
        body (int64 i, bool before, float[1] v) => (bool after, float[1] next) {
          next = Add (v, v)
          few = Less (next, limit)
          after = Squeeze (few)
        }>
    })");
  CHECK(has(error, "node \"y\" (Loop): its body computes the condition of iteration 1 from data"));
}

TEST_CASE("an operator in the body of a loop that is not supported is listed once") {
  const std::string error = import_error(R"(
    g (float[1] x) => (float[1] y) <int64 n = {3}, bool go = {1}> {
      y = Loop (n, go, x) <body =
        body (int64 i, bool before, float[1] v) => (bool before, float[1] next) {
          next = com.unknown.Strange (v)
        }>
    })");
  CHECK(has(error, "1 node has an operator that is not supported"));
  CHECK(has(error, "node \"y/next\" (Strange)"));
}

TEST_CASE("a node that fails in a body is reported in its iteration, once") {
  const std::string error = import_error(R"(
    g (float[2] x) => (float[2] y) <int64 n = {3}, bool go = {1}, int64[1] s = {5}> {
      y = Loop (n, go, x) <body =
        body (int64 i, bool before, float[2] v) => (bool before, float[2] next) {
          next = Reshape (v, s)
        }>
    })");
  CHECK(has(error, "node \"y/0/next\" (Reshape)"));
  CHECK_FALSE(has(error, "y/1/next"));
}

TEST_CASE("scans read forwards and backwards along any axis") {
  const Graph graph = import_text(R"(
    g (float[1] start, float[1,3] a, float[3,1] b) => (float[1] sum, float[1,3] sums, float[3,1] r) {
      sum, sums, r = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0],
                           scan_input_directions = [0, 1], scan_output_axes = [-1, 0],
                           scan_output_directions = [0, 1], body =
        body (float[1] s, float[1] p, float[1] q) => (float[1] t, float[1] u, float[1] d) {
          v = Add (s, p)
          t = Add (v, q)
          u = Identity (t)
          d = Sub (p, q)
        }> (start, a, b)
    })");
  const Values found = run(graph, {{"start", {100}}, {"a", {1, 2, 3}}, {"b", {10, 20, 30}}});
  CHECK(found.at("sum") == Reals{166});
  CHECK(found.at("sums") == Reals{131, 153, 166});
  CHECK(found.at("r") == Reals{-7, -18, -29});
}

TEST_CASE("scans of sequences of unequal lengths are refused") {
  const std::string error = import_error(R"(
    g (float[2] a, float[3] b) => (float[N] y) {
      y = Scan <num_scan_inputs = 2, body =
        body (float p, float q) => (float r) { r = Add (p, q) }> (a, b)
    })");
  CHECK(has(error, "its sequences have lengths 2 and 3, expected equal ones"));
}

TEST_CASE("an If whose condition folds takes its branch with the branch's own constants") {
  const auto branch = [](const std::string& x) {
    return output_of("g (float" + x + R"( x) => (float[N] y) <int64 one = {1}> {
      count = Size (x)
      single = Equal (count, one)
      y = If (single) <
        then_branch = yes () => (float[N] t) <float[1] c = {5}> { t = Add (x, c) },
        else_branch = no () => (float[N] e) { e = Neg (x) }>
    })",
                     {{"x", x == "[1]" ? Reals{1} : Reals{1, 2}}});
  };
  CHECK(branch("[1]") == Reals{6});
  CHECK(branch("[2]") == Reals{-1, -2});
}

TEST_CASE("weights outside a loop are trained by all of its iterations") {
  const Graph graph = import_text(R"(
    g (float[2] x) => (float loss) <float[2] w = {1, 2}, int64 n = {2}, bool go = {1}> {
      y = Loop (n, go, x) <body =
        body (int64 i, bool before, float[2] v) => (bool before, float[2] next) {
          next = Mul (v, w)
        }>
      loss = ReduceSum <keepdims = 0> (y)
    })",
                                  21, true);
  CHECK(graph.value(graph.find("w")).role == StateRole::kParameter);
}
