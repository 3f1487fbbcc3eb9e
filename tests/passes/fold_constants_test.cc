#include "passes/fold_constants.h"

#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::string checked_text(const Graph& graph) {
  verify(graph, "the pass");
  const std::string text = to_text(graph);
  return text.substr(text.find('\n') + 1);
}

std::string folded(const std::string& text) {
  return checked_text(eliminate_dead_nodes(fold_constants(parse_graph(text))));
}

std::string merged(const std::string& text) {
  return checked_text(eliminate_dead_nodes(eliminate_common_subexpressions(parse_graph(text))));
}

std::string alive(const std::string& text) {
  return checked_text(eliminate_dead_nodes(parse_graph(text)));
}

}  // namespace

TEST_CASE("shape arithmetic folds to one constant") {
  CHECK(folded(R"(feed %x: f32[6]
constant %a: i64[2] = [2, 3]
constant %i: i64[1] = [-1]
%g = gather(%a, %i) {axis=0}
%m = mul(%g, %g)
%f = cast(%m) {to="f32"}
%y = add(%x, %f)
output "y" %y
)") == R"(feed %x: f32[6]
constant %f: f32[1] = [9]
%y: f32[6] = add(%x, %f) #4
output "y" %y
)");
}

TEST_CASE("casts of NaN and out-of-range numbers fold by the documented rule") {
  CHECK(folded(R"(constant %c: f32[5] = [300, nan, inf, -inf, -0.5]
%b = cast(%c) {to="bool"}
%i = cast(%c) {to="i8"}
output "b" %b
output "i" %i
)") == R"(constant %b: bool[5] = [1, 1, 1, 1, 1]
constant %i: i8[5] = [127, 0, 127, -128, 0]
output "b" %b
output "i" %i
)");
}

TEST_CASE("values without elements are constants, whatever they are made from") {
  CHECK(folded(R"(feed %x: f32[6]
state parameter %w: f32[0,6] = zero
%y = mul(%w, %x)
%t = transpose(%y) {perm=[1,0]}
%s = reduce_sum(%t) {axes=[1]}
%z = add(%x, %s)
output "y" %y
output "z" %z
)") == R"(feed %x: f32[6]
state parameter %w: f32[0,6] = zero
constant %y: f32[0,6] = []
constant %s: f32[6,1] = [0, 0, 0, 0, 0, 0]
%z: f32[6,6] = add(%x, %s) #4
output "y" %y
output "z" %z
)");
}

TEST_CASE("large iotas and broadcasts are computed, small ones fold") {
  const std::string large = R"(constant %c: f32[] = [1]
%b: f32[4097] = broadcast(%c) {shape=[4097]} #1
%i: i64[5000] = iota() {axis=0, dtype="i64", shape=[5000]} #2
output "b" %b
output "i" %i
)";
  CHECK(folded(large) == large);
  CHECK(folded("%i = iota() {axis=0, dtype=\"i64\", shape=[3]}\noutput \"i\" %i\n") ==
        "constant %i: i64[3] = [0, 1, 2]\noutput \"i\" %i\n");
}

TEST_CASE("an index out of range is left to the program") {
  const std::string text = R"(constant %a: i64[2] = [2, 3]
constant %i: i64[1] = [2]
%g: i64[1] = gather(%a, %i) {axis=0} #1
output "g" %g
)";
  CHECK(folded(text) == text);
}

TEST_CASE("random numbers and accumulation never fold") {
  const std::string text = R"(state accumulator %s: f32[] = zero
constant %seed: i64[] = [1]
constant %one: f32[] = [1]
%r: f32[2] = random_uniform(%seed, %seed) {shape=[2], stream=1} #1
%a: f32[] = accumulate(%s, %one) #2
output "r" %r
output "a" %a
)";
  CHECK(folded(text) == text);
}

TEST_CASE("all results of a node fold together") {
  CHECK(folded("constant %c: f32[3] = [5, 9, 7]\n%v, %i = top_k(%c) {axis=0, k=2}\n"
               "output \"v\" %v\noutput \"i\" %i\n") ==
        "constant %v: f32[2] = [9, 7]\nconstant %i: i64[2] = [1, 2]\n"
        "output \"v\" %v\noutput \"i\" %i\n");
}

TEST_CASE("dead nodes, constants, controls, moments and accumulators go; other leaves stay") {
  CHECK(alive(R"(feed %x: f32[2]
feed %unused: f32[2]
state parameter %p: f32[] = zero
state frozen %f: f32[] = zero
state statistic %s: f32[] = zero
state moment %m: f32[] = zero
state moment %updated: f32[] = zero
state accumulator %g: f32[] = zero
control %learning_rate: f32[]
constant %c: f32[] = [1]
constant %k: f32[] = [2]
%d = add(%x, %c)
%e = mul(%d, %c)
%y = mul(%x, %k)
%u = add(%updated, %updated) @update
output "y" %y
update %updated = %u
)") == R"(feed %x: f32[2]
feed %unused: f32[2]
state parameter %p: f32[] = zero
state frozen %f: f32[] = zero
state statistic %s: f32[] = zero
state moment %updated: f32[] = zero
constant %k: f32[] = [2]
%y: f32[2] = mul(%x, %k) #3
%u: f32[] = add(%updated, %updated) @update #4
output "y" %y
update %updated = %u
)");
}

TEST_CASE("an accumulator whose total reaches an update stays") {
  const std::string text = R"(feed %x: f32[]
state parameter %p: f32[] = zero
state accumulator %g: f32[] = zero
%t: f32[] = accumulate(%g, %x) @backward #1
%n: f32[] = sub(%p, %t) @update #2
update %p = %n
)";
  CHECK(alive(text) == text);
}

TEST_CASE("equal nodes are computed once and keep all sources") {
  CHECK(merged(R"(feed %x: f32[2]
constant %c: f32[] = [1]
constant %d: f32[] = [1]
constant %z: f32[] = [0]
constant %n: f32[] = [-0]
%a = add(%x, %c) #1 "first"
%b = add(%x, %d) #2 "second"
%e = mul(%a, %b) #3
%f = sub(%x, %z) #4
%g = sub(%x, %n) #5
output "e" %e
output "f" %f
output "g" %g
)") == R"(feed %x: f32[2]
constant %c: f32[] = [1]
constant %z: f32[] = [0]
constant %n: f32[] = [-0]
%a: f32[2] = add(%x, %c) #1 "first" "second"
%e: f32[2] = mul(%a, %a) #3
%f: f32[2] = sub(%x, %z) #4
%g: f32[2] = sub(%x, %n) #5
output "e" %e
output "f" %f
output "g" %g
)");
}

TEST_CASE("other attributes, other phases and random numbers are not equal") {
  const std::string text = R"(feed %x: f32[2,2]
constant %s: i64[] = [1]
%a: f32[2,1] = reduce_sum(%x) {axes=[1]} #1
%b: f32[1,2] = reduce_sum(%x) {axes=[0]} #2
%c: f32[1,2] = reduce_sum(%x) {axes=[0]} @backward #3
%r: f32[2] = random_normal(%s, %s) {shape=[2], stream=1} #4
%q: f32[2] = random_normal(%s, %s) {shape=[2], stream=1} #5
output "a" %a
output "b" %b
output "c" %c
output "r" %r
output "q" %q
)";
  CHECK(merged(text) == text);
}
