// Movements around attention from the graph to kernels.
#include "passes/sink_movements.h"

#include <cmath>

#include "ir/interpret.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

constexpr const char* kStages = R"(
graph "g" rows 2 micro_batches 1
feed %x: bf16[2,80,192]
feed %g: bf16[2,80,64]
%q3 = slice(%x) {starts=[0,0,0], sizes=[2,80,64], steps=[1,1,1]}
%k3 = slice(%x) {starts=[0,0,64], sizes=[2,80,64], steps=[1,1,1]}
%v3 = slice(%x) {starts=[0,0,128], sizes=[2,80,64], steps=[1,1,1]}
%q4 = reshape(%q3) {shape=[2,80,4,16]}
%k4 = reshape(%k3) {shape=[2,80,4,16]}
%v4 = reshape(%v3) {shape=[2,80,4,16]}
%q = transpose(%q4) {perm=[0,2,1,3]}
%k = transpose(%k4) {perm=[0,2,1,3]}
%v = transpose(%v4) {perm=[0,2,1,3]}
%o, %m, %s = attention(%q, %k, %v) {scale=0.25, causal=1}
%o4 = transpose(%o) {perm=[0,2,1,3]}
%y = reshape(%o4) {shape=[2,80,64]}
%g4 = reshape(%g) {shape=[2,80,4,16]} @backward
%do = transpose(%g4) {perm=[0,2,1,3]} @backward
%dq, %t = attention_query_grad(%q, %k, %v, %o, %m, %s, %do) {scale=0.25, causal=1} @backward
%dk, %dv = attention_key_grad(%q, %k, %v, %do, %t) {scale=0.25, causal=1} @backward
%dq4 = transpose(%dq) {perm=[0,2,1,3]} @backward
%dk4 = transpose(%dk) {perm=[0,2,1,3]} @backward
%dv4 = transpose(%dv) {perm=[0,2,1,3]} @backward
%dq3 = reshape(%dq4) {shape=[2,80,64]} @backward
%dk3 = reshape(%dk4) {shape=[2,80,64]} @backward
%dv3 = reshape(%dv4) {shape=[2,80,64]} @backward
%dx = concat(%dq3, %dk3, %dv3) {axis=2} @backward
output "y" %y
output "dx" %dx
)";

std::string kernels_of(const Graph& graph, const KernelTarget& target) {
  return to_text(graph, fuse(graph, {}, target));
}

std::vector<double> pattern(int64_t count, double phase) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) + phase);
  return values;
}

std::vector<KernelSpec> specs_of(const Graph& graph) {
  std::vector<KernelSpec> specs;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    if (has_code(group)) specs.push_back(form_kernel(graph, group, 0, kHopperTarget));
  }
  return specs;
}

}  // namespace

TEST_CASE("kernels of attention read and write packed tensors, without movements between") {
  const Graph graph = sink_movements(parse_graph(kStages), kHopperTarget);
  verify(graph, "sink_movements");
  const std::string reads =
      "slice reshape transpose slice reshape transpose slice reshape transpose ";
  CHECK(kernels_of(graph, kHopperTarget) ==
        "anchor forward: " + reads + "attention transpose reshape (x) -> (m, s, y)\n" +
            "anchor backward: " + reads +
            "reshape transpose reshape transpose attention_query_grad transpose reshape place "
            "(x, y, g, m, s) -> (t, place)\n"
            "anchor backward: " +
            reads +
            "reshape transpose attention_key_grad transpose transpose reshape reshape place place "
            "(x, g, t, place) -> (dx)\n");
}

TEST_CASE("sinking movements changes no value") {
  const Graph before = parse_graph(kStages);
  const Graph after = sink_movements(before, kHopperTarget);
  Interpreter expected(before, Precision::kFloat64), found(after, Precision::kFloat64);
  for (Interpreter* interpreter : {&expected, &found}) {
    interpreter->set("x", pattern(2 * 80 * 192, 0));
    interpreter->set("g", pattern(2 * 80 * 64, 1));
    interpreter->run();
  }
  for (const char* name : {"y", "dx"}) {
    CHECK(found.output(name).reals == expected.output(name).reals);
  }
}

