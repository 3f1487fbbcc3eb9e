// Prices of nests on a GPU.
#include "passes/gpu/nest_time.h"

#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

double microseconds(const std::string& text) {
  const Graph graph = parse_graph(text);
  const std::vector<Group> groups = fuse(graph, {}, kHopperTarget);
  REQUIRE(groups.size() == 1);
  return gpu::estimate_nanoseconds(form_kernel(graph, groups[0], 0, kHopperTarget).nest) / 1000;
}

std::string function(const std::string& type, const std::string& op) {
  return "feed %x: " + type + "[32768,4096]\n%y = " + op + "(%x)\noutput \"y\" %y";
}

}  // namespace

TEST_CASE("a cheap function costs its bytes") {
  const double bytes = 32768.0 * 4096 * 8;
  CHECK(microseconds(function("f32", "neg")) == Approx(2 + bytes / 4.2e6).epsilon(0.05));
  CHECK(microseconds(function("bf16", "neg")) < 0.6 * microseconds(function("f32", "neg")));
}

TEST_CASE("an expensive function costs its instructions") {
  CHECK(microseconds(function("f32", "sin")) > 1.5 * microseconds(function("f32", "neg")));
}

TEST_CASE("rows in registers are read once, others again from the caches") {
  auto softmax = [](const std::string& shape) {
    return microseconds("feed %x: f32" + shape +
                        "\n%s = reduce_sum(%x) {axes=[1]}\n%y = sub(%x, %s)\noutput \"y\" %y");
  };
  CHECK(softmax("[65536,1024]") == Approx(2 + 65536.0 * 1024 * 8 / 4.2e6).epsilon(0.1));
  CHECK(softmax("[1024,65536]") > 1.1 * softmax("[65536,1024]"));
}

TEST_CASE("few threads do not keep memory busy") {
  CHECK(microseconds("feed %x: f32[1048576]\n%y = reduce_sum(%x) {axes=[0]}\noutput \"y\" %y") >
        10 * microseconds("feed %x: f32[1024,1024]\n%y = reduce_sum(%x) {axes=[1]}\n"
                          "output \"y\" %y"));
}
