#include "passes/accumulate_rows.h"

#include "ir/interpret.h"
#include "operators_of.h"
#include "passes/eliminate_dead_nodes.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::string rewritten(const std::string& text) {
  const Graph graph = eliminate_dead_nodes(accumulate_rows(parse_graph(text)));
  verify(graph, "accumulate_rows");
  return operators_of(graph);
}

const std::string kTable =
    "graph \"a\" rows 4 micro_batches 2\nfeed %i: i64[3]\nfeed %u: f32[3,2]\n"
    "state accumulator %s: f32[5,2] = zero\nconstant %z: f32[] = [0]\n"
    "%zeros = broadcast(%z) {shape=[5,2]}\n";
const std::string kTotal = "%y = neg(%t) @update\noutput \"y\" %y\n";

}  // namespace

TEST_CASE("what is scattered into zeros and accumulated goes to the accumulator's rows") {
  CHECK(rewritten(kTable + "%g = scatter_add(%zeros, %i, %u) {axis=0}\n%t = accumulate(%s, %g)\n" +
                  kTotal) == "accumulate_rows(s i u ) neg(t ) ");
}

TEST_CASE("other data than zeros and gradients with other users stay") {
  CHECK(rewritten(kTable +
                  "%one = add(%zeros, %z)\n%d = exp(%one)\n"
                  "%g = scatter_add(%d, %i, %u) {axis=0}\n%t = accumulate(%s, %g)\n" +
                  kTotal) ==
        "broadcast(z ) add(zeros z ) exp(one ) scatter_add(d i u ) accumulate(s g ) neg(t ) ");
  CHECK(rewritten(kTable + "%g = scatter_add(%zeros, %i, %u) {axis=0}\n%t = accumulate(%s, %g)\n" +
                  kTotal + "output \"g\" %g\n") ==
        "broadcast(z ) scatter_add(zeros i u ) accumulate(s g ) neg(t ) ");
}

TEST_CASE("rows are accumulated over micro-batches in the order of their indices") {
  const Graph graph = accumulate_rows(parse_graph(
      kTable + "%g = scatter_add(%zeros, %i, %u) {axis=0}\n%t = accumulate(%s, %g)\n" + kTotal));
  Interpreter interpreter(graph);
  interpreter.set_feed("i", 0, {4, 0, 4});
  interpreter.set_feed("u", 0, {1, 2, 3, 4, 5, 6});
  interpreter.set_feed("i", 1, {0, 1, -1});
  interpreter.set_feed("u", 1, {10, 20, 30, 40, 50, 60});
  interpreter.run();
  CHECK(interpreter.output("y").reals ==
        std::vector<double>{-13, -24, -30, -40, 0, 0, 0, 0, -56, -68});
}
