// Offsets below a limit by exhaustive search.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/plan_offsets.h"

namespace sgtc {

/// What a search found out.
struct CanonicalSearch {
  /// A placement whose peak is at most the limit, if one was found.
  std::optional<Offsets> placement;
  /// Without a placement: there is none, which was proved before the steps were spent.
  bool is_impossible = false;
  int64_t steps = 0;  // that were taken
};

/// Looks for offsets of `intervals`, which it takes to be without holes, with a peak of at most
/// `limit` bytes, each size rounded up to its alignment. Takes at most about `most_steps` steps of
/// constant time, so that the result depends on the arguments only. Exact where all alignments are
/// equal.
CanonicalSearch search_canonical(const std::vector<Interval>& intervals, int64_t limit,
                                 int64_t most_steps);

}  // namespace sgtc
