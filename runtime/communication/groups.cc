#include "groups.h"

#include <algorithm>
#include <map>

#include "plan_memory.h"

namespace sgtc::runtime {
namespace {

int64_t bytes_of(const std::vector<plan::Argument>& arguments, const plan::Position& position) {
  int64_t bytes = 0;
  for (const plan::Argument& argument : arguments) {
    const auto buffer =
        std::find_if(position.buffers.begin(), position.buffers.end(),
                     [&](const plan::Buffer& b) { return b.name == argument.buffer; });
    if (buffer == position.buffers.end()) die_of_bad_plan("there is no buffer " + argument.buffer);
    bytes += argument.bytes > 0 ? argument.bytes : buffer->bytes;
  }
  return bytes;
}

void add_channel(RankGroup& group, int64_t from, int64_t to, int64_t bytes) {
  for (RankGroup::Channel& channel : group.channels) {
    if (channel.from != from || channel.to != to) continue;
    channel.bytes = std::max(channel.bytes, bytes);
    return;
  }
  group.channels.push_back({from, to, bytes});
}

// Adds what `task` of the position with pipeline coordinate `pp` exchanges over the group.
void add_task(RankGroup& group, const plan::Task& task, int64_t pp,
              const plan::Position& position) {
  const int64_t bytes = std::max(bytes_of(task.inputs, position), bytes_of(task.outputs, position));
  if (task.kind == "send") {
    add_channel(group, pp, task.peer, bytes);
  } else if (task.kind == "receive") {
    add_channel(group, task.peer, pp, bytes);
  } else {
    group.collective_bytes = std::max(group.collective_bytes, bytes);
  }
}

int64_t& coordinate(Coordinates& coordinates, const std::string& axis) {
  if (axis == "pp") return coordinates.pp;
  if (axis == "dp") return coordinates.dp;
  if (axis == "tp") return coordinates.tp;
  die_of_bad_plan("there is no axis " + axis);
}

RankGroup make_group(const plan::Plan& plan, const plan::Communicator& communicator,
                     Coordinates first) {
  RankGroup group;
  group.communicator = communicator.name;
  for (int64_t i = 0; i < axis_size(plan, communicator.axis); ++i) {
    coordinate(first, communicator.axis) = i;
    group.ranks.push_back(rank_at(plan, first));
    if (i > 0 && communicator.axis != "pp") continue;
    const plan::Position& position = plan.positions[static_cast<size_t>(first.pp)];
    for (const plan::Task& task : position.tasks) {
      if (task.communicator == communicator.name) add_task(group, task, first.pp, position);
    }
  }
  return group;
}

}  // namespace

int64_t axis_size(const plan::Plan& plan, const std::string& axis) {
  for (const plan::Axis& each : plan.mesh) {
    if (each.name == axis) return each.size;
  }
  return 1;
}

int64_t world_size(const plan::Plan& plan) {
  return axis_size(plan, "pp") * axis_size(plan, "dp") * axis_size(plan, "tp");
}

Coordinates coordinates_of(const plan::Plan& plan, int64_t rank) {
  const int64_t dp = axis_size(plan, "dp");
  const int64_t tp = axis_size(plan, "tp");
  return {rank / (dp * tp), rank / tp % dp, rank % tp};
}

int64_t rank_at(const plan::Plan& plan, const Coordinates& coordinates) {
  return (coordinates.pp * axis_size(plan, "dp") + coordinates.dp) * axis_size(plan, "tp") +
         coordinates.tp;
}

int64_t RankGroup::member_of(int64_t rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : found - ranks.begin();
}

std::vector<RankGroup> groups_of(const plan::Plan& plan) {
  if (static_cast<int64_t>(plan.positions.size()) != axis_size(plan, "pp")) {
    die_of_bad_plan("positions and the axis pp differ in number");
  }
  std::vector<RankGroup> groups;
  for (const plan::Communicator& communicator : plan.communicators) {
    for (int64_t rank = 0; rank < world_size(plan); ++rank) {
      Coordinates coordinates = coordinates_of(plan, rank);
      if (coordinate(coordinates, communicator.axis) != 0) continue;
      groups.push_back(make_group(plan, communicator, coordinates));
    }
  }
  return groups;
}

}  // namespace sgtc::runtime
