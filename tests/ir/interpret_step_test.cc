// Whole steps: phases, micro-batches, states, random numbers and precision.
#include <cmath>
#include <set>

#include "../kernels/include/philox.h"
#include "ir/interpret.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

using Values = std::vector<double>;

// Mean of a feed over all micro-batches through a prologue count, and its running sum as a state.
const std::string kMean = R"(graph "mean" rows 2 micro_batches 3
feed %x: f32[2]
feed %counted: f32[2]
state statistic %sum: f32[] = fill(100.0)
state accumulator %count: f32[1] = zero
state accumulator %total: f32[1] = zero
%n = reduce_sum(%counted) {axes=[0]} @prologue
%c = accumulate(%count, %n) @prologue
%s = reduce_sum(%x) {axes=[0]}
%p = div(%s, %c)
%t = accumulate(%total, %p) @backward
%rows = stack_micro_batches(%s) {micro_batches=3}
%r = reshape(%t) {shape=[]} @update
%new = add(%sum, %r) @update
output "partial" %p
output "mean" %r
output "rows" %rows
update %sum = %new
)";

std::string error_of(Interpreter& interpreter, const std::string& name, const Values& values) {
  try {
    interpreter.set(name, values);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a step runs prologue, micro-batches and update in order, over several steps") {
  const Graph graph = parse_graph(kMean);
  verify(graph, "parsing");
  Interpreter interpreter(graph);
  interpreter.set("counted", Values{1, 0});
  interpreter.set_feed("counted", 2, {1, 1});
  for (int64_t m = 0; m < 3; ++m) {
    interpreter.set_feed("x", m, {static_cast<double>(m), 10.0 * static_cast<double>(m)});
  }
  interpreter.run();
  CHECK(interpreter.output("mean").reals[0] == Approx(33.0 / 4));
  CHECK(interpreter.value("sum").reals[0] == Approx(100 + 33.0 / 4));
  CHECK(interpreter.output("rows").reals == Values{0, 11, 22});
  const std::vector<Tensor> partial = interpreter.outputs_by_micro_batch("partial");
  REQUIRE(partial.size() == 3);
  CHECK(partial[1].reals[0] == Approx(11.0 / 4));
  interpreter.run();  // accumulators start at zero again
  CHECK(interpreter.output("mean").reals[0] == Approx(33.0 / 4));
  CHECK(interpreter.value("sum").reals[0] == Approx(100 + 33.0 / 2));
}

TEST_CASE("updates read the states of before the step") {
  const Graph graph = parse_graph(
      "state moment %a: f32[] = fill(1.0)\nstate moment %b: f32[] = fill(2.0)\n"
      "%na = add(%a, %b) @update\n%nb = mul(%a, %b) @update\nupdate %a = %b\nupdate %b = %na");
  Interpreter interpreter(graph);
  interpreter.run();
  CHECK(interpreter.value("a").reals[0] == 2);
  CHECK(interpreter.value("b").reals[0] == 3);
}

TEST_CASE("unknown names and wrong sizes are errors") {
  const Graph graph = parse_graph("feed %x: f32[2]\n%y = neg(%x)");
  Interpreter interpreter(graph);
  CHECK(error_of(interpreter, "z", {1}) == "there is no value called %z");
  CHECK(error_of(interpreter, "x", {1}) == "%x: expected 2 values, found 1");
  CHECK(error_of(interpreter, "y", {1, 2}) ==
        "%y is neither a feed nor a state nor a control value");
  CHECK_THROWS_AS(interpreter.set_feed("x", 1, {1, 2}), Error);
  CHECK_THROWS_AS(interpreter.set("x", Tensor(TensorType{DType::kInt32, {2}})), Error);
  CHECK_THROWS_AS(interpreter.output("y"), Error);
}

TEST_CASE("float64 precision keeps doubles in values of any float type") {
  const Graph graph =
      parse_graph("feed %x: f32[]\n%h = cast(%x) {to=\"f16\"}\n%y = mul(%h, %h)\noutput \"y\" %y");
  Interpreter exact(graph, Precision::kFloat64);
  exact.set("x", Values{0.1});
  exact.run();
  CHECK(exact.output("y").reals[0] == 0.1 * 0.1);
  Interpreter native(graph);
  native.set("x", Values{0.1});
  native.run();
  CHECK(native.output("y").reals[0] != 0.1 * 0.1);
  CHECK(native.output("y").reals[0] == Approx(0.01).epsilon(1e-3));
}

TEST_CASE("Philox gives the published numbers") {
  // Known answers of Random123: zero, all ones, and digits of pi.
  const auto words = [](uint64_t key, random::Block counter) {
    const random::Block block = random::philox(key, counter);
    return std::vector<uint32_t>(block.words, block.words + 4);
  };
  CHECK(words(0, {{0, 0, 0, 0}}) ==
        std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words(~uint64_t{0}, {{~0u, ~0u, ~0u, ~0u}}) ==
        std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words(0x299f31d0a4093822, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}) ==
        std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random numbers depend on seed, step, stream, micro-batch and replica") {
  const Graph graph = parse_graph(R"(graph "r" rows 1 micro_batches 2
control %seed: i64[]
control %step: i64[]
%u = random_uniform(%seed, %step) {shape=[5], stream=3}
%v = random_uniform(%seed, %step) {shape=[5], stream=4}
output "u" %u
output "v" %v
)");
  std::set<Values> seen;
  const auto collect = [&](double seed, double step, int64_t replica) {
    Interpreter interpreter(graph);
    interpreter.set("seed", Values{seed});
    interpreter.set("step", Values{step});
    interpreter.set_replica(replica);
    interpreter.run();
    for (const char* name : {"u", "v"}) {
      for (const Tensor& tensor : interpreter.outputs_by_micro_batch(name)) {
        seen.insert(tensor.reals);
      }
    }
  };
  collect(1, 1, 0);
  CHECK(seen.size() == 4);
  collect(2, 1, 0);
  CHECK(seen.size() == 8);
  collect(1, 2, 0);
  CHECK(seen.size() == 12);
  collect(1, 1, 1);
  CHECK(seen.size() == 16);
  collect(1, 1, 0);  // the same numbers again
  CHECK(seen.size() == 16);
}

TEST_CASE("random numbers have the moments of their distributions") {
  const Graph graph = parse_graph(R"(control %seed: i64[]
control %step: i64[]
%u = random_uniform(%seed, %step) {shape=[40001], stream=1}
%n = random_normal(%seed, %step) {shape=[40001], stream=2}
state parameter %w: f32[40000] = normal(1.0, 2.0, seed 0)
state parameter %v: f32[40000] = uniform(-1.0, 3.0, seed 5)
)");
  Interpreter interpreter(graph);
  interpreter.run();
  const auto moments = [&](const std::string& name) {
    double sum = 0;
    double squares = 0;
    const Values& values = interpreter.value(name).reals;
    for (const double x : values) sum += x;
    const double mean = sum / static_cast<double>(values.size());
    for (const double x : values) squares += (x - mean) * (x - mean);
    return std::pair(mean, std::sqrt(squares / static_cast<double>(values.size())));
  };
  CHECK(moments("u").first == Approx(0.5).margin(0.01));
  CHECK(moments("u").second == Approx(std::sqrt(1.0 / 12)).margin(0.01));
  CHECK(moments("n").first == Approx(0).margin(0.02));
  CHECK(moments("n").second == Approx(1).margin(0.02));
  CHECK(moments("w").first == Approx(1).margin(0.04));
  CHECK(moments("w").second == Approx(2).margin(0.04));
  CHECK(moments("v").first == Approx(1).margin(0.04));
  for (const double x : interpreter.value("u").reals) {
    if (!(x >= 0 && x < 1)) FAIL(x);
  }
}

TEST_CASE("accumulation rounds to the accumulator's dtype in micro-batch order") {
  const Graph graph = parse_graph(R"(graph "a" rows 1 micro_batches 2
feed %x: f16[]
state accumulator %s: f16[] = zero
%t = accumulate(%s, %x)
%y = neg(%t) @update
output "y" %y
)");
  Interpreter interpreter(graph);
  interpreter.set_feed("x", 0, {2048});
  interpreter.set_feed("x", 1, {1});
  interpreter.run();
  CHECK(interpreter.output("y").reals[0] == -2048);
}

TEST_CASE("literals evaluate without a graph") {
  const std::vector<LiteralPtr> sum =
      evaluate(Op::kAdd, {scalar_literal(DType::kInt64, 2), scalar_literal(DType::kInt64, 3)}, {});
  REQUIRE(sum.size() == 1);
  CHECK(sum[0]->as_int(0) == 5);
  CHECK_THROWS_AS(
      evaluate(Op::kAccumulate,
               {scalar_literal(DType::kFloat32, 2), scalar_literal(DType::kFloat32, 3)}, {}),
      Error);
}
