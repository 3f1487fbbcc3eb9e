// A part of a graph that runs for some rows of a batch after others.
#pragma once

#include <optional>
#include <vector>

#include "passes/row_form.h"

namespace sgtc {

/// Around a product with many more results per row than it has operands, such as the scores of a
/// vocabulary: everything that reads or makes values of that width, forward and backward, and what
/// lies between. Only values that are `kNarrower` times narrower, and sums over the rows, leave it.
struct RowRegion {
  struct Part {
    NodeId node = kNone;
    RowForm form;
  };

  int64_t rows = 0;
  std::vector<Part> parts;     // in execution order
  std::vector<ValueId> ends;   // results that are used outside, in execution order
  std::vector<bool> contains;  // per node
  /// Per node outside: depends on the region. Those of the forward phase have to follow it into its
  /// last phase.
  std::vector<bool> follows;
  Phase phase = Phase::kForward;  // the last one of its nodes
};

inline constexpr int64_t kNarrower = 8;

/// The region around node `product`. Nothing where it is no such product, where its values are
/// outputs, or where they meet a node that has no form by rows (row_form.h).
std::optional<RowRegion> find_row_region(const Graph& graph, NodeId product);

}  // namespace sgtc
