// What the tile visitors of the tests share. Each visitor stands for an epilogue that the code
// generator makes, in a file of its own with the kernels that are built with it.
#pragma once

#include "hopper/instructions.h"
#include "matmul/sm_90a/test/launch.h"

namespace sgtc::kernels {

typedef float V16f __attribute__((vector_size(64)));
typedef uint32_t V4u __attribute__((vector_size(16)));
typedef float V4f __attribute__((vector_size(16)));
#define SGTC_GLOBAL __attribute__((address_space(1)))

/// `args` of sgtc_tile_store.
struct VisitorArguments {
  SGTC_GLOBAL uint16_t* result;
  SGTC_GLOBAL uint16_t* second;
  int64_t stride;
  int64_t batch_rows;
};

SGTC_DEVICE VisitorArguments visitor_arguments(void* const* args) {
  return *reinterpret_cast<const VisitorArguments*>(args);
}
SGTC_DEVICE int64_t element_at(const VisitorArguments& args, int64_t batch, int64_t row,
                               int64_t column) {
  return (batch * args.batch_rows + row) * args.stride + column;
}

SGTC_DEVICE uint32_t pack(float low, float high) {
  uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

/// Stores the first `lanes` of 16 consecutive elements; vectors are aligned to 32 bytes.
SGTC_DEVICE void store_columns(SGTC_GLOBAL uint16_t* to, V16f values, int64_t lanes) {
  if (lanes == 16) {
    auto* vectors = reinterpret_cast<SGTC_GLOBAL V4u*>(to);
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; ++i) {
      const int j = 8 * i;
      vectors[i] = V4u{pack(values[j], values[j + 1]), pack(values[j + 2], values[j + 3]),
                       pack(values[j + 4], values[j + 5]), pack(values[j + 6], values[j + 7])};
    }
    return;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    if (i < lanes) to[i] = static_cast<uint16_t>(pack(values[i], 0));
  }
}

/// 16 consecutive elements, zeros from `lanes` on.
SGTC_DEVICE V16f load_columns(const SGTC_GLOBAL uint16_t* from, int64_t lanes) {
  V16f values = {};
  if (lanes == 16) {
    const auto* vectors = reinterpret_cast<const SGTC_GLOBAL V4u*>(from);
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; ++i) {
      const uint32_t pair = vectors[i / 4][i % 4];
      values[2 * i] = __builtin_bit_cast(float, pair << 16);
      values[2 * i + 1] = __builtin_bit_cast(float, pair & 0xffff0000);
    }
    return values;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    if (i < lanes) values[i] = __builtin_bit_cast(float, static_cast<uint32_t>(from[i]) << 16);
  }
  return values;
}

/// values + bias[column …], a vector of floats that is readable up to a multiple of 16.
SGTC_DEVICE V16f add_bias(V16f values, const SGTC_GLOBAL uint16_t* bias, int64_t column,
                          int64_t lanes) {
  if (lanes == 0) return values;
  const auto* vectors =
      reinterpret_cast<const SGTC_GLOBAL V4f*>(bias) + column / 4;
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) values[i] += vectors[i / 4][i % 4];
  return values;
}

SGTC_DEVICE float tanh(float x) {
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
/// GELU in its tanh form.
SGTC_DEVICE V16f gelu(V16f values) {
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i) {
    const float x = values[i];
    const float inner = x * (0.7978845608f + 0.035677408136f * x * x);
    values[i] = 0.5f * x + 0.5f * x * tanh(inner);
  }
  return values;
}

}  // namespace sgtc::kernels

/// A kernel of a test: form and layout of launch.h.
#define SGTC_MATMUL_TEST_KERNEL(name)                                                       \
  extern "C" void sgtc_matmul_sm_90a_##name(const sgtc::kernels::MatmulSm90aShape*,         \
                                            void* const*,                                   \
                                            const sgtc::kernels::MatmulSm90aTensors*);      \
  extern "C" __attribute__((nvptx_kernel)) void name(sgtc::kernels::MatmulTestLaunch launch) { \
    sgtc_matmul_sm_90a_##name(&launch.shape, &launch.result, &launch.tensors);              \
  }

/// Opens the definition of the tile visitor.
#define SGTC_TILE_VISITOR                                                                      \
  extern "C" __attribute__((always_inline)) void sgtc_tile_store(                              \
      void* const* args, int64_t batch, int64_t row, int64_t column, sgtc::kernels::V16f values, \
      int64_t lanes)
