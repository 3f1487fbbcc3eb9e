// product + residual.
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

extern "C" __attribute__((always_inline)) void sgtc_tile_prefetch(void* const* args, int64_t batch,
                                                                  int64_t row, int64_t column) {
  const VisitorArguments a = visitor_arguments(args);
  prefetch(a.second + element_at(a, batch, row, column));
}

extern "C" __attribute__((always_inline)) void sgtc_tile_load(void* const* args, int64_t batch,
                                                              int64_t row, int64_t column,
                                                              uint32_t* words) {
  const VisitorArguments a = visitor_arguments(args);
  const V8f values = load_columns(a.second + element_at(a, batch, row, column), 8);
  __builtin_memcpy(words, &values, sizeof values);
}

extern "C" __attribute__((always_inline)) void sgtc_tile_store_loaded(void* const* args,
                                                                      int64_t batch, int64_t row,
                                                                      int64_t column,
                                                                      sgtc::hopper::V8f values,
                                                                      const uint32_t* words) {
  const VisitorArguments a = visitor_arguments(args);
  V8f residual;
  __builtin_memcpy(&residual, words, sizeof residual);
  store_columns(a.result + element_at(a, batch, row, column), values + residual, 8);
}

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  const int64_t at = element_at(a, batch, row, column);
  store_columns(a.result + at, values + load_columns(a.second + at, lanes), lanes);
}

SGTC_MATMUL_TEST_KERNEL(pingpong_dl)
SGTC_MATMUL_TEST_KERNEL(pingpong_pair_dl)
