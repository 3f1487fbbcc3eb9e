// Where the batch is in every value of a forward graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace sgtc {

enum class BatchKind : uint8_t {
  kFree,   // the same for every micro-batch
  kRows,   // one part per sample, computed from that sample alone
  kSum,    // a sum over the samples
  kTotal,  // a function of sums over samples, not linear in them
  kMixed,  // anything else
};

struct BatchFact {
  BatchKind kind = BatchKind::kFree;
  /// kRows: the dimension of which the batch is the major part: size = rows * k.
  int64_t dim = 0;
  /// kSum: it was divided by an element count that includes the batch: a mean over the samples.
  /// kTotal: one of the sums was.
  bool counted = false;
  /// kMixed: the first node that mixes samples.
  NodeId culprit = kNone;
  bool operator==(const BatchFact&) const = default;
};

/// Per value of `graph`, in the order of its values.
///
/// Feeds whose first dimension is a multiple of graph.micro_batch_rows carry the batch there; other
/// feeds, states and constants are free. Each operator has a rule; an operator that combines
/// samples in another way than by a sum gives kMixed, and so does everything computed from it.
/// `normalize` over the batch is allowed: its statistics are those of the micro-batch by
/// definition.
std::vector<BatchFact> find_batch_axes(const Graph& graph);

/// Whether `id` is a constant, equal in all elements, that can be an element count of a batch of
/// `rows` rows: a positive multiple of it.
bool is_batch_count(const Graph& graph, ValueId id, int64_t rows);

}  // namespace sgtc
