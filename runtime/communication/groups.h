// The communicators of a plan, one per set of ranks that it joins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/format.h"

namespace sgtc::runtime {

/// A rank's place in the mesh: rank = (pp * DP + dp) * TP + tp.
struct Coordinates {
  int64_t pp = 0;
  int64_t dp = 0;
  int64_t tp = 0;
  bool operator==(const Coordinates&) const = default;
};

/// Product of the axes.
int64_t world_size(const plan::Plan& plan);
/// Size of an axis; 1 if the mesh does not name it.
int64_t axis_size(const plan::Plan& plan, const std::string& axis);
Coordinates coordinates_of(const plan::Plan& plan, int64_t rank);
int64_t rank_at(const plan::Plan& plan, const Coordinates& coordinates);

/// Ranks that one communicator joins, with what they exchange over it: enough to set its memory
/// aside. The ranks are in the order of their coordinate on the axis, which numbers the members.
struct RankGroup {
  struct Channel {
    int64_t from = 0;  // members
    int64_t to = 0;
    int64_t bytes = 0;  // of the largest message
  };
  std::string communicator;
  std::vector<int64_t> ranks;
  int64_t collective_bytes = -1;  // of the largest collective, the larger side; -1: has none
  std::vector<Channel> channels;

  /// -1 if the rank is not a member.
  int64_t member_of(int64_t rank) const;
};

/// All groups of a plan, in an order that every rank of the job computes alike.
std::vector<RankGroup> groups_of(const plan::Plan& plan);

}  // namespace sgtc::runtime
