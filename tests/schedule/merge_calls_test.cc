// Plans for GPUs in which one kernel does the same to many tensors.
#include <algorithm>
#include <map>

#include "plan_of.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

const std::vector<int64_t> kSizes = {4096, 768, 100, 3, 5000, 768};

std::string numbered(const std::string& text, size_t number) {
  std::string result;
  for (const char c : text) result += c == '#' ? std::to_string(number) : std::string(1, c);
  return result;
}

// Parameters whose gradients have one norm, by which the update divides.
std::string model(const std::vector<int64_t>& sizes) {
  std::string leaves =
      "graph \"many\" rows 4 micro_batches 1\nfeed %x: f32[4,8]\n"
      "control %learning_rate: f32[]\n";
  std::string nodes = "%loss = reduce_sum(%x) {axes=[0,1]}\n";
  std::string norm;
  std::string update;
  std::string tail = "output \"loss\" %loss\noutput \"norm\" %norm\n";
  for (size_t i = 0; i < sizes.size(); ++i) {
    leaves += numbered("state parameter %w#: f32[", i) + std::to_string(sizes[i]) + "] = fill(1)\n";
    nodes += numbered("%g# = tanh(%w#) @backward\n", i);
    norm += numbered("%q# = mul(%g#, %g#) @update\n%s# = reduce_sum(%q#) {axes=[0]} @update\n", i);
    if (i > 0) {
      const std::string before = i == 1 ? "%s0" : "%t" + std::to_string(i - 1);
      norm += numbered("%t# = add(" + before + ", %s#) @update\n", i);
    }
    update += numbered(
        "%m# = mul(%g#, %learning_rate) @update\n%c# = div(%m#, %norm) @update\n"
        "%n# = sub(%w#, %c#) @update\n",
        i);
    tail += numbered("update %w# = %n#\n", i);
  }
  norm += numbered("%norm = sqrt(%t#) @update\n", sizes.size() - 1);
  return leaves + nodes + norm + update + tail;
}

plan::Plan gpu_plan_of(const std::string& text, bool fused) {
  const Graph graph = parse_graph(text);
  PlanInput input;
  input.train.kernels = kernelize(graph, fused, 0, kHopperTarget);
  input.train.placement = place_on_one(input.train.kernels);
  WeightsBlob weights;
  plan::Plan plan = build_plan(input, weights).plan;
  place_apart(plan);
  CHECK(fault_texts(plan) == "");
  return plan;
}

const plan::Kernel& kernel_of(const plan::Plan& plan, const plan::Call& call) {
  return *std::find_if(plan.kernels.begin(), plan.kernels.end(),
                       [&](const plan::Kernel& kernel) { return kernel.symbol == call.kernel; });
}

