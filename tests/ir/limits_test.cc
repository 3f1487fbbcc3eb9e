// Tensors beyond 2^31 elements are types like others; beyond the limits they are refused.
#include "ir/limits.h"

#include "ir/graph.h"
#include "support/catch.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int64_t kMany = int64_t{1} << 31;

}  // namespace

TEST_CASE("a tensor may have a terabyte and 64 dimensions") {
  check_size({DType::kFloat32, {int64_t{1} << 38}});
  check_size({DType::kInt8, {int64_t{1} << 20, int64_t{1} << 20}});
  check_size({DType::kFloat32, Shape(64, 1)});
  check_size({DType::kFloat64, {}});
}

TEST_CASE("larger tensors are refused with their size and the limit") {
  CHECK_THROWS_WITH(check_size({DType::kFloat32, {(int64_t{1} << 38) + 1}}),
                    ContainsSubstring("f32") && ContainsSubstring("[274877906945]") &&
                        ContainsSubstring("more than 1099511627776 bytes"));
  CHECK_THROWS_WITH(check_size({DType::kInt8, {INT64_MAX, INT64_MAX, INT64_MAX}}),
                    ContainsSubstring("bytes, the limit"));
  CHECK_THROWS_WITH(check_size({DType::kBool, Shape(65, 1)}),
                    ContainsSubstring("65 dimensions, expected at most 64"));
  CHECK_THROWS_WITH(check_size({DType::kBool, {2, -1}}), ContainsSubstring("negative"));
}

TEST_CASE("a size of 0 does not hide sizes whose strides overflow") {
  CHECK_THROWS_WITH(check_size({DType::kInt8, {0, INT64_MAX, INT64_MAX}}),
                    ContainsSubstring("bytes, the limit"));
  check_size({DType::kInt8, {0, int64_t{1} << 40}});
}

TEST_CASE("results of operators have more than 2^31 elements") {
  Graph graph;
  const ValueId column = graph.add_feed("column", {DType::kFloat32, {65536, 1}});
  const ValueId row = graph.add_feed("row", {DType::kFloat32, {1, 65536}});
  CHECK(element_count(graph.shape(graph.add(Op::kMatMul, {column, row}))) == 2 * kMany);
  const ValueId wide = graph.add(Op::kBroadcast, {row}, {{"shape", Shape{65537, 65536}}});
  const ValueId joined = graph.add(Op::kConcat, {wide, wide}, {{"axis", int64_t{0}}});
  CHECK(element_count(graph.shape(joined)) > 4 * kMany);
}

TEST_CASE("an operator whose result is too large is named") {
  Graph graph;
  const int64_t side = int64_t{1} << 25;
  const ValueId column = graph.add_feed("column", {DType::kFloat32, {side, 1}});
  const ValueId row = graph.add_feed("row", {DType::kFloat32, {1, side}});
  CHECK_THROWS_WITH(graph.add(Op::kMatMul, {column, row}),
                    ContainsSubstring("matmul: ") && ContainsSubstring("[33554432,33554432]"));
}
