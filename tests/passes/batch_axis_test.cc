#include "passes/batch_axis.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

/// The fact of %y in a graph of 2 rows with the feed %x and what `lines` define.
BatchFact fact_of(const std::string& lines, const std::string& shape = "[2,3,4]") {
  const Graph graph = parse_graph("graph \"g\" rows 2 micro_batches 1\nfeed %x: f32" + shape +
                                  "\n" + lines + "\noutput \"y\" %y\n");
  return find_batch_axes(graph)[static_cast<size_t>(graph.find("y"))];
}

void check_rows(const BatchFact& fact, int64_t dim) {
  CHECK(fact.kind == BatchKind::kRows);
  CHECK(fact.dim == dim);
}

}  // namespace

TEST_CASE("reshapes keep or lose the batch") {
  check_rows(fact_of("%y = reshape(%x) {shape=[6,4]}"), 0);
  check_rows(fact_of("%y = reshape(%x) {shape=[1,2,12]}"), 1);
  check_rows(fact_of("%z = transpose(%x) {perm=[1,0,2]}\n%y = reshape(%z) {shape=[3,8]}"), 1);
  check_rows(fact_of("%z = reshape(%x) {shape=[6,4]}\n%y = reshape(%z) {shape=[2,12]}"), 0);
  CHECK(fact_of("%y = reshape(%x) {shape=[3,8]}").kind == BatchKind::kMixed);
  CHECK(fact_of("%z = transpose(%x) {perm=[1,0,2]}\n%y = reshape(%z) {shape=[6,4]}").kind ==
        BatchKind::kMixed);
}

TEST_CASE("a feed with several rows per sample has the batch in them") {
  check_rows(fact_of("%y = exp(%x)", "[6,4]"), 0);
  CHECK(fact_of("%y = reduce_sum(%x) {axes=[0]}", "[6]").kind == BatchKind::kSum);
  check_rows(fact_of("%y = reshape(%x) {shape=[2,3]}", "[6]"), 0);
  CHECK(fact_of("%y = exp(%x)", "[3,4]").kind == BatchKind::kFree);
}

TEST_CASE("movements along the batch mix samples, others do not") {
  check_rows(fact_of("%y = slice(%x) {starts=[0,1,0], sizes=[2,2,4], steps=[1,1,1]}"), 0);
  CHECK(fact_of("%y = slice(%x) {starts=[0,0,0], sizes=[1,3,4], steps=[1,1,1]}").kind ==
        BatchKind::kMixed);
  check_rows(fact_of("%y = concat(%x, %x) {axis=2}"), 0);
  CHECK(fact_of("%y = concat(%x, %x) {axis=0}").kind == BatchKind::kMixed);
  check_rows(fact_of("%y = broadcast(%x) {shape=[5,2,3,4]}"), 1);
}

TEST_CASE("sums over the batch, and over a dimension that holds it") {
  CHECK(fact_of("%y = reduce_sum(%x) {axes=[0]}").kind == BatchKind::kSum);
  check_rows(fact_of("%y = reduce_sum(%x) {axes=[1,2]}"), 0);
  CHECK(fact_of("%z = reshape(%x) {shape=[6,4]}\n%y = reduce_sum(%z) {axes=[0]}").kind ==
        BatchKind::kSum);
  CHECK(fact_of("%y = reduce_max(%x) {axes=[0]}").kind == BatchKind::kMixed);
  check_rows(fact_of("%y = reduce_max(%x) {axes=[2]}"), 0);
}

TEST_CASE("division of a sum by an element count makes it a mean") {
  const std::string sum = "%s = reduce_sum(%x) {axes=[0,1,2]}\n";
  CHECK(fact_of(sum + "constant %n: f32[] = [24]\n%y = div(%s, %n)").counted);
  CHECK_FALSE(fact_of(sum + "constant %n: f32[] = [3]\n%y = div(%s, %n)").counted);
  CHECK_FALSE(fact_of(sum + "constant %n: f32[] = [0.5]\n%y = div(%s, %n)").counted);
}

TEST_CASE("matrix products") {
  check_rows(fact_of("state parameter %w: f32[4,5] = zero\n%y = matmul(%x, %w)"), 0);
  check_rows(fact_of("%y = matmul(%x, %x) {transpose_b=1}"), 0);
  check_rows(fact_of("state parameter %w: f32[4,5] = zero\n%y = matmul(%x, %w)", "[2,4]"), 0);
  check_rows(fact_of("state parameter %w: f32[5,4] = zero\n"
                     "%y = matmul(%w, %x) {transpose_b=1}",
                     "[2,4]"),
             1);
  CHECK(fact_of("%y = matmul(%x, %x) {transpose_a=1}", "[2,4]").kind == BatchKind::kSum);
  CHECK(fact_of("%y = matmul(%x, %x) {transpose_b=1}", "[2,4]").kind == BatchKind::kMixed);
}

