// What results of groups take at one time.
#include "passes/live_bytes.h"

#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

int64_t peak(const std::string& text) {
  const Graph graph = parse_graph(text);
  return peak_of_results(graph, fuse(graph));
}

// Products are groups of their own, each with 4 KiB.
const std::string kStart =
    "feed %x: f32[32,32]\nstate parameter %w: f32[32,32] = zero\n"
    "%a = matmul(%x, %w)\n";

}  // namespace

TEST_CASE("results live until they are read last") {
  CHECK(peak(kStart + "%b = matmul(%a, %w)\n%c = matmul(%b, %w)\noutput \"c\" %c\n") == 4096);
  CHECK(peak(kStart + "%b = matmul(%a, %w)\n%c = matmul(%b, %a)\noutput \"c\" %c\n") == 8192);
}

TEST_CASE("outputs live to the end") {
  CHECK(peak(kStart + "%b = matmul(%a, %w)\n%c = matmul(%b, %w)\noutput \"a\" %a\n"
                      "output \"c\" %c\n") == 8192);
}

TEST_CASE("views and accumulated states take nothing") {
  CHECK(peak(kStart + "%b = reshape(%a) {shape=[1024]}\noutput \"b\" %b\n") == 4096);
  CHECK(peak("graph \"g\" rows 32 micro_batches 2\n" + kStart +
             "state accumulator %s: f32[32,32] = zero\n%b = accumulate(%s, %a)\n"
             "%c = neg(%b) @update\noutput \"c\" %c\n") == 4096);
}

TEST_CASE("new values of states take nothing") {
  CHECK(peak(kStart + "%b = add(%a, %w) @update\nupdate %w = %b\noutput \"x\" %x\n") == 4096);
}
