#include "passes/thread_mapping.h"

#include <algorithm>

namespace sgtc::gpu {
namespace {

constexpr int64_t kThreads = 256;
// Enough threads to hide the latency of memory on every multiprocessor of a large GPU.
constexpr int64_t kWantedThreads = 1 << 18;
// Steps that one thread should take of a row before more threads share it: with several sweeps, the
// rows that are in flight at once should fit into the second cache.
constexpr int64_t kStepsPerThread = 8;
constexpr int64_t kMostSlicesOfRow = 512;
// Leaves four neighbours in a block, which read whole sectors.
constexpr int64_t kMostSlicesOfColumns = 64;
// Bytes of one access of a thread.
constexpr int64_t kAccessBytes = 16;
// Of nests with reductions, whatever their elements: the order of a sum may not depend on what else
// is computed beside it.
constexpr int64_t kLanesOfReductions = 4;

// The widest element that moves along the vector axis.
int64_t widest_element(const LoopNest& nest) {
  int64_t widest = 2;
  auto visit = [&](const AffineIndex& index, DType dtype) {
    for (size_t i = static_cast<size_t>(nest.vector_begin); i < index.coefficients.size(); ++i) {
      if (index.coefficients[i] != 0) widest = std::max<int64_t>(widest, size_of(dtype));
    }
  };
  for (const Expression& expression : nest.expressions) {
    if (expression.kind == Expression::Kind::kLoad) visit(expression.index, expression.dtype);
  }
  for (const Store& store : nest.stores) {
    visit(store.index, nest.expressions[static_cast<size_t>(store.value)].dtype);
  }
  return widest;
}

// The most lanes that divide the vector axis, so that no vector is cut.
int64_t choose_lanes(const LoopNest& nest, int64_t columns) {
  int64_t lanes = nest.order == ReductionOrder::kNone ? kAccessBytes / widest_element(nest)
                                                      : kLanesOfReductions;
  while (columns % lanes != 0) lanes /= 2;
  return lanes;
}

void share_rows(ThreadMapping& mapping) {
  while (mapping.slices < kMostSlicesOfRow && mapping.slices < mapping.steps) {
    const bool is_long = mapping.steps > kStepsPerThread * mapping.slices;
    const bool is_small = mapping.items * mapping.slices < kWantedThreads;
    if (!is_long && !is_small) break;
    mapping.slices *= 2;
  }
  mapping.threads = std::max(kThreads, mapping.slices);
}

// By the number of results and not by the items, which depend on how the vector axis was chosen.
void share_columns(ThreadMapping& mapping, int64_t results) {
  while (mapping.slices < kMostSlicesOfColumns && mapping.slices < mapping.steps &&
         results / kLanesOfReductions * mapping.slices < kWantedThreads) {
    mapping.slices *= 2;
  }
}

}  // namespace

ThreadMapping map_threads(const LoopNest& nest) {
  const BlockGrid grid = block_grid(nest);
  ThreadMapping mapping;
  mapping.lanes = choose_lanes(nest, grid.columns);
  mapping.vectors = grid.columns / mapping.lanes;
  mapping.items = grid.rows;
  mapping.steps = reduced_extent(nest);
  if (nest.order == ReductionOrder::kLanes) {
    mapping.steps /= mapping.lanes;
    share_rows(mapping);
    return mapping;
  }
  mapping.items *= mapping.vectors;
  if (nest.order == ReductionOrder::kSequential) {
    share_columns(mapping, grid.rows * grid.columns);
  }
  return mapping;
}

}  // namespace sgtc::gpu
