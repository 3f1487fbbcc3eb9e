// Each rule of the verifier with a fault planted against it.
#include "ir/graph.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

std::string fault_of(const Graph& graph) {
  try {
    verify(graph, "a pass");
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no fault";
}

std::string fault_of(const std::string& text) { return fault_of(parse_graph(text)); }

Graph valid() {
  return parse_graph(R"(feed %x: f32[2]
state parameter %w: f32[2] = literal [1, 2]
state accumulator %g: f32[2] = zero
constant %c: f32[2] = [1, 2]
%y = add(%x, %w) #1
%t = accumulate(%g, %y) @backward #2
%n = sub(%w, %t) @update #3
output "y" %y
update %w = %n
)");
}

const std::string kTwo = "graph \"g\" rows 1 micro_batches 2\n";

}  // namespace

TEST_CASE("a valid graph has no fault") { CHECK(fault_of(valid()) == "no fault"); }

TEST_CASE("faults of values are found") {
  Graph graph = valid();
  graph.value(0).name = "w";
  CHECK(fault_of(graph) == "after a pass: %w: names must be unique");

  graph = valid();
  graph.value(0).type.shape = {-2};
  CHECK(fault_of(graph) == "after a pass: %x: sizes must not be negative");

  graph = valid();
  graph.value(graph.find("c")).literal = nullptr;
  CHECK(fault_of(graph) == "after a pass: %c: must have a literal");

  graph = valid();
  graph.value(graph.find("c")).type.dtype = DType::kInt32;
  CHECK(fault_of(graph) == "after a pass: %c: must have the type of its literal");

  graph = valid();
  graph.value(graph.find("w")).type.shape = {3};
  CHECK(fault_of(graph) == "after a pass: %w: must have the type of its literal");

  graph = valid();
  graph.value(graph.find("g")).initial.kind = Initializer::Kind::kFill;
  CHECK(fault_of(graph) == "after a pass: %g: an accumulator must start at zero");
}

TEST_CASE("faults of the lists of feeds and states are found") {
  Graph graph = valid();
  graph.feeds.clear();
  CHECK(fault_of(graph) == "after a pass: %x: is missing in the list of feeds");

  graph = valid();
  graph.states.push_back(graph.find("x"));
  CHECK(fault_of(graph) ==
        "after a pass: states: must list each leaf of that kind once and nothing else");

  graph = valid();
  graph.states.push_back(graph.find("w"));
  CHECK(fault_of(graph).find("must list each leaf") != std::string::npos);
}

TEST_CASE("faults of operands are found") {
  Graph graph = valid();
  graph.nodes[0].operands[1] = 99;
  CHECK(fault_of(graph) == "after a pass: add #1 %y: operands must be values of the graph");

  graph = valid();
  graph.nodes[0].operands[0] = graph.find("n");
  CHECK(fault_of(graph) == "after a pass: add #1 %y: operand %n must be computed earlier");

  graph = valid();
  graph.nodes[2].operands[0] = graph.find("g");
  CHECK(fault_of(graph) ==
        "after a pass: sub #3 %n: %g is accumulated before; its result must be used");
}

TEST_CASE("faults of results are found") {
  Graph graph = valid();
  graph.value(graph.find("y")).type.dtype = DType::kFloat64;
  CHECK(fault_of(graph) == "after a pass: add #1 %y: result 0 must have the inferred type");

  graph = valid();
  graph.nodes[0].results.push_back(graph.find("n"));
  CHECK(fault_of(graph) == "after a pass: add #1 %y: wrong number of results");

  graph = valid();
  graph.nodes[2].results[0] = graph.find("y");
  CHECK(fault_of(graph) ==
        "after a pass: sub #3 %y: each result must be produced by this node alone");

  graph = valid();
  graph.nodes[0].attributes.set("axis", int64_t{1});
  CHECK(fault_of(graph) == "after a pass: add #1 %y: add: expected no attributes, found axis");
}

