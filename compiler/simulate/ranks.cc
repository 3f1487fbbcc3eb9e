#include "simulate/ranks.h"

#include <algorithm>

namespace sgtc {

RankLayout::RankLayout(const plan::Plan& plan, const Hardware& hardware) {
  for (const plan::Axis& axis : plan.mesh) {
    if (axis.name == "pp") pp_ = axis.size;
    if (axis.name == "dp") dp_ = axis.size;
    if (axis.name == "tp") tp_ = axis.size;
  }
  per_host_ = hardware.ranks_per_host > 0 ? std::min(hardware.ranks_per_host, size()) : size();
  alike_ = per_host_ == size() || per_host_ % replicas() == 0 || replicas() % per_host_ == 0;
  for (int64_t position = 0; position < pp_; ++position) {
    const int64_t simulated = alike_ ? 1 : replicas();
    const int64_t weight = alike_ ? std::min(per_host_, replicas()) : 1;
    for (int64_t replica = 0; replica < simulated; ++replica) {
      ranks_.push_back({position, replica, host_of(position, replica), weight});
    }
  }
}

size_t RankLayout::index_of(int64_t position, int64_t replica) const {
  return static_cast<size_t>(alike_ ? position : position * replicas() + replica);
}

std::vector<std::pair<int64_t, int64_t>> RankLayout::members(const std::string& axis,
                                                             const SimulatedRank& rank) const {
  const int64_t size = axis == "pp" ? pp_ : axis == "dp" ? dp_ : tp_;
  std::vector<std::pair<int64_t, int64_t>> result;
  for (int64_t i = 0; i < size; ++i) {
    int64_t replica = rank.replica;
    if (axis == "dp") replica = i * tp_ + rank.replica % tp_;
    if (axis == "tp") replica = rank.replica / tp_ * tp_ + i;
    result.emplace_back(axis == "pp" ? i : rank.position, replica);
  }
  return result;
}

}  // namespace sgtc
