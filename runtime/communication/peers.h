// The other ranks of a job, for a device that connects to theirs by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "watch.h"

namespace sgtc::runtime {

struct Peers {
  int64_t rank = 0;
  std::vector<int64_t> nodes;  // of each rank; ranks of equal node share a machine
  /// Small host-side data of all ranks, in rank order. A collective of all ranks.
  std::function<std::vector<std::string>(std::string_view)> all_gather;
  Watch& watch;

  bool on_one_host() const {
    return std::count(nodes.begin(), nodes.end(), nodes.front()) ==
           static_cast<int64_t>(nodes.size());
  }
};

}  // namespace sgtc::runtime