TEST_CASE("faults of phases are found") {
  CHECK(fault_of("feed %x: f32[]\n%y = neg(%x) @backward #1\n%z = neg(%y) @forward #2") ==
        "after a pass: neg #2 %z: operand %y must not come from a later phase");
  CHECK(fault_of(kTwo + "feed %x: f32[]\n%y = neg(%x) #1\n%z = neg(%y) @update #2") ==
        "after a pass: neg #2 %z: operand %y must be accumulated or stacked to cross "
        "micro-batches");
  CHECK(fault_of(kTwo + "feed %x: f32[]\n%y = neg(%x) @prologue #1\n%z = neg(%y) #2")
            .find("must be accumulated or stacked") != std::string::npos);
  CHECK(fault_of(kTwo + "feed %x: f32[]\n%y = neg(%x) @update #1") ==
        "after a pass: neg #1 %y: feed %x must not be read in the update phase");
  CHECK(fault_of(kTwo + "feed %x: f32[]\n%y = neg(%x) @setup #1") ==
        "after a pass: neg #1 %y: feed %x must not be read in the setup phase");
  CHECK(fault_of(kTwo + "feed %x: f32[]\nstate parameter %w: f32[] = zero\n"
                        "%y = neg(%w) @setup #1\n%z = mul(%x, %y) #2\n%u = neg(%y) @update #3") ==
        "no fault");
  CHECK(fault_of(kTwo + "feed %x: f32[]\n%y = neg(%x) #1\n"
                        "%s = stack_micro_batches(%y) {micro_batches=2} #2\n"
                        "%z = neg(%s) @update #3\noutput \"z\" %z") == "no fault");
}

TEST_CASE("faults of accumulation are found") {
  CHECK(fault_of("feed %x: f32[]\nstate moment %m: f32[] = zero\n%y = accumulate(%m, %x) #1") ==
        "after a pass: accumulate #1 %y: operand 0 must be an accumulator");
  CHECK(fault_of("feed %x: f32[]\nstate accumulator %m: f32[] = zero\n"
                 "%y = accumulate(%m, %x) @update #1") ==
        "after a pass: accumulate #1 %y: must not be in the update phase");
  CHECK(fault_of("state parameter %w: f32[] = zero\nstate accumulator %m: f32[] = zero\n"
                 "%y = accumulate(%m, %w) @setup #1") ==
        "after a pass: accumulate #1 %y: must not be in the setup phase");
  CHECK(fault_of("feed %x: f32[]\n%s = stack_micro_batches(%x) {micro_batches=3} #1") ==
        "after a pass: stack_micro_batches #1 %s: micro_batches must be those of all replicas");
}

TEST_CASE("faults of outputs and updates are found") {
  Graph graph = valid();
  graph.outputs.push_back(graph.outputs[0]);
  CHECK(fault_of(graph) == "after a pass: output y: names must be unique");

  graph = valid();
  graph.outputs[0].value = kNone;
  CHECK(fault_of(graph) == "after a pass: output y: must be a value that is computed");

  graph = valid();
  graph.updates[0].state = graph.find("x");
  CHECK(fault_of(graph) == "after a pass: updates: must bind states");

  graph = valid();
  graph.updates[0].state = graph.find("g");
  CHECK(fault_of(graph) == "after a pass: update of %g: an accumulator must not be updated");

  graph = valid();
  graph.updates.push_back(graph.updates[0]);
  CHECK(fault_of(graph) == "after a pass: update of %w: a state must be updated once");

  CHECK(fault_of("state parameter %w: f32[] = zero\nconstant %c: f32[1] = [0]\nupdate %w = %c") ==
        "after a pass: update of %w: %c must have the type of the state");
  CHECK(fault_of(kTwo + "feed %x: f32[]\nstate statistic %w: f32[] = zero\n%y = neg(%x) #1\n"
                        "update %w = %y") ==
        "after a pass: update of %w: %y must not vary by micro-batch");
}
