#include "passes/simplify.h"

#include <algorithm>

#include "passes/eliminate_dead_nodes.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// The text of what is left, without the first line.
std::string simplified(const std::string& text) {
  const Graph graph = eliminate_dead_nodes(simplify(parse_graph(text)));
  verify(graph, "simplify");
  const std::string result = to_text(graph);
  return result.substr(result.find('\n') + 1);
}

// Whether `node` of a feed %x: f32[2,3] is %x itself.
bool is_identity(const std::string& leaves_and_node) {
  return simplified("feed %x: f32[2,3]\n" + leaves_and_node + "\noutput \"y\" %y\n") ==
         "feed %x: f32[2,3]\noutput \"y\" %x\n";
}

}  // namespace

TEST_CASE("neutral elements go where bits stay") {
  CHECK(is_identity("constant %c: f32[] = [1]\n%y = mul(%x, %c)"));
  CHECK(is_identity("constant %c: f32[2,3] = [1,1,1,1,1,1]\n%y = mul(%c, %x)"));
  CHECK(is_identity("constant %c: f32[] = [1]\n%y = div(%x, %c)"));
  CHECK(is_identity("constant %c: f32[] = [-0]\n%y = add(%x, %c)"));
  CHECK(is_identity("constant %c: f32[] = [0]\n%y = sub(%x, %c)"));
}

TEST_CASE("neutral elements stay where bits or shapes would change") {
  CHECK_FALSE(is_identity("constant %c: f32[] = [0]\n%y = add(%x, %c)"));  // -0 + 0 is 0
  CHECK_FALSE(is_identity("constant %c: f32[] = [-0]\n%y = sub(%x, %c)"));
  CHECK_FALSE(is_identity("constant %c: f32[] = [1]\n%y = div(%c, %x)"));
  CHECK_FALSE(is_identity("constant %c: f32[] = [0]\n%y = sub(%c, %x)"));
  CHECK_FALSE(is_identity("constant %c: f32[4,1,1] = [1,1,1,1]\n%y = mul(%x, %c)"));
  CHECK_FALSE(is_identity("constant %c: f32[3] = [1,1,2]\n%y = mul(%x, %c)"));
}

TEST_CASE("zero is neutral for integers") {
  CHECK(simplified("feed %x: i32[2]\nconstant %c: i32[] = [0]\n%y = add(%c, %x)\n"
                   "output \"y\" %y\n") == "feed %x: i32[2]\noutput \"y\" %x\n");
}

TEST_CASE("movements that move nothing go") {
  CHECK(is_identity("%y = reshape(%x) {shape=[2,3]}"));
  CHECK(is_identity("%a = reshape(%x) {shape=[6]}\n%y = reshape(%a) {shape=[2,3]}"));
  CHECK(is_identity("%a = transpose(%x) {perm=[1,0]}\n%y = transpose(%a) {perm=[1,0]}"));
  CHECK(is_identity("%y = broadcast(%x) {shape=[2,3]}"));
  CHECK(is_identity("%y = slice(%x) {starts=[0,0], sizes=[2,3], steps=[1,1]}"));
  CHECK(is_identity("%y = concat(%x) {axis=0}"));
  CHECK(is_identity("%y = cast(%x) {to=\"f32\"}"));
  CHECK(is_identity("constant %c: f32[] = [5]\n%y = pad(%x, %c) {low=[0,0], high=[0,0]}"));
  CHECK(is_identity("%y = reduce_sum(%x) {axes=[]}"));
  CHECK(is_identity("%a = neg(%x)\n%y = neg(%a)"));
  CHECK_FALSE(is_identity("%y = slice(%x) {starts=[1,0], sizes=[2,3], steps=[-1,1]}"));
}

