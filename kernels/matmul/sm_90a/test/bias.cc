// product + bias.
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

SGTC_NO_PREFETCH

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  store_columns(a.result + element_at(a, batch, row, column),
                add_bias(values, a.second, column, lanes), lanes);
}

SGTC_MATMUL_TEST_KERNEL(pingpong_dl)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dl)
