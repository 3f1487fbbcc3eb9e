// The bare product.
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

SGTC_NO_PREFETCH

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  store_columns(a.result + element_at(a, batch, row, column), values, lanes);
}

SGTC_MATMUL_TEST_KERNEL(pingpong_dd)
SGTC_MATMUL_TEST_KERNEL(pingpong_dl)
SGTC_MATMUL_TEST_KERNEL(pingpong_ld)
SGTC_MATMUL_TEST_KERNEL(pingpong_ll)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dd)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dl)
SGTC_MATMUL_TEST_KERNEL(cooperative_dd)
SGTC_MATMUL_TEST_KERNEL(cooperative_ll)
SGTC_MATMUL_TEST_KERNEL(cooperative_pair_dd)
SGTC_MATMUL_TEST_KERNEL(cooperative_pair_dl)
SGTC_MATMUL_TEST_KERNEL(cooperative_pair_ld)
SGTC_MATMUL_TEST_KERNEL(cooperative_pair_ll)
