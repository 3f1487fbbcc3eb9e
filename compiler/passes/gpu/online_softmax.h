#pragma once

#include "passes/loop_nest.h"

namespace sgtc::gpu {

/// Lets a sum of exp(x - max x) over long rows be computed in the sweep that finds the maximum, so
/// that rows which fit into no registers are read once instead of twice.
///
/// Such a sum becomes a reduction with two operands, x and its maximum: a thread adds exp(x - m)
/// for the maximum m of what it has seen, and scales the sum where m grows (Milakov, Gimelshein:
/// Online normalizer calculation for softmax, 2018). Rows of few steps per thread stay as they are.
/// The order of the sum then follows from the shape as before; its bits are those of a reduction of
/// its own, which never meets a maximum from outside of the nest.
void join_softmax_sums(LoopNest& nest);

}  // namespace sgtc::gpu
