// The product, and the sums of its rows over each 64 columns: float
// second[batch * batch_rows + row, column / 64].
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

SGTC_DEVICE float add_neighbour(float value, int distance) {
  float other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=f"(other) : "f"(value), "r"(distance));
  return value + other;
}

SGTC_NO_PREFETCH

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  store_columns(a.result + element_at(a, batch, row, column), values, lanes);
  float sum = 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) sum += i < lanes ? values[i] : 0;
  sum = add_neighbour(add_neighbour(add_neighbour(sum, 1), 2), 4);
  if (column % 64 != 0 || lanes == 0) return;
  auto* sums = reinterpret_cast<SGTC_GLOBAL float*>(a.second);
  sums[(batch * a.batch_rows + row) * ((a.stride + 63) / 64) + column / 64] = sum;
}

SGTC_MATMUL_TEST_KERNEL(pingpong_dl)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dl)
