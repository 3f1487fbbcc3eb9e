// What shares a kernel on a GPU.
#include <algorithm>

#include "autodiff/optimizer.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/fold_constants.h"
#include "passes/fuse.h"
#include "passes/recompute_elementwise.h"
#include "passes/relax_functions.h"
#include "passes/simplify.h"
#include "passes/split_reductions.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

constexpr int64_t kLargeElements = 1 << 18;

// As the pipeline does it.
Graph optimize(Graph graph) {
  graph = eliminate_common_subexpressions(simplify(fold_constants(graph)));
  graph = eliminate_dead_nodes(recompute_elementwise(graph, kHopperTarget));
  return relax_functions(split_reductions(graph, kGpuReductionSplit));
}

bool has_large(const Graph& graph, const std::vector<ValueId>& values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId value) {
    return element_count(graph.shape(value)) >= kLargeElements;
  });
}

// Kernels that read or write a large tensor.
size_t kernels(const std::string& text) {
  const Graph graph = optimize(parse_graph(text));
  const std::vector<Group> groups = fuse(graph, {}, kHopperTarget);
  return static_cast<size_t>(std::count_if(groups.begin(), groups.end(), [&](const Group& group) {
    return has_code(group) && (has_large(graph, group.inputs) || has_large(graph, group.outputs));
  }));
}

const std::string kRows = "[32768,768]";

std::string norm(const std::string& from) {
  return "%s = reduce_sum(" + from +
         ") {axes=[1]}\nconstant %i: f32[] = [0.001302]\n%m = mul(%s, %i)\n%c = sub(" + from +
         ", %m)\n%q = mul(%c, %c)\n%v = reduce_sum(%q) {axes=[1]}\n%w = mul(%v, %i)\n"
         "constant %eps: f32[] = [1e-5]\n%a = add(%w, %eps)\n%r = rsqrt(%a)\n%n = mul(%c, %r)\n";
}

}  // namespace

TEST_CASE("a layer norm is one kernel, with the residual addition before it") {
  CHECK(kernels("feed %h: bf16" + kRows + "\nfeed %g: f32[768]\n%x = cast(%h) {to=\"f32\"}\n" +
                norm("%x") +
                "%k = mul(%n, %g)\n%y = cast(%k) {to=\"bf16\"}\noutput \"y\" %y\noutput \"m\" %m\n"
                "output \"r\" %r") == 1);
  CHECK(kernels("feed %o: bf16" + kRows + "\nfeed %p: bf16" + kRows +
                "\n%h = add(%o, %p)\n%x = cast(%h) {to=\"f32\"}\n" + norm("%x") +
                "%y = cast(%n) {to=\"bf16\"}\noutput \"y\" %y\noutput \"h\" %h") == 1);
}

TEST_CASE("the gradient of a layer norm is one kernel of rows and one of columns") {
  CHECK(kernels("feed %h: bf16" + kRows + "\nfeed %e: bf16" + kRows +
                "\nfeed %g: f32[768]\nfeed %m: f32[32768,1]\nfeed %r: f32[32768,1]\n"
                "%x = cast(%h) {to=\"f32\"}\n%c = sub(%x, %m)\n%n = mul(%c, %r)\n"
                "%d = cast(%e) {to=\"f32\"}\n%a = mul(%d, %g)\n%p = mul(%a, %n)\n"
                "%s = reduce_sum(%a) {axes=[1]}\n%t = reduce_sum(%p) {axes=[1]}\n"
                "%w = mul(%n, %t)\n%j = sub(%a, %s)\n%k = sub(%j, %w)\n%l = mul(%k, %r)\n"
                "%y = cast(%l) {to=\"bf16\"}\noutput \"y\" %y\n%dn = mul(%d, %n)\n"
                "%dg = reduce_sum(%dn) {axes=[0]}\n%db = reduce_sum(%d) {axes=[0]}\n"
                "output \"dg\" %dg\noutput \"db\" %db") == 2);
}

TEST_CASE("a softmax is one kernel, of short and of long rows") {
  for (const std::string columns : {"1024", "50304"}) {
    CHECK(kernels("feed %h: bf16[4096," + columns + "]\n%x = cast(%h) {to=\"f32\"}\n" +
                  "%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n%e = exp(%d)\n"
                  "%s = reduce_sum(%e) {axes=[1]}\n%p = div(%e, %s)\n"
                  "%y = cast(%p) {to=\"bf16\"}\noutput \"y\" %y") == 1);
  }
}

TEST_CASE("readers of one large value share a kernel") {
  CHECK(kernels("feed %x: f32[4096,1024]\n%a = exp(%x)\n%b = neg(%x)\noutput \"a\" %a\n"
                "output \"b\" %b") == 1);
}

TEST_CASE("rows and columns do not meet in a kernel") {
  CHECK(kernels("feed %x: f32[4096,1024]\n%a = reduce_sum(%x) {axes=[0]}\n"
                "%b = reduce_sum(%x) {axes=[1]}\noutput \"a\" %a\noutput \"b\" %b") == 2);
}

TEST_CASE("an update is one kernel per parameter, and only that stores anything of it") {
  const auto kind = GENERATE(OptimizerOptions::Kind::kSgd, OptimizerOptions::Kind::kAdamW);
  OptimizerOptions options;
  options.kind = kind;
  options.momentum = kind == OptimizerOptions::Kind::kSgd ? 0.9 : 0;
  options.weight_decay = 0.1;
  options.clip_norm = GENERATE(0.0, 1.0);
  Diagnostics diagnostics;
  const Graph graph = optimize(add_optimizer(
      differentiate(parse_graph("feed %x: f32[64,512]\nfeed %y: f32[64,768]\n"
                                "state parameter %w: f32[512,640] = zero\n"
                                "state parameter %v: f32[640,768] = zero\n"
                                "%h = matmul(%x, %w)\n%p = matmul(%h, %v)\n%q = mul(%p, %y)\n"
                                "%l = reduce_sum(%q) {axes=[0,1]}\noutput \"loss\" %l"),
                    diagnostics),
      options));
  size_t updates = 0;
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    if (group.phase != Phase::kUpdate || !has_large(graph, group.outputs)) continue;
    ++updates;
    const bool knows_norm =
        std::any_of(group.inputs.begin(), group.inputs.end(), [&](ValueId value) {
          return value == graph.find("finite") || value == graph.find("grad_norm");
        });
    CHECK(knows_norm);
  }
  CHECK(updates == 2);
}
