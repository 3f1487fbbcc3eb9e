// The forward groups of a program in a row, with everything else hung on them: what is cut.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/kernelized_graph.h"

namespace sgtc {

struct Chain {
  /// Forward groups that are placed by the cut, in execution order; no views.
  std::vector<size_t> links;
  /// Per group: the link that it belongs to. For links their own number, for backward groups the
  /// last link whose nodes they differentiate (never one behind the backward groups that they
  /// depend on), kNone for others.
  std::vector<int32_t> link_of;
  /// Per group: a view of forward or backward, or a forward group that needs no state and no random
  /// number, directly or not. It belongs to no link and runs wherever it is read.
  std::vector<bool> floating;
  /// Per link: seconds of its forward and backward groups for one micro-batch.
  std::vector<double> seconds;
  /// Per cut c, between link c-1 and link c: bytes that cross it in both directions. Values
  /// that skip links cross every cut on their way.
  std::vector<int64_t> bytes;
};

/// `group_seconds`: of one call of each group.
Chain find_chain(const KernelizedGraph& program, const std::vector<double>& group_seconds);

}  // namespace sgtc
