// product + residual.
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  const int64_t at = element_at(a, batch, row, column);
  store_columns(a.result + at, values + load_columns(a.second + at, lanes), lanes);
}

SGTC_MATMUL_TEST_KERNEL(pingpong_dl)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dl)
