// Checked indices, accumulators, stacked micro-batches, and what is left in the code.
#include <llvm/IR/Instructions.h>

#include "codegen/run_graph.h"

using namespace sgtc;
using namespace sgtc::test;

namespace {

// Runs a gather with the given indices.
GraphRunner gather(const Graph& graph, const std::vector<double>& indices) {
  GraphRunner runner(graph);
  std::mt19937 random(1);
  runner.set(graph.feeds[0], random_tensor(graph.type(graph.feeds[0]), random));
  runner.set(graph.feeds[1], Tensor(graph.type(graph.feeds[1]), indices));
  runner.run(Phase::kForward, Phase::kForward, 0);
  return runner;
}

// Functions that the optimised code of a kernel still calls.
std::vector<std::string> calls_of(const KernelSpec& spec, const Target& target) {
  auto machine = make_target_machine(target);
  llvm::LLVMContext context;
  auto module = build_kernel_module(context, spec, target, *machine);
  std::vector<std::string> calls;
  for (const llvm::Function& function : *module) {
    for (const llvm::BasicBlock& block : function) {
      for (const llvm::Instruction& instruction : block) {
        const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        if (call == nullptr || call->getCalledFunction()->isIntrinsic()) continue;
        calls.push_back(call->getCalledFunction()->getName().str());
      }
    }
  }
  return calls;
}

}  // namespace

TEST_CASE("negative indices count from the end") {
  Graph graph = parse_graph(
      "feed %t: f32[5]\nfeed %i: i64[4]\n%g = gather(%t, %i) {axis=0}\noutput \"g\" %g");
  GraphRunner runner = gather(graph, {-1, -3, 0, -5});
  Tensor t = runner.tensor(graph.feeds[0]);
  Tensor g = runner.tensor(graph.outputs[0].value);
  CHECK(g.reals == std::vector<double>{t.reals[4], t.reals[2], t.reals[0], t.reals[0]});
  CHECK(runner.status()[0] == 0);
}

TEST_CASE("an index out of range is reported with its node and the read stays inside") {
  Graph graph = parse_graph(
      "feed %t: f32[5,20]\nfeed %i: i64[3]\nfeed %j: i64[2]\n"
      "%first = gather(%t, %j) {axis=0}\n%g = gather(%t, %i) {axis=0}\n"
      "output \"first\" %first\noutput \"g\" %g");
  for (double bad : {5.0, -6.0, 1e18}) {
    GraphRunner runner(graph);
    std::mt19937 random(1);
    runner.set(graph.feeds[0], random_tensor(graph.type(graph.feeds[0]), random));
    runner.set(graph.feeds[1], Tensor(graph.type(graph.feeds[1]), {0, bad, 4}));
    runner.set(graph.feeds[2], Tensor(graph.type(graph.feeds[2]), {0, 1}));
    runner.run(Phase::kForward, Phase::kForward, 0);
    CHECK(runner.status()[0] == 2);  // the second checked node
    CHECK(runner.status()[1] == static_cast<int64_t>(bad));
    CHECK(runner.status()[2] == 5);
  }
}

TEST_CASE("lanes beyond the end and padded elements are not checked") {
  check_text(
      "feed %t: f32[4,20]\nfeed %i: i64[19]\nconstant %z: f32[] = [0]\n"
      "%g = gather(%t, %i) {axis=1}\n%p = pad(%g, %z) {low=[0,3], high=[1,2]}\n"
      "%e = neg(%p)\noutput \"e\" %e");
}

TEST_CASE("gradients accumulate in place over micro-batches") {
  Graph graph = parse_graph(
      "graph \"g\" rows 2 micro_batches 3\nfeed %x: f32[2,40]\n"
      "state accumulator %a: f32[40] = zero\nstate parameter %w: f32[40] = fill(1)\n"
      "%s = reduce_sum(%x) {axes=[0]}\n%r = reshape(%s) {shape=[40]} @backward\n"
      "%n = accumulate(%a, %r) @backward\n%k = stack_micro_batches(%s) {micro_batches=3}\n"
      "%v = sub(%w, %n) @update\n%t = reduce_sum(%k) {axes=[0]} @update\n"
      "output \"t\" %t\nupdate %w = %v");
  GraphRunner runner(graph);
  Interpreter interpreter(graph);
  std::mt19937 random(3);
  Tensor ones(graph.type(graph.states[1]), std::vector<double>(40, 1));
  runner.set(graph.states[0], Tensor(graph.type(graph.states[0])));
  runner.set(graph.states[1], ones);
  for (int64_t m = 0; m < 3; ++m) {
    Tensor x = random_tensor(graph.type(graph.feeds[0]), random);
    runner.set(graph.feeds[0], x);
    interpreter.set_feed("x", m, x.reals);
    runner.run(Phase::kForward, Phase::kBackward, m);
  }
  runner.run(Phase::kUpdate, Phase::kUpdate, 0);
  interpreter.run();
  check_close(runner.tensor(graph.outputs[0].value), interpreter.output("t"), 1e-6, "t");
  check_close(runner.tensor(graph.updates[0].value), interpreter.value(graph.updates[0].value),
              1e-6, "w");
}

