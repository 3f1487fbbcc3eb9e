// Kernels for the tests of attention, whose visitor stores the bare output.
#pragma once

#include "attention/sm_90a/test/launch.h"
#include "matmul/sm_90a/test/visitor.h"

using namespace sgtc::kernels;

SGTC_NO_PREFETCH

SGTC_TILE_VISITOR {
  const VisitorArguments a = visitor_arguments(args);
  store_columns(a.result + element_at(a, batch, row, column), values, lanes);
}

/// A kernel of a test: FORM of attention/sm_90a/launch.h.
#define SGTC_ATTENTION_TEST_KERNEL(name)                                                 \
  extern "C" void sgtc_attention_sm_90a_##name(const AttentionSm90aShape*, void* const*, \
                                               const AttentionSm90aTensors*);            \
  extern "C" __attribute__((nvptx_kernel)) void name(AttentionTestLaunch launch) {       \
    sgtc_attention_sm_90a_##name(&launch.shape, &launch.result, &launch.tensors);        \
  }

/// The same of its gradient.
#define SGTC_ATTENTION_GRADIENT_TEST_KERNEL(name)                                          \
  extern "C" void sgtc_attention_sm_90a_##name(const AttentionSm90aShape*, void* const*,   \
                                               const AttentionGradientSm90aTensors*);      \
  extern "C" __attribute__((nvptx_kernel)) void name(AttentionGradientTestLaunch launch) { \
    sgtc_attention_sm_90a_##name(&launch.shape, &launch.result, &launch.tensors);          \
  }
