// product + residual.
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

extern "C" __attribute__((always_inline)) void sgtc_tile_prefetch(void* const* args, int64_t batch,
                                                                  int64_t row, int64_t column) {
  const VisitorArguments a = visitor_arguments(args);
  prefetch(a.second + element_at(a, batch, row, column));
}

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  const int64_t at = element_at(a, batch, row, column);
  store_columns(a.result + at, values + load_columns(a.second + at, lanes), lanes);
}

SGTC_MATMUL_TEST_KERNEL(pingpong_dl)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dl)
