#pragma once

#include "ir/graph.h"

namespace sgtc {

/// Which reductions are split, by the parallelism that a target needs. "Rows" are results whose
/// elements are neighbours, which many threads can share; "columns" have other results in between.
struct ReductionSplit {
  int64_t many_elements = 65536;  // reduced elements of a result up to here are left whole
  int64_t many_rows = 64;         // so many results are left whole
  int64_t many_columns = 64;
  int64_t smallest_chunk = 512;
  int64_t largest_chunk = 8192;
};

/// For the threads of a CPU; for a GPU, where a column has but a few threads and all of them
/// together should be a hundred thousand and more.
inline constexpr ReductionSplit kCpuReductionSplit;
inline constexpr ReductionSplit kGpuReductionSplit = {2048, 64, 16384, 128, 512};

/// Splits reductions that have little parallelism into two stages.
///
/// A reduce_sum, max, min or prod over adjacent dimensions with many reduced elements and few
/// results becomes a reduction of chunks followed by a reduction over the chunks, so that threads
/// and blocks can share the first. The chunk size depends on the shape and the kind of target
/// alone, so the bits of the result do not depend on the machine or on what is fused. Runs after
/// gradients and the optimizer exist and before fusion.
Graph split_reductions(Graph graph, const ReductionSplit& rule = kCpuReductionSplit);

}  // namespace sgtc
