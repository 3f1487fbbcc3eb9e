// Finds attention that is spelled out: the matching half of `recognize_attention`.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace sgtc {

/// A matrix per head of an operand: [.., rows, depth], or [.., depth, rows] if `transposed`, whose
/// leading dimensions have `heads` elements in all.
struct AttentionOperand {
  ValueId value = kNone;
  bool transposed = false;
  int64_t heads = 1;
};

/// What is added to the scores, or a condition under which they count.
struct AttentionMask {
  ValueId value = kNone;
  bool shows = true;  // of a condition: whether true shows the key or hides it
  double low = 0;     // of a condition: what hidden scores become
  Shape scores;       // the shape of the scores to which it broadcasts
};

struct AttentionPattern {
  AttentionOperand q, k, v;
  double scale = 1;
  std::vector<AttentionMask> masks;
  bool causal = false;
  bool zero_empty = false;
  Shape scores;  // of the softmax
};

/// The pattern that ends with the product `mixed`, if there is one, or that the operator attention
/// `mixed` itself stands for. Masks are not judged yet.
/// `uses`, by value: operands, outputs and updates that read it.
std::optional<AttentionPattern> match_attention(const Graph& graph, const Node& mixed,
                                                const std::vector<int64_t>& uses);

}  // namespace sgtc
