// The other ranks of a job, for a device that connects to theirs by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "watch.h"

namespace sgtc::runtime {

struct Peers {
  int64_t rank = 0;
  bool on_one_host = true;
  /// Small host-side data of all ranks, in rank order. A collective of all ranks.
  std::function<std::vector<std::string>(std::string_view)> all_gather;
  Watch& watch;
};

}  // namespace sgtc::runtime