TEST_CASE("layouts say where heads lie in the packed tensors") {
  const std::vector<KernelSpec> specs =
      specs_of(sink_movements(parse_graph(kStages), kHopperTarget));
  REQUIRE(specs.size() == 3);
  using Sizes = std::vector<int64_t>;
  const KernelSpec& forward = specs[0];
  CHECK(forward.operand_layouts[1].offset == 64);
  CHECK(forward.operand_layouts[1].strides == Sizes{80 * 192, 16, 192, 1});
  CHECK(forward.result_layouts[0].strides == Sizes{80 * 64, 16, 64, 1});
  const TensorMap& keys = forward.launch.tensor_maps[1];
  CHECK(keys.argument == forward.operand_arguments[1]);
  CHECK(keys.offset == 128);
  CHECK(keys.sizes == Sizes{16, 80, 4, 2});
  CHECK(keys.strides == Sizes{384, 32, 80 * 384});
  // Both halves write one tensor: the first as a new one, the second into it.
  const KernelSpec& queries = specs[1];
  const auto of_dq = static_cast<size_t>(queries.result_arguments[0]);
  CHECK(queries.arguments[of_dq].mode == AccessMode::kWrite);
  CHECK(queries.result_layouts[0].strides == Sizes{80 * 192, 16, 192, 1});
  const KernelSpec& of_keys = specs[2];
  const auto of_dk = static_cast<size_t>(of_keys.result_arguments[0]);
  CHECK(of_keys.result_arguments[1] == of_keys.result_arguments[0]);
  CHECK(of_keys.arguments[of_dk].mode == AccessMode::kUpdate);
  CHECK(of_keys.result_layouts[0].offset == 64);
  CHECK(of_keys.result_layouts[1].offset == 128);
}

TEST_CASE("a product before attention does not store its heads apart") {
  const Graph graph = sink_movements(parse_graph(R"(
feed %x: bf16[160,32]
feed %w: bf16[32,64]
feed %k: bf16[2,4,80,16]
%p = matmul(%x, %w)
%r = reshape(%p) {shape=[2,80,4,16]}
%q = transpose(%r) {perm=[0,2,1,3]}
%o, %m, %s = attention(%q, %k, %k) {scale=0.25}
output "o" %o
)"),
                                     kHopperTarget);
  CHECK(kernels_of(graph, kHopperTarget) ==
        "anchor forward: matmul (x, w) -> (p)\n"
        "anchor forward: reshape transpose attention (p, k) -> (o, m, s)\n");
}

TEST_CASE("targets without strided kernels keep their movements") {
  const Graph graph = parse_graph(kStages);
  CHECK(to_text(sink_movements(graph, kAmpereTarget)) == to_text(graph));
}

TEST_CASE("rows that are not whole are copied first") {
  // k is stored transposed, so the elements of a head are no neighbours.
  const Graph graph = sink_movements(parse_graph(R"(
feed %q: bf16[2,4,80,16]
feed %kt: bf16[2,4,16,80]
%k = transpose(%kt) {perm=[0,1,3,2]}
%o, %m, %s = attention(%q, %k, %q) {scale=0.25}
output "o" %o
)"),
                                     kHopperTarget);
  CHECK(kernels_of(graph, kHopperTarget) ==
        "loop forward: transpose (kt) -> (k)\nanchor forward: attention (q, k) -> (o, m, s)\n");
}

TEST_CASE("a value that others read too is stored") {
  const Graph graph = sink_movements(parse_graph(R"(
feed %q: bf16[2,4,80,16]
%o, %m, %s = attention(%q, %q, %q) {scale=0.25}
%t = transpose(%o) {perm=[0,2,1,3]}
%n = neg(%o)
output "t" %t
output "n" %n
)"),
                                     kHopperTarget);
  CHECK(kernels_of(graph, kHopperTarget).find("anchor forward: attention (q) -> (o, m, s)\n") == 0);
}
