// The product and its GELU, as the backward pass needs both.
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

SGTC_NO_PREFETCH

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  const int64_t at = element_at(a, batch, row, column);
  store_columns(a.second + at, values, lanes);
  store_columns(a.result + at, gelu(values), lanes);
}

SGTC_MATMUL_TEST_KERNEL(pingpong_dl)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dl)
