// Sums of exponentials beside the maximum that they are relative to.
#include "passes/gpu/online_softmax.h"

#include "passes/fuse.h"
#include "passes/group_nest.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

LoopNest nest_of(const std::string& columns, const std::string& lines,
                 const KernelTarget& target = kHopperTarget) {
  const Graph graph =
      parse_graph("feed %x: f32[4096," + columns + "]\n%m = reduce_max(%x) {axes=[1]}\n" + lines);
  const std::vector<Group> groups = fuse(graph, {}, target);
  REQUIRE(groups.size() == 1);
  return *group_nest(graph, groups[0], target);
}

const std::string kSum =
    "%d = sub(%x, %m)\n%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\noutput \"s\" %s\n";

}  // namespace

TEST_CASE("maximum and sum of a long row take one sweep") {
  const LoopNest nest = nest_of("50304", kSum);
  CHECK(nest.sweeps == 1);
  CHECK_THAT(to_text(nest), Catch::Matchers::ContainsSubstring("reduce_sum exp of difference"));
}

TEST_CASE("what is computed from the sum takes a second one") {
  CHECK(nest_of("50304", kSum + "%y = div(%e, %s)\noutput \"y\" %y").sweeps == 2);
}

TEST_CASE("rows that stay in registers, and those of a CPU, keep their sweeps") {
  CHECK(nest_of("1024", kSum).sweeps == 2);
  CHECK(nest_of("50304", kSum, kCpuTarget).sweeps == 2);
}

TEST_CASE("other sums keep their order") {
  CHECK(nest_of("50304",
                "%d = sub(%m, %x)\n%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\n"
                "output \"s\" %s")
            .sweeps == 2);
  CHECK(nest_of("50304",
                "%n = neg(%x)\n%d = sub(%n, %m)\n%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\n"
                "output \"s\" %s")
            .sweeps == 2);
}