// How many of the buffers that the call writes have names that begin so.
int64_t written(const plan::Plan& plan, const plan::Call& call, const std::string& name) {
  const plan::Kernel& kernel = kernel_of(plan, call);
  int64_t count = 0;
  for (size_t a = 0; a < call.arguments.size(); ++a) {
    count += kernel.access[a] != "read" && call.arguments[a].buffer.rfind(name, 0) == 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("a norm and an update of all parameters are a few kernels") {
  const plan::Plan plan = gpu_plan_of(model(kSizes), true);
  const std::vector<plan::Call>& calls = find_task(plan, "update")->calls;
  // Squares, in blocks as large as the largest gradient needs; their sum and root; the update.
  REQUIRE(calls.size() == 3);
  CHECK(written(plan, calls[0], "s") == 6);
  CHECK(kernel_of(plan, calls[0]).launch.threads == 512);
  CHECK_FALSE(kernel_of(plan, calls[1]).launch.indirect);
  CHECK(kernel_of(plan, calls[2]).launch.indirect);
  CHECK(written(plan, calls[2], "w") == 6);
}

TEST_CASE("a merged kernel reads and writes what its calls did, and costs as much") {
  const auto totals = [](const std::vector<int64_t>& sizes) {
    const plan::Plan plan = gpu_plan_of(model(sizes), true);
    std::map<std::string, int64_t> uses;
    int64_t flops = 0;
    int64_t blocks = 0;
    for (const plan::Call& call : find_task(plan, "update")->calls) {
      flops += kernel_of(plan, call).flops;
      blocks += kernel_of(plan, call).blocks;
      for (const plan::Argument& argument : call.arguments) ++uses[argument.buffer];
    }
    return std::tuple(uses["w0"], flops, blocks);
  };
  const auto [uses, flops, blocks] = totals({4096, 4096});
  CHECK(uses == 2);  // read, and written in its place
  // Squares and their sums, a sum and a root, and three operators of an update.
  CHECK(flops == 2 * 2 * 4096 + 2 + 2 * 3 * 4096);
  CHECK(blocks == 2 + 1 + 2 * 4);
}

TEST_CASE("casts of weights are one kernel before the products that read them") {
  std::string text = "graph \"casts\" rows 8 micro_batches 1\nfeed %x: bf16[8,64]\n";
  std::string nodes;
  for (size_t i = 0; i < 3; ++i) {
    text += numbered("state parameter %w#: f32[64,64] = fill(1)\n", i);
    nodes += numbered("%c# = cast(%w#) {to=\"bf16\"}\n%y# = matmul(" +
                          (i == 0 ? "%x" : numbered("%y#", i - 1)) + ", %c#)\n",
                      i);
  }
  // What the backward phase reads lives on, so that nothing is gained by casting later.
  const std::string back =
      "%f = cast(%y2) {to=\"f32\"}\n%loss = reduce_sum(%f) {axes=[0,1]}\n"
      "%d2 = matmul(%y2, %c2) {transpose_b=1} @backward\n"
      "%d1 = matmul(%d2, %c1) {transpose_b=1} @backward\n"
      "%d0 = matmul(%d1, %c0) {transpose_b=1} @backward\n"
      "output \"loss\" %loss\noutput \"d\" %d0\n";
  const plan::Plan plan = gpu_plan_of(text + nodes + back, true);
  const std::vector<plan::Call>& calls = find_task(plan, "forward")->calls;
  CHECK(written(plan, calls[0], "c") == 3);
}

TEST_CASE("kernels stay apart where their temporaries would raise the peak") {
  std::string text = "graph \"temporaries\" rows 4 micro_batches 1\nfeed %x: f32[4,8]\n";
  std::string nodes = "%loss = reduce_sum(%x) {axes=[0,1]}\n";
  std::string tail = "output \"loss\" %loss\n";
  for (size_t i = 0; i < 3; ++i) {
    text += numbered("state parameter %w#: f32[10000] = fill(1)\n", i);
    nodes += numbered("%t# = exp(%w#) @update\n%n# = sub(%w#, %t#) @update\n", i);
    tail += numbered("update %w# = %n#\n", i);
  }
  CHECK(find_task(gpu_plan_of(text + nodes + tail, false), "update")->calls.size() == 6);
  CHECK(find_task(gpu_plan_of(text + nodes + tail, true), "update")->calls.size() == 1);
}

TEST_CASE("kernels stay apart where one reads what another one writes") {
  const std::string text =
      "graph \"chain\" rows 4 micro_batches 1\nfeed %x: f32[4,8]\n"
      "state parameter %a: f32[500] = fill(1)\nstate parameter %b: f32[500] = fill(1)\n"
      "state parameter %c: f32[500] = fill(1)\n%loss = reduce_sum(%x) {axes=[0,1]}\n"
      "%d = exp(%a) @update\n%e = exp(%d) @update\n%f = exp(%c) @update\n"
      "output \"loss\" %loss\nupdate %a = %d\nupdate %b = %e\nupdate %c = %f\n";
  const plan::Plan plan = gpu_plan_of(text, false);
  const std::vector<plan::Call>& calls = find_task(plan, "update")->calls;
  REQUIRE(calls.size() == 2);
  CHECK(written(plan, calls[0], "a") == 1);
  CHECK(written(plan, calls[0], "c") == 1);
  CHECK(written(plan, calls[1], "b") == 1);
}
