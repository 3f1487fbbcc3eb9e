// The ranks that a simulation looks at.
//
// A plan has one text per position, and the replicas of a position differ in offsets alone. So they
// do the same at the same time wherever they share a host with the same neighbours, and one of them
// stands for all: a mesh of 16 × 256 needs 16 simulated ranks. That is so when all ranks are on one
// host, when a host has whole positions, and when a position has whole hosts. Otherwise every rank
// is simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/hardware.h"
#include "plan/format.h"

namespace sgtc {

/// A rank, with those of its position and host that it stands for.
struct SimulatedRank {
  int64_t position = 0;
  int64_t replica = 0;  // dp coordinate * size of tp + tp coordinate
  int64_t host = 0;
  int64_t weight = 1;  // ranks of this host that do the same, itself among them
};

/// A plan's mesh on a machine. Ranks are numbered (pp * DP + dp) * TP + tp and fill one host after
/// the other.
class RankLayout {
 public:
  RankLayout(const plan::Plan& plan, const Hardware& hardware);

  const std::vector<SimulatedRank>& ranks() const { return ranks_; }
  int64_t size() const { return pp_ * replicas(); }
  int64_t ranks_per_host() const { return per_host_; }
  int64_t replicas() const { return dp_ * tp_; }
  /// Whether one rank of each position stands for all.
  bool is_alike() const { return alike_; }

  int64_t host_of(int64_t position, int64_t replica) const {
    return (position * replicas() + replica) / per_host_;
  }
  /// Index into `ranks` of the one that stands for the replica of the position.
  size_t index_of(int64_t position, int64_t replica) const;
  /// The ranks that a communicator over `axis` joins with this one: their (position, replica).
  std::vector<std::pair<int64_t, int64_t>> members(const std::string& axis,
                                                   const SimulatedRank& rank) const;

 private:
  int64_t pp_ = 1;
  int64_t dp_ = 1;
  int64_t tp_ = 1;
  int64_t per_host_ = 1;
  bool alike_ = true;
  std::vector<SimulatedRank> ranks_;
};

}  // namespace sgtc
