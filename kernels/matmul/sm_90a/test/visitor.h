// What the tile visitors of the tests share. Each visitor stands for an epilogue that the code
// generator makes, in a file of its own with the kernels that are built with it.
#pragma once

#include "hopper/staging.h"
#include "matmul/sm_90a/test/launch.h"

namespace sgtc::kernels {

using namespace sgtc::hopper;

typedef uint32_t V4u __attribute__((vector_size(16)));
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

/// Stores the first `lanes` of eight consecutive elements, which are aligned to 16 bytes.
SGTC_DEVICE void store_columns(SGTC_GLOBAL uint16_t* to, V8f values, int64_t lanes) {
  if (lanes == 8) {
    *reinterpret_cast<SGTC_GLOBAL V4u*>(to) =
        V4u{pack(values[0], values[1]), pack(values[2], values[3]), pack(values[4], values[5]),
            pack(values[6], values[7])};
    return;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
    if (i < lanes) to[i] = static_cast<uint16_t>(pack(values[i], 0));
  }
}

/// Eight consecutive elements that no one writes while the kernel runs, zeros from `lanes` on.
SGTC_DEVICE V8f load_columns(const SGTC_GLOBAL uint16_t* from, int64_t lanes) {
  V8f values = {};
  if (lanes == 8) {
    uint32_t pairs[4];
    load_constant((const void*)from, pairs);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) {
      values[2 * i] = __builtin_bit_cast(float, pairs[i] << 16);
      values[2 * i + 1] = __builtin_bit_cast(float, pairs[i] & 0xffff0000);
    }
    return values;
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
    if (i < lanes) values[i] = __builtin_bit_cast(float, static_cast<uint32_t>(from[i]) << 16);
  }
  return values;
}

/// Brings the 128 bytes at an address into the L2 cache.
SGTC_DEVICE void prefetch(const SGTC_GLOBAL uint16_t* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/// values + bias[column …], a vector of floats that is readable up to a multiple of 16.
SGTC_DEVICE V8f add_bias(V8f values, const SGTC_GLOBAL uint16_t* bias, int64_t column,
                         int64_t lanes) {
  if (lanes == 0) return values;
  const auto* floats = reinterpret_cast<const SGTC_GLOBAL float*>(bias) + column;
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; ++i) {
    uint32_t words[4];
    load_constant((const void*)(floats + 4 * i), words);
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) values[4 * i + j] += __builtin_bit_cast(float, words[j]);
  }
  return values;
}

SGTC_DEVICE float tanh(float x) {
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
/// GELU in its tanh form.
SGTC_DEVICE V8f gelu(V8f values) {
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i) {
    const float x = values[i];
    const float inner = x * __builtin_fmaf(0.035677408136f * x, x, 0.7978845608f);
    values[i] = __builtin_fmaf(0.5f * x, tanh(inner), 0.5f * x);
  }
  return values;
}

}  // namespace sgtc::kernels

/// A kernel of a test: form and layout of launch.h.
#define SGTC_MATMUL_TEST_KERNEL(name)                                                             \
  extern "C" void sgtc_matmul_sm_90a_##name(const sgtc::kernels::MatmulSm90aShape*, void* const*, \
                                            const sgtc::kernels::MatmulSm90aTensors*);            \
  extern "C" __attribute__((nvptx_kernel)) void name(sgtc::kernels::MatmulTestLaunch launch) {    \
    sgtc_matmul_sm_90a_##name(&launch.shape, &launch.result, &launch.tensors);                    \
  }

/// The halves of a visitor that reads nothing ahead.
#define SGTC_LOADS_NOTHING                                                                      \
  extern "C" __attribute__((always_inline)) void sgtc_tile_load(void* const*, int64_t, int64_t, \
                                                                int64_t, uint32_t*) {}          \
  extern "C" __attribute__((always_inline)) void sgtc_tile_store_loaded(                        \
      void* const* args, int64_t batch, int64_t row, int64_t column, sgtc::hopper::V8f values,  \
      const uint32_t*) {                                                                        \
    sgtc_tile_store(args, batch, row, column, values, 8);                                       \
  }

/// A visitor that reads nothing worth prefetching or reading ahead.
#define SGTC_NO_PREFETCH                                                                   \
  SGTC_LOADS_NOTHING                                                                       \
  extern "C" __attribute__((always_inline)) void sgtc_tile_prefetch(void* const*, int64_t, \
                                                                    int64_t, int64_t) {}

/// Opens the definition of the tile visitor.
#define SGTC_TILE_VISITOR                                                                      \
  extern "C" __attribute__((always_inline)) void sgtc_tile_store(                              \
      void* const* args, int64_t batch, int64_t row, int64_t column, sgtc::hopper::V8f values, \
      int64_t lanes)