TEST_CASE("functions of sums are totals") {
  const std::string sum = "%s = reduce_sum(%x) {axes=[0,1,2]}\n";
  CHECK(fact_of(sum + "%y = sqrt(%s)").kind == BatchKind::kTotal);
  CHECK(fact_of(sum + "%y = neg(%s)").kind == BatchKind::kSum);
  CHECK(fact_of(sum + "%y = mul(%s, %s)").kind == BatchKind::kTotal);
  CHECK(fact_of(sum + "%y = sub(%x, %s)").kind == BatchKind::kMixed);
}

TEST_CASE("normalize over the batch is allowed, its statistics are mixed") {
  const Graph graph = parse_graph(
      "graph \"g\" rows 2 micro_batches 1\nfeed %x: f32[2,3]\n"
      "%y, %m, %v = normalize(%x) {axes=[0], epsilon=0.1}\noutput \"y\" %y\n");
  const std::vector<BatchFact> facts = find_batch_axes(graph);
  check_rows(facts[static_cast<size_t>(graph.find("y"))], 0);
  CHECK(facts[static_cast<size_t>(graph.find("m"))].kind == BatchKind::kMixed);
}

TEST_CASE("embedding lookups of rows of indices") {
  const Graph graph = parse_graph(
      "graph \"g\" rows 2 micro_batches 1\nfeed %i: i64[2,3]\n"
      "state parameter %e: f32[7,4] = zero\n%y = gather(%e, %i) {axis=0}\noutput \"y\" %y\n");
  check_rows(find_batch_axes(graph)[static_cast<size_t>(graph.find("y"))], 0);
}

TEST_CASE("an operator that mixes samples is the culprit of all that follows") {
  const Graph graph = parse_graph(
      "graph \"g\" rows 2 micro_batches 1\nfeed %x: f32[2,3]\n%a = exp(%x)\n"
      "%b = cum_sum(%a) {axis=0}\n%c = exp(%b)\noutput \"y\" %c\n");
  const BatchFact fact = find_batch_axes(graph)[static_cast<size_t>(graph.find("c"))];
  CHECK(fact.kind == BatchKind::kMixed);
  CHECK(graph.node(fact.culprit).op == Op::kCumSum);
}

TEST_CASE("constant indices that take each sample's own elements keep samples apart") {
  // x[b, k] for b, k over a grid, and the same through one flat index.
  const std::string grid =
      "constant %i: i64[2,1,2,2] = [0, 2, 0, 1, 1, 0, -1, 2]\n"
      "%y = gather_nd(%x, %i) {batch_dims=0}";
  check_rows(fact_of(grid, "[2,3]"), 0);
  const std::string flat =
      "%f = reshape(%x) {shape=[6,1]}\nconstant %i: i64[1,2,2] = [0, 2, 5, 3]\n"
      "%y = gather(%f, %i) {axis=0}";
  check_rows(fact_of(flat, "[2,3]"), 1);
  const std::string other =
      "%f = reshape(%x) {shape=[6,1]}\nconstant %i: i64[2,2] = [0, 3, 5, 3]\n"
      "%y = gather(%f, %i) {axis=0}";
  CHECK(fact_of(other, "[2,3]").kind == BatchKind::kMixed);
  const std::string swapped =
      "constant %i: i64[2,2] = [1, 2, 0, 0]\n%y = gather_nd(%x, %i) {batch_dims=0}";
  CHECK(fact_of(swapped, "[2,3]").kind == BatchKind::kMixed);
}

TEST_CASE("a division by the number of elements counts them before the sum too") {
  const auto counted = [](const std::string& divided, const std::string& shape) {
    const BatchFact fact = fact_of(divided + "\n%y = reduce_sum(%d) {axes=[0,1]}", shape);
    CHECK(fact.kind == BatchKind::kSum);
    return fact.counted;
  };
  CHECK(counted("constant %n: f32[] = [6]\n%d = div(%x, %n)", "[2,3]"));
  CHECK(counted("constant %n: f32[] = [6]\n%e = div(%x, %n)\n%d = neg(%e)", "[2,3]"));
  CHECK_FALSE(counted("constant %n: f32[] = [4]\n%d = div(%x, %n)", "[2,3]"));
  // A mean over two features of two samples.
  CHECK_FALSE(counted("constant %n: f32[] = [2]\n%s = reduce_sum(%x) {axes=[1]}\n%d = div(%s, %n)",
                      "[2,2]"));
}
