#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("parts of a tensor as a sequence") {
  const Graph graph = import_text(R"(
    g (float[5] x) => (float[N] last, float[M] joined, int64 count)
    <int64 two = {2}, int64 end = {-1}> {
      parts = SplitToSequence (x, two)
      last = SequenceAt (parts, end)
      shorter = SequenceErase (parts, two)
      longer = SequenceInsert (shorter, last, two)
      same = Identity (longer)
      joined = ConcatFromSequence <axis = 0> (same)
      count = SequenceLength (longer)
      check = Cast <to = 1> (count)
    })");
  const Values found = run(graph, {{"x", {1, 2, 3, 4, 5}}});
  CHECK(found.at("last") == Reals{5});
  CHECK(found.at("joined") == Reals{1, 2, 3, 4, 5});
}

TEST_CASE("single slices, with and without their dimension, and stacking") {
  const auto split = [](const std::string& keep, const std::string& concat) {
    return import_text("g (float[2,3] x) => (float[N] y) { s = SplitToSequence <axis = 1" + keep +
                       "> (x)\n y = ConcatFromSequence <" + concat + "> (s) }");
  };
  const Graph stacked = split(", keepdims = 0", "axis = 0, new_axis = 1");
  CHECK(stacked.shape(stacked.outputs[0].value) == Shape{3, 2});
  CHECK(run(stacked, {{"x", {1, 2, 3, 4, 5, 6}}}).at("y") == Reals{1, 4, 2, 5, 3, 6});
  const Graph joined = split("", "axis = -1");
  CHECK(joined.shape(joined.outputs[0].value) == Shape{2, 3});
}

TEST_CASE("more parts than a graph could hold are refused before they are listed") {
  CHECK(has(import_error("g (float[4000000000] x) => (float[N] y) { s = SplitToSequence (x)\n "
                         "y = ConcatFromSequence <axis = 0> (s) }"),
            "the number of parts: expected 0 to 1048576, found 4000000000"));
  CHECK(has(import_error("g (float[4000000000] x) => (float[N] y) <int64 two = {2}> { "
                         "s = SplitToSequence (x, two)\n y = ConcatFromSequence <axis = 0> (s) }"),
            "the number of parts: expected 0 to 1048576, found 2000000000"));
}

TEST_CASE("sizes of parts whose sum leaves 64 bits are refused") {
  CHECK(has(import_error("g (float[4] x) => (float[N] y) <int64[3] sizes = {9223372036854775807, "
                         "9223372036854775807, 6}> { s = SplitToSequence (x, sizes)\n "
                         "y = ConcatFromSequence <axis = 0> (s) }"),
            "do not add up to 4"));
}

TEST_CASE("a loop may collect a sequence") {
  const Graph graph = import_text(R"(
    g (float[1] x) => (float[N] y) <int64 n = {3}, bool go = {1}> {
      none = SequenceEmpty ()
      all, last = Loop (n, go, none, x) <body =
        body (int64 i, bool before, seq(float[1]) s, float[1] v)
          => (bool before, seq(float[1]) t, float[1] w) {
          w = Add (v, v)
          t = SequenceInsert (s, w)
        }>
      y = ConcatFromSequence <axis = 0> (all)
    })");
  CHECK(run(graph, {{"x", {1}}}).at("y") == Reals{2, 4, 8});
}

TEST_CASE("sequences where tensors belong, and the other way round") {
  CHECK(has(import_error("g (float[2] x) => (float[2] y) { s = SequenceConstruct (x, x)\n "
                         "y = Neg (s) }"),
            "node \"y\" (Neg): expected a tensor, found a sequence of 2"));
  CHECK(has(import_error("g (float[2] x) => (float[2] y) <int64 zero = {0}> { "
                         "y = SequenceAt (x, zero) }"),
            "expected a sequence, found a tensor"));
  CHECK(has(import_error("g (float[2] x) => (float[2] y) <int64 two = {2}> { "
                         "s = SequenceConstruct (x, x)\n y = SequenceAt (s, two) }"),
            "position 2 is out of range for 2 elements"));
}

TEST_CASE("optional values with an element are that element") {
  const Graph graph = import_text(R"(
    g (float[2] x) => (float[2] y, float[2] chosen) {
      whole = Optional (x)
      some = OptionalHasElement (whole)
      none = OptionalHasElement ("")
      y = OptionalGetElement (whole)
      chosen = Where (none, x, y)
      a = Cast <to = 1> (some)
    })");
  CHECK(run(graph, {{"x", {1, 2}}}).at("y") == Reals{1, 2});
  CHECK(has(import_error("g (float[2] x) => (float[2] y) { none = Optional <type = float[2]> () "
                         "y = OptionalGetElement (none) }"),
            "optional values without one are not supported"));
}
