#include "passes/thread_mapping.h"

#include <algorithm>
#include <set>
#include <vector>

namespace sgtc::gpu {
namespace {

// Enough threads to hide the latency of memory on every multiprocessor of a large GPU.
constexpr int64_t kWantedThreads = 1 << 16;
// Bytes of one access of a thread.
constexpr int64_t kAccessBytes = 16;
// Of nests with reductions, whatever their elements: the order of a sum may not depend on what else
// is computed beside it. 16 bytes of the narrowest floats.
constexpr int64_t kLanesOfReductions = 8;
constexpr int64_t kThreadsOfShortRows = 128;
constexpr int64_t kMostKeptRegisters = 96;
constexpr int64_t kMostSlicesOfRow = 512;
// Rows that do not stay in registers: several blocks on a multiprocessor, so that one of them reads
// while another one joins its threads.
constexpr int64_t kSlicesOfLongRow = 256;
// Leaves eight neighbours in a block, which read whole sectors.
constexpr int64_t kMostSlicesOfColumns = 32;
constexpr int64_t kMostTogether = 8;
// That one thread should have asked for before it waits; more where it has no next steps.
constexpr int64_t kWantedBytes = 128;
constexpr int64_t kWantedBytesOfKept = 256;

// The narrowest and the widest element that moves along the vector axis.
struct ElementSizes {
  int64_t narrowest = kAccessBytes;
  int64_t widest = 2;
};

bool moves(const LoopNest& nest, const AffineIndex& index) {
  for (size_t i = static_cast<size_t>(nest.vector_begin); i < index.coefficients.size(); ++i) {
    if (index.coefficients[i] != 0) return true;
  }
  return false;
}

ElementSizes element_sizes(const LoopNest& nest) {
  ElementSizes sizes;
  auto visit = [&](const AffineIndex& index, DType dtype) {
    if (!moves(nest, index)) return;
    sizes.narrowest = std::min<int64_t>(sizes.narrowest, size_of(dtype));
    sizes.widest = std::max<int64_t>(sizes.widest, size_of(dtype));
  };
  for (const Expression& expression : nest.expressions) {
    if (expression.kind == Expression::Kind::kLoad) visit(expression.index, expression.dtype);
  }
  for (const Store& store : nest.stores) {
    visit(store.index, nest.expressions[static_cast<size_t>(store.value)].dtype);
  }
  return sizes;
}

// The most lanes that divide the vector axis, so that no vector is cut. Without reductions one
// access of the narrowest elements, and at most two of the widest.
int64_t choose_lanes(const LoopNest& nest, int64_t columns) {
  int64_t lanes = kLanesOfReductions;
  if (nest.order == ReductionOrder::kNone) {
    const ElementSizes sizes = element_sizes(nest);
    lanes = std::min(kAccessBytes / std::clamp<int64_t>(sizes.narrowest, 2, 8),
                     2 * kAccessBytes / sizes.widest);
  }
  while (columns % lanes != 0) lanes /= 2;
  return lanes;
}

bool reads(const Expression& reader, ExpressionId id) {
  auto in_index = [&](const AffineIndex& index) {
    return std::any_of(index.computed.begin(), index.computed.end(),
                       [&](const auto& term) { return term.expression == id; });
  };
  return std::count(reader.operands.begin(), reader.operands.end(), id) > 0 ||
         in_index(reader.index) ||
         std::any_of(reader.guards.begin(), reader.guards.end(),
                     [&](const Guard& guard) { return in_index(guard.index); });
}

// The most values per element that a sweep leaves to later ones: those that new values read there.
// In words of 32 bits.
int64_t kept_words(const LoopNest& nest) {
  const std::vector<std::vector<ExpressionId>> work = element_work(nest);
  std::set<ExpressionId> known;
  int64_t most = 0;
  for (size_t sweep = 0; sweep + 1 < work.size(); ++sweep) {
    known.insert(work[sweep].begin(), work[sweep].end());
    std::set<ExpressionId> left;
    for (size_t later = sweep + 1; later < work.size(); ++later) {
      for (ExpressionId id : work[later]) {
        if (known.count(id) != 0) continue;
        const Expression& reader = nest.expressions[static_cast<size_t>(id)];
        for (ExpressionId kept : known) {
          if (reads(reader, kept)) left.insert(kept);
        }
      }
    }
    int64_t words = 0;
    for (ExpressionId id : left) {
      words += size_of(nest.expressions[static_cast<size_t>(id)].dtype) > 4 ? 2 : 1;
    }
    most = std::max(most, words);
  }
  return most;
}

// So many steps at once that their loads are `kWantedBytes` or less.
int64_t choose_together(const LoopNest& nest, const ThreadMapping& mapping) {
  int64_t bytes = 0;
  for (const Expression& expression : nest.expressions) {
    if (expression.kind != Expression::Kind::kLoad || expression.level != Level::kElement) continue;
    bytes += size_of(expression.dtype) * (moves(nest, expression.index) ? mapping.lanes : 1);
  }
  bytes = std::max<int64_t>(1, bytes);
  if (mapping.is_kept) {
    return std::clamp<int64_t>(kWantedBytesOfKept / bytes, 1, mapping.turns());
  }
  // Elements wait in registers until the maximum of all is known.
  const bool is_softmax = std::any_of(
      nest.expressions.begin(), nest.expressions.end(), [](const Expression& expression) {
        return expression.kind == Expression::Kind::kReduce && expression.operands.size() == 2;
      });
  const int64_t most = is_softmax ? kMostTogether / 2 : kMostTogether;
  int64_t together = 1;
  while (2 * together <= std::min({most, mapping.turns(), kWantedBytes / bytes})) {
    together *= 2;
  }
  return together;
}

// A warp serves a row, and as many more threads as it takes for few steps each.
void share_rows(const LoopNest& nest, ThreadMapping& mapping) {
  auto grow_while = [&](int64_t most, auto wanted) {
    while (mapping.slices < most && mapping.slices < mapping.steps && wanted()) mapping.slices *= 2;
  };
  grow_while(kWarp, [] { return true; });
  grow_while(kMostSlicesOfRow, [&] { return mapping.turns() > kMostKeptTurns; });
  grow_while(kMostSlicesOfRow, [&] { return mapping.items * mapping.slices < kWantedThreads; });
  if (mapping.turns() > kMostKeptTurns) mapping.slices = kSlicesOfLongRow;
  mapping.threads = std::max(kThreadsOfShortRows, mapping.slices);
  const int64_t registers = kept_words(nest) * mapping.lanes * mapping.turns();
  mapping.is_kept = mapping.turns() <= kMostKeptTurns && registers <= kMostKeptRegisters;
  mapping.together = choose_together(nest, mapping);
}

// By the number of results and not by the items, which depend on how the vector axis was chosen.
void share_columns(const LoopNest& nest, ThreadMapping& mapping, int64_t results) {
  while (mapping.slices < kMostSlicesOfColumns && mapping.slices < mapping.steps &&
         results / kLanesOfReductions * mapping.slices < kWantedThreads) {
    mapping.slices *= 2;
  }
  mapping.together = choose_together(nest, mapping);
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
    share_rows(nest, mapping);
    return mapping;
  }
  mapping.items *= mapping.vectors;
  if (nest.order == ReductionOrder::kSequential) {
    share_columns(nest, mapping, grid.rows * grid.columns);
  }
  return mapping;
}

}  // namespace sgtc::gpu