TEST_CASE("no call is left in a loop kernel") {
  Graph graph = parse_graph(
      "feed %x: f32[30,100]\n%m = reduce_max(%x) {axes=[1]}\n%c = sub(%x, %m)\n%e = exp(%c)\n"
      "%t = tanh(%e)\n%f = erf(%t)\n%p = pow(%f, %e)\n%s = reduce_sum(%p) {axes=[1]}\n"
      "%y = div(%p, %s)\noutput \"y\" %y");
  for (const std::string cpu : {"x86-64-v3", "x86-64-v4"}) {
    for (const Group& group : fuse(graph)) {
      CHECK(calls_of(form_kernel(graph, group), make_target(cpu)).empty());
    }
  }
}

TEST_CASE("compiled objects refer to nothing outside") {
  Graph graph = parse_graph(
      "feed %x: f64[30]\n%y = exp(%x)\nfeed %a: i64[30]\n"
      "%b = cast(%a) {to=\"f16\"}\n%h = cast(%y) {to=\"bf16\"}\n"
      "output \"y\" %y\noutput \"b\" %b\noutput \"h\" %h");
  CHECK_NOTHROW(GraphRunner(graph));
}

TEST_CASE("equal kernels are compiled once and the result does not depend on threads") {
  Graph graph = parse_graph(
      "feed %x: f32[30]\nfeed %y: f32[30]\n%a = exp(%x)\n%b = exp(%y)\n"
      "%c = neg(%x)\noutput \"a\" %a\noutput \"b\" %b\noutput \"c\" %c");
  std::vector<KernelSpec> specs;
  for (const Group& group : GroupGraph(graph).ordered()) specs.push_back(form_kernel(graph, group));
  CHECK(specs[0].symbol == specs[1].symbol);
  CompileOptions one{make_target("x86-64-v3"), 1, true, true};
  CompileOptions two{make_target("x86-64-v3"), 2, true, true};
  std::vector<CompiledKernel> first = compile_kernels(specs, one);
  std::vector<CompiledKernel> second = compile_kernels(specs, two);
  REQUIRE(first.size() == 2);
  for (size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].object == second[i].object);
    CHECK(first[i].llvm_ir.find("define") != std::string::npos);
    CHECK(first[i].assembly.find(first[i].symbol) != std::string::npos);
  }
}

TEST_CASE("an unknown CPU is refused by name") {
  CHECK_THROWS_WITH(make_target("pentium"),
                    "CPU 'pentium': expected x86-64-v3, x86-64-v4 or native");
}

TEST_CASE("random numbers are those of the interpreter, in any layout") {
  const std::string head = "feed %seed: i64[]\nfeed %step: i64[]\nfeed %x: f32[7,33]\n";
  for (const std::string op : {"random_uniform", "random_normal"}) {
    check_text(head + "%u = " + op +
               "(%seed, %step) {shape=[7,33], stream=5}\n%y = mul(%x, %u)\n"
               "output \"y\" %y");
    check_text(head + "%u = " + op +
               "(%seed, %step) {shape=[33,7], stream=5}\n"
               "%t = transpose(%u) {perm=[1,0]}\n%y = mul(%x, %t)\noutput \"y\" %y");
  }
}

TEST_CASE("dropout differs between micro-batches") {
  Graph graph = parse_graph(
      "feed %seed: i64[]\nfeed %step: i64[]\nfeed %x: f32[64]\n"
      "%u = random_uniform(%seed, %step) {shape=[64], stream=5}\nconstant %p: f32[] = [0.5]\n"
      "%k = less(%u, %p)\nconstant %z: f32[] = [0]\n%y = where(%k, %x, %z)\noutput \"y\" %y");
  GraphRunner runner(graph);
  for (ValueId id : graph.feeds) {
    runner.set(id, Tensor(graph.type(id), std::vector<double>(element_count(graph.shape(id)), 1)));
  }
  runner.run(Phase::kForward, Phase::kForward, 0);
  std::vector<double> first = runner.tensor(graph.outputs[0].value).reals;
  runner.run(Phase::kForward, Phase::kForward, 1);
  CHECK(runner.tensor(graph.outputs[0].value).reals != first);
}
