// Which functions may be approximate.
#include "passes/relax_functions.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

// The names of the marked values.
std::string marked(const std::string& text) {
  const Graph graph = relax_functions(parse_graph(text));
  verify(graph, "relax-functions");
  std::string names;
  for (const Node& node : graph.nodes) {
    if (node.attributes.integer_or("approximate", 0) == 0) continue;
    names += (names.empty() ? "" : " ") + graph.value(node.results[0]).name;
  }
  return names;
}

const std::string kNarrow = "feed %h: bf16[4,8]\n%x = cast(%h) {to=\"f32\"}\n";

}  // namespace

TEST_CASE("functions of 16-bit floats, and of what is computed from them, are marked") {
  CHECK(marked(kNarrow + "%e = exp(%x)\n%s = reduce_sum(%e) {axes=[1]}\n%p = div(%e, %s)\n"
                         "%l = log(%s)\noutput \"p\" %p\noutput \"l\" %l") == "e p");
  CHECK(marked("feed %h: f16[4]\n%y = tanh(%h)\noutput \"y\" %y") == "y");
  CHECK(marked(kNarrow + "feed %b: f32[8]\n%a = add(%b, %x)\n%y = sigmoid(%a)\n"
                         "output \"y\" %y") == "y");
}

TEST_CASE("functions of f32 and f64 are not") {
  CHECK(marked("feed %x: f32[4]\n%y = exp(%x)\n%z = cast(%y) {to=\"bf16\"}\noutput \"z\" %z") ==
        "");
  CHECK(marked(kNarrow + "%w = cast(%x) {to=\"f64\"}\n%y = exp(%w)\noutput \"y\" %y") == "");
}

TEST_CASE("quotients that are rounded to integers or compared stay exact") {
  const std::string quotient = kNarrow + "feed %d: f32[8]\n%q = div(%x, %d)\n";
  CHECK(marked(quotient + "%y = floor(%q)\noutput \"y\" %y") == "");
  CHECK(marked(quotient + "%y = cast(%q) {to=\"i32\"}\noutput \"y\" %y") == "");
  CHECK(marked(quotient + "%y = less(%q, %d)\noutput \"y\" %y") == "");
  CHECK(marked(quotient + "%y = cast(%q) {to=\"bf16\"}\noutput \"y\" %y") == "q");
}

TEST_CASE("the update phase stays exact") {
  CHECK(marked("feed %h: bf16[8]\nstate parameter %w: f32[8] = fill(1)\n"
               "%x = cast(%h) {to=\"f32\"} @backward\n%r = sqrt(%x) @backward\n"
               "%q = sqrt(%r) @update\n%n = sub(%w, %q) @update\nupdate %w = %n") == "r");
}
