#include "ir/graph.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

std::string round_trip(const std::string& text) { return to_text(parse_graph(text)); }

std::string error_of(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const std::string kStep = R"(graph "step" rows 4 micro_batches 2
feed %x: f32[4,3]
state parameter %w: f32[3,2] = normal(0.0, 0.02, seed 7)
state frozen %f: f32[] = fill(1.5)
state statistic %mean: f32[2] = literal [1, 2.5]
state moment %m: f32[3,2] = zero
state accumulator %g: f32[3,2] = zero
state frozen %u: f64[2] = uniform(-1.0, 1.0, seed 0)
control %learning_rate: f32[]
constant %i: i64[2] = [0, -1]
constant %big: u64[1] = [18446744073709551615]
constant %flags: bool[2] = [1, 0]
constant %specials: f32[4] = [inf, -inf, nan, -0]
constant %third: f64[] = [0.3333333333333333]
constant %ones: f32[100] = fill(1)
%y: f32[4,2] = matmul(%x, %w) #3 "node/a" "node \"b\""
%l: f32[1,1] = reduce_sum(%y) {axes=[0,1]} #4
%t: f32[2,2], %k: i64[2,2] = top_k(%y) {axis=0, k=2, largest=1} #5
%d: f32[3,2] = matmul(%x, %y) {transpose_a=1} @backward #6
%a: f32[3,2] = accumulate(%g, %d) @backward #7
%n: f32[3,2] = sub(%w, %a) @update #8
%"odd: name": i32[2] = cast(%i) {to="i32"} @update #9
%e: f32[4,2], %e1: f32[4,1], %e2: f32[4,1] = normalize(%y) {axes=[1], epsilon=1e-05} #10
output "loss" %l
update %w = %n
)";

}  // namespace

TEST_CASE("a graph of every kind of line reads back exactly") { CHECK(round_trip(kStep) == kStep); }

TEST_CASE("types of results, ids, phases and the first line may be left out") {
  CHECK(round_trip("feed %x: f32[2] // a comment\n%y = neg(%x)\noutput \"y\" %y") ==
        "graph \"\" rows 0 micro_batches 1\nfeed %x: f32[2]\n%y: f32[2] = neg(%x) #1\n"
        "output \"y\" %y\n");
}

TEST_CASE("constants of more than 64 elements are written as a hash that does not parse") {
  std::string elements = "0";
  for (int i = 1; i < 65; ++i) elements += ", " + std::to_string(i);
  const std::string text = round_trip("constant %c: i32[65] = [" + elements + "]");
  CHECK(text.find("= sha256(") != std::string::npos);
  CHECK(error_of(text) ==
        "graph text, line 2, column 24: a constant given by its hash has no values");
}

TEST_CASE("errors of graph texts name line, column, expected and found") {
  CHECK(error_of("feed %x: f33[2]") ==
        "graph text, line 1, column 10: expected a dtype, found \"f33\"");
  CHECK(error_of("feed %x: f32[2]\n%y = nge(%x)") ==
        "graph text, line 2, column 6: there is no operator called nge");
  CHECK(error_of("%y = neg(%x)") ==
        "graph text, line 1, column 10: there is no value called %x before");
  CHECK(error_of("feed %x: f32[2]\nfeed %x: f32[2]") ==
        "graph text, line 2, column 6: a second value is called %x");
  CHECK(error_of("feed %x: f32[2]\n%y: f32[3] = neg(%x)") ==
        "graph text, line 2, column 21: %y: expected f32[2], found f32[3]");
  CHECK(error_of("feed %x: f32[2]\n%y, %z = neg(%x)") ==
        "graph text, line 2, column 17: expected 1 results of neg, found 2");
  CHECK(error_of("constant %c: i8[1] = [300]") ==
        "graph text, line 1, column 23: expected a value of type i8, found 300");
  CHECK(error_of("state nothing %w: f32[] = zero") ==
        "graph text, line 1, column 7: expected the role of a state, found \"nothing\"");
  CHECK(error_of("control %rate: f32[]") ==
        "graph text, line 1, column 9: expected learning_rate, seed or step as control, found "
        "rate");
  CHECK(error_of("feed %x: f32[-1]").find("not negative") != std::string::npos);
  CHECK(error_of("output \"loss").find("expected the end of a quoted text") != std::string::npos);
  CHECK(error_of("bogus").find("expected a leaf, node, output or update") != std::string::npos);
  CHECK(error_of("constant %c: f32[2] = [1").find("expected ',', found the end") !=
        std::string::npos);
}

TEST_CASE("a constant that is too large is refused before memory is taken") {
  CHECK(error_of("constant %c: f32[1000000,1000000] = fill(0)") ==
        "graph text, line 1, column 35: a constant of 1000000000000 elements");
}

TEST_CASE("a text cut at any character gives an error or a graph, never a crash") {
  for (size_t length = 0; length < kStep.size(); ++length) {
    CHECK_NOTHROW(error_of(kStep.substr(0, length)));
  }
}
