// 168 registers at entry: 384 threads.
#include "attention/sm_90a/test/entry.h"

extern "C" __attribute__((always_inline)) void sgtc_tile_store_second(void* const* args,
                                                                      int64_t batch, int64_t row,
                                                                      int64_t column, V8f values,
                                                                      int64_t lanes) {
  const VisitorArguments a = visitor_arguments(args);
  store_columns(a.second + element_at(a, batch, row, column), values, lanes);
}

SGTC_ATTENTION_GRADIENT_TEST_KERNEL(query_gradient_d64)
SGTC_ATTENTION_GRADIENT_TEST_KERNEL(query_gradient_d128)
SGTC_ATTENTION_GRADIENT_TEST_KERNEL(key_gradient_d64)
SGTC_ATTENTION_GRADIENT_TEST_KERNEL(key_gradient_d128)