TEST_CASE("reshapes and transposes of themselves join") {
  CHECK(simplified(R"(feed %x: f32[2,3,4]
%a = reshape(%x) {shape=[6,4]}
%y = reshape(%a) {shape=[24]}
%b = transpose(%x) {perm=[1,0,2]}
%z = transpose(%b) {perm=[2,0,1]}
output "y" %y
output "z" %z
)") == R"(feed %x: f32[2,3,4]
%y: f32[24] = reshape(%x) {shape=[24]} #2
%z: f32[4,3,2] = transpose(%x) {perm=[2,1,0]} #4
output "y" %y
output "z" %z
)");
}

TEST_CASE("a transpose that moves only dimensions of size 1 is a reshape") {
  CHECK(
      simplified("feed %x: f32[1,4,1,3]\n%y = transpose(%x) {perm=[1,2,3,0]}\noutput \"y\" %y\n") ==
      "feed %x: f32[1,4,1,3]\n%y: f32[4,1,3,1] = reshape(%x) {shape=[4,1,3,1]} #1\n"
      "output \"y\" %y\n");
}

TEST_CASE("reductions keep only axes of more than one element") {
  CHECK(simplified("feed %x: f32[1,4,3]\n%y = reduce_max(%x) {axes=[0,2]}\noutput \"y\" %y\n") ==
        "feed %x: f32[1,4,3]\n%y: f32[1,4,1] = reduce_max(%x) {axes=[2]} #1\noutput \"y\" %y\n");
  CHECK(simplified("feed %x: f32[1,4]\n%y = reduce_prod(%x) {axes=[0]}\noutput \"y\" %y\n") ==
        "feed %x: f32[1,4]\noutput \"y\" %x\n");
}

TEST_CASE("elementwise operators broadcast by themselves") {
  CHECK(simplified(R"(feed %x: f32[2,3]
feed %b: f32[3]
%c = broadcast(%b) {shape=[2,3]}
%y = add(%x, %c)
%z = mul(%c, %c)
output "y" %y
output "z" %z
)") == R"(feed %x: f32[2,3]
feed %b: f32[3]
%c: f32[2,3] = broadcast(%b) {shape=[2,3]} #1
%y: f32[2,3] = add(%x, %b) #2
%z: f32[2,3] = mul(%b, %c) #3
output "y" %y
output "z" %z
)");
}

TEST_CASE("matmul takes transposes of the last two dimensions") {
  CHECK(simplified(R"(feed %a: f32[5,3,2]
feed %b: f32[4,3]
%t = transpose(%a) {perm=[0,2,1]}
%u = transpose(%b) {perm=[1,0]}
%y = matmul(%t, %u) {transpose_b=0}
%z = matmul(%t, %b) {transpose_b=1}
output "y" %y
output "z" %z
)") == R"(feed %a: f32[5,3,2]
feed %b: f32[4,3]
%y: f32[5,2,4] = matmul(%a, %b) {transpose_a=1, transpose_b=1} #3
%z: f32[5,2,4] = matmul(%a, %b) {transpose_a=1, transpose_b=1} #4
output "y" %y
output "z" %z
)");
}

TEST_CASE("a product that is only transposed is computed transposed") {
  const std::string product =
      "feed %a: f32[5,3,2]\nfeed %b: f32[5,4,3]\n%p = matmul(%a, %b) "
      "{transpose_a=1, transpose_b=1}\n";
  const std::string transpose = "%y = transpose(%p) {perm=[0,2,1]}\noutput \"y\" %y\n";
  CHECK(simplified(product + transpose)
            .find("%y: f32[5,4,2] = matmul(%b, %a) {transpose_a=0, "
                  "transpose_b=0}") != std::string::npos);
  const std::string used_twice = simplified(product + transpose + "output \"p\" %p\n");
  CHECK(used_twice.find("%y: f32[5,4,2] = transpose(%p)") != std::string::npos);
}

TEST_CASE("batches that share one matrix are rows of one product") {
  CHECK(simplified(R"(feed %a: f32[2,3,5,4]
feed %b: f32[1,7,4]
%y = matmul(%a, %b) {transpose_b=1}
output "y" %y
)") == R"(feed %a: f32[2,3,5,4]
feed %b: f32[1,7,4]
%reshape: f32[30,4] = reshape(%a) {shape=[30,4]} #2
%reshape_1: f32[7,4] = reshape(%b) {shape=[7,4]} #3
%matmul: f32[30,7] = matmul(%reshape, %reshape_1) {transpose_b=1} #4
%reshape_2: f32[2,3,5,7] = reshape(%matmul) {shape=[2,3,5,7]} #5
output "y" %reshape_2
)");
}

TEST_CASE("batches with matrices of their own, or transposed, stay") {
  const std::string other = R"(feed %a: f32[2,5,4]
feed %b: f32[2,4,7]
%y: f32[2,5,7] = matmul(%a, %b) #1
output "y" %y
)";
  CHECK(simplified(other) == other);
  const std::string transposed = R"(feed %a: f32[2,4,5]
feed %b: f32[4,7]
%y: f32[2,5,7] = matmul(%a, %b) {transpose_a=1} #1
output "y" %y
)";
  CHECK(simplified(transposed) == transposed);
}

TEST_CASE("where with a constant condition takes one branch") {
  CHECK(
      is_identity("constant %c: bool[2,1] = [1,1]\nconstant %o: f32[] = [7]\n"
                  "%y = where(%c, %x, %o)"));
  CHECK(simplified("feed %x: f32[2]\nfeed %o: f32[]\nconstant %c: bool[] = [0]\n"
                   "%y = where(%c, %x, %o)\noutput \"y\" %y\n") ==
        "feed %x: f32[2]\nfeed %o: f32[]\n%y: f32[2] = broadcast(%o) {shape=[2]} #1\n"
        "output \"y\" %y\n");
  CHECK_FALSE(
      is_identity("constant %c: bool[2,1] = [1,0]\nconstant %o: f32[] = [7]\n"
                  "%y = where(%c, %x, %o)"));
}

TEST_CASE("pow with the exponents 1, 2 and 0.5 is cheaper") {
  CHECK(is_identity("constant %e: i64[] = [1]\n%y = pow(%x, %e)"));
  const std::string feed = "feed %x: f32[2]\n";
  CHECK(simplified(feed + "constant %e: f32[] = [2]\n%y = pow(%x, %e)\noutput \"y\" %y\n") ==
        feed + "%y: f32[2] = mul(%x, %x) #1\noutput \"y\" %y\n");
  CHECK(simplified(feed + "constant %e: f32[] = [0.5]\n%y = pow(%x, %e)\noutput \"y\" %y\n") ==
        feed + "%y: f32[2] = sqrt(%x) #1\noutput \"y\" %y\n");
  const std::string integers =
      "feed %x: i8[2]\nconstant %e: f32[] = [2]\n%y: i8[2] = pow(%x, %e) #1\noutput \"y\" %y\n";
  CHECK(simplified(integers) == integers);
}

TEST_CASE("phases, ids and sources survive") {
  CHECK(simplified(R"(state parameter %w: f32[2,2] = zero
constant %two: f32[] = [2]
%y = pow(%w, %two) @update #7 "n"
update %w = %y
)") == R"(state parameter %w: f32[2,2] = zero
%y: f32[2,2] = mul(%w, %w) @update #7 "n"
update %w = %y
)");
}

TEST_CASE("a quotient that only a function takes is a product, others stay exact") {
  const auto divisions = [](const std::string& text) {
    const Graph graph = simplify(parse_graph("feed %x: f32[8]\nfeed %s: f32[]\n" + text));
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const Node& node) { return node.op == Op::kDiv; });
  };
  const std::string by_root = "constant %r: f32[] = [1.4142135]\n%q = div(%x, %r)\n";
  CHECK(divisions(by_root + "%y = erf(%q)\noutput \"y\" %y") == 0);
  CHECK(divisions(by_root + "%y = floor(%q)\noutput \"y\" %y") == 1);
  CHECK(divisions(by_root + "%y = erf(%q)\n%z = floor(%q)\noutput \"y\" %y\noutput \"z\" %z") == 1);
  CHECK(divisions("%q = div(%x, %s)\n%y = erf(%q)\noutput \"y\" %y") == 1);
  CHECK(divisions("constant %r: f32[] = [1e-40]\n%q = div(%x, %r)\n%y = exp(%q)\n"
                  "output \"y\" %y") == 1);
}
