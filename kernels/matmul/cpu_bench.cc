// The products of the models that scripts/cpu_speed.py trains, with shapes as constants as in
// compiled programs. scripts/product_speed.py builds this as a library, with clang for the machine
// that it runs on: once as it is, and once with -DSGTC_EPILOGUE, where storing a result adds a bias
// and applies GELU.
#include <array>
#include <cstring>
#include <utility>

#include "math/elementary.h"
#include "math/single.h"
#include "matmul/cpu.cc"

// What takes vectors is inlined into functions for the whole machine.
SGTC_KERNELS_BEGIN

namespace {

using sgtc::kernels::MatmulShape;
using sgtc::kernels::V16f;

// GELU by tanh.
SGTC_INLINE V16f activate(V16f x) {
  const V16f inner = 0.7978845608F * (x + 0.044715F * x * x * x);
  return 0.5F * x * (1 + sgtc::kernels::tanh_single(inner));
}

// to = GELU(values + bias) for the first `lanes` elements. Whole vectors have code of their own, as
// in compiled programs.
SGTC_INLINE void store_activated(float* to, V16f values, const float* bias, int64_t lanes) {
  using namespace sgtc::kernels;
  if (lanes == kLanes) {
    store<V16f>(to, activate(values + load<V16f>(bias)));
  } else {
    store_part<V16f>(to, activate(values + load_part<V16f>(bias, lanes)), lanes);
  }
}

SGTC_INLINE void store_values(float* to, V16f values, int64_t lanes) {
  using namespace sgtc::kernels;
  if (lanes == kLanes) {
    store<V16f>(to, values);
  } else {
    store_part<V16f>(to, values, lanes);
  }
}

}  // namespace

// args: the result, its columns and the bias.
extern "C" SGTC_INLINE void sgtc_tile_store(void* const* args, int64_t, int64_t row, int64_t column,
                                            V16f values, int64_t lanes) {
  float* to = static_cast<float*>(args[0]) + row * *static_cast<int64_t*>(args[1]) + column;
#ifdef SGTC_EPILOGUE
  store_activated(to, values, static_cast<float*>(args[2]) + column, lanes);
#else
  store_values(to, values, lanes);
#endif
}

extern "C" SGTC_INLINE void sgtc_tile_prefetch(void* const* args, int64_t, int64_t row,
                                               int64_t column) {
  __builtin_prefetch(static_cast<float*>(args[0]) + row * *static_cast<int64_t*>(args[1]) + column,
                     1);
}

namespace {

SGTC_INLINE void activate_row(float* row, const float* bias, int64_t columns) {
  int64_t i = 0;
  for (; i + 16 <= columns; i += 16) {
    store_activated(row + i, sgtc::kernels::load<V16f>(row + i), bias + i, 16);
  }
  for (; i < columns; ++i) store_activated(row + i, V16f{} + row[i], bias + i, 1);
}

}  // namespace

SGTC_KERNELS_END

namespace {

struct Product {
  int64_t rows, columns, depth;
  bool transpose_a, transpose_b;
};

constexpr int64_t kLayers[][3] = {{256, 768, 3072}, {256, 3072, 768},  {256, 768, 2304},
                                  {256, 768, 768},  {256, 768, 50257}, {1024, 384, 1536},
                                  {1024, 384, 384}, {1024, 768, 3072}, {64, 1024, 1024}};
constexpr size_t kProducts = 3 * std::size(kLayers);

// A layer of so many rows, inputs and outputs: forward, gradient of the input, of the weight.
constexpr Product product(size_t index) {
  const auto [rows, inputs, outputs] = kLayers[index / 3];
  switch (index % 3) {
    case 0:
      return {rows, outputs, inputs, false, false};
    case 1:
      return {rows, inputs, outputs, false, true};
    default:
      return {inputs, outputs, rows, true, false};
  }
}

constexpr MatmulShape shape_of(const Product& p) {
  MatmulShape s = {};
  s.rows = p.rows;
  s.columns = p.columns;
  s.depth = p.depth;
  s.a_row_stride = p.transpose_a ? 1 : p.depth;
  s.a_depth_stride = p.transpose_a ? p.rows : 1;
  s.b_depth_stride = p.transpose_b ? 1 : p.columns;
  s.b_column_stride = p.transpose_b ? p.depth : 1;
  s.block_rows = sgtc::kernels::kMaxBlockRows;
  s.block_columns = sgtc::kernels::kMaxBlockColumns;
#ifdef __AVX512F__
  s.wide_vectors = 1;
#endif
  return s;
}

template <size_t Index>
void run(void* const* args, void* const* tensors) {
  static constexpr MatmulShape kShape = shape_of(product(Index));
  const int64_t blocks = sgtc::kernels::ceil_divide(kShape.rows, kShape.block_rows) *
                         sgtc::kernels::ceil_divide(kShape.columns, kShape.block_columns);
  sgtc::kernels::multiply<float>(&kShape, args, tensors, 0, blocks);
}

template <size_t... Indices>
constexpr auto all_runs(std::index_sequence<Indices...>) {
  return std::array{run<Indices>...};
}

}  // namespace

extern "C" int64_t product_count() { return static_cast<int64_t>(kProducts); }

/// rows, columns, depth, transpose_a, transpose_b
extern "C" void describe_product(int64_t index, int64_t* to) {
  const Product p = product(static_cast<size_t>(index));
  const int64_t fields[] = {p.rows, p.columns, p.depth, p.transpose_a, p.transpose_b};
  std::memcpy(to, fields, sizeof(fields));
}

extern "C" void run_product(int64_t index, float* a, float* b, float* c, float* bias) {
  static constexpr auto kRuns = all_runs(std::make_index_sequence<kProducts>());
  int64_t columns = product(static_cast<size_t>(index)).columns;
  void* const args[] = {c, &columns, bias};
  void* const tensors[] = {a, b, c};
  kRuns[static_cast<size_t>(index)](args, tensors);
}

/// The pass over a result that follows a product without epilogue.
extern "C" void add_bias_and_activate(float* c, const float* bias, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) activate_row(c + row * columns, bias, columns);
}
