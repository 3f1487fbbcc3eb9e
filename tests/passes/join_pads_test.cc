#include "passes/join_pads.h"

#include "operators_of.h"
#include "passes/eliminate_dead_nodes.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::string joined(const std::string& text) {
  const Graph graph = eliminate_dead_nodes(join_pads(parse_graph(text)));
  verify(graph, "join_pads");
  return operators_of(graph);
}

const std::string kParts =
    "feed %a: f32[2,3]\nfeed %b: f32[2,4]\nfeed %c: f32[2,5]\nconstant %z: f32[] = [0]\n"
    "%p = pad(%a, %z) {low=[0,4], high=[0,5]}\n%q = pad(%b, %z) {low=[0,0], high=[0,8]}\n";

}  // namespace

TEST_CASE("padded parts that fill an axis are a concatenation") {
  CHECK(joined(kParts + "%r = pad(%c, %z) {low=[0,7], high=[0,0]}\n%s = add(%r, %q)\n"
                        "%y = add(%s, %p)\noutput \"y\" %y") == "concat(b a c ) ");
}

TEST_CASE("sums with gaps or overlaps stay") {
  CHECK(joined(kParts + "%y = add(%p, %q)\noutput \"y\" %y") == "pad(a z ) pad(b z ) add(p q ) ");
  CHECK(joined(kParts + "%r = pad(%c, %z) {low=[0,6], high=[0,1]}\n%s = add(%r, %q)\n"
                        "%y = add(%s, %p)\noutput \"y\" %y") ==
        "pad(a z ) pad(b z ) pad(c z ) add(r q ) add(s p ) ");
}

TEST_CASE("other values than zero, several axes and other terms stay") {
  CHECK(joined("feed %a: f32[2]\nfeed %b: f32[1]\nconstant %z: f32[] = [1]\n"
               "%p = pad(%a, %z) {low=[0], high=[1]}\n%q = pad(%b, %z) {low=[2], high=[0]}\n"
               "%y = add(%p, %q)\noutput \"y\" %y") == "pad(a z ) pad(b z ) add(p q ) ");
  CHECK(joined("feed %a: f32[2,2]\nfeed %b: f32[1,1]\nconstant %z: f32[] = [0]\n"
               "%p = pad(%a, %z) {low=[0,0], high=[0,1]}\n"
               "%q = pad(%b, %z) {low=[1,2], high=[0,0]}\n%y = add(%p, %q)\noutput \"y\" %y") ==
        "pad(a z ) pad(b z ) add(p q ) ");
  CHECK(joined("feed %a: f32[2]\nfeed %b: f32[3]\nconstant %z: f32[] = [0]\n"
               "%p = pad(%a, %z) {low=[0], high=[1]}\n%y = add(%p, %b)\noutput \"y\" %y") ==
        "pad(a z ) add(p b ) ");
}
