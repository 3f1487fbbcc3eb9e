// Matrix products.
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// A vector on the left is a row, on the right a column; the dimension disappears again.
ValueIds lower_matmul(Lowering& n) {
  ValueId a = n.input(0), b = n.input(1);
  const bool row = n.rank(a) == 1, column = n.rank(b) == 1;
  if (n.rank(a) == 0 || n.rank(b) == 0) throw Error("expected rank 1 or more, found a scalar");
  if (row) a = n.unsqueeze(a, {0});
  if (column) b = n.unsqueeze(b, {1});
  ValueId product = n.matmul(a, b);
  const int64_t rank = n.rank(product);
  if (column) product = n.squeeze(product, {rank - 1});
  if (row) product = n.squeeze(product, {n.rank(product) - (column ? 1 : 2)});
  return {product};
}

// ONNX Runtime's product of transposed operands times a number.
ValueIds lower_fused_matmul(Lowering& n) {
  if (n.integer("transBatchA", 0) != 0 || n.integer("transBatchB", 0) != 0) {
    throw Error("transBatchA and transBatchB are not supported");
  }
  const ValueId a = n.input(0), b = n.input(1);
  if (n.rank(a) < 2 || n.rank(b) < 2) throw Error("expected operands of rank 2 or more");
  const ValueId y = n.matmul(a, b, n.integer("transA", 0) != 0, n.integer("transB", 0) != 0);
  const double alpha = n.real("alpha", 1);
  return {alpha == 1 ? y : n.mul_scalar(y, alpha)};
}

ValueIds lower_gemm(Lowering& n) {
  const ValueId a = n.input(0), b = n.input(1);
  if (n.rank(a) != 2 || n.rank(b) != 2) {
    throw Error("expected two matrices, found shapes " + to_string(n.shape(a)) + " and " +
                to_string(n.shape(b)));
  }
  ValueId y = n.matmul(a, b, n.integer("transA", 0) != 0, n.integer("transB", 0) != 0);
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  if (alpha != 1) y = n.mul_scalar(y, alpha);
  if (!n.has_input(2) || beta == 0) return {y};
  const ValueId c = n.input(2);
  const Shape product = n.shape(y);
  Shape both;
  if (!broadcast_shapes(product, n.shape(c), &both) || both != product) {
    throw Error("C: expected a shape that broadcasts to " + to_string(product) + ", found " +
                to_string(n.shape(c)));
  }
  return {n.add(y, beta == 1 ? c : n.mul_scalar(c, beta))};
}

const std::vector<Rule> kRules = {
    {"", "MatMul", {1, 9, 13}, lower_matmul},
    {"", "Gemm", {7, 9, 11, 13}, lower_gemm},
    {"com.microsoft", "FusedMatMul", {1}, lower_fused_matmul},
};

}  // namespace

std::span<const Rule> matmul_rules() { return kRules; }

}  // namespace sgtc
