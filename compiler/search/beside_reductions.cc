#include "search/beside_reductions.h"

#include <algorithm>
#include <map>
#include <string>

#include "cost/group_time.h"
#include "simulate/simulate.h"

namespace sgtc {
namespace {

constexpr double kLonger = 2;          // than predicted, beside kernels
constexpr double kLateStart = 150e-6;  // seconds: ranks do not come to it at once

// From when a reduction may begin until it has surely ended, for each of a position.
std::vector<Span> reductions(const plan::Position& position, const SimulatedPosition& simulated) {
  std::map<std::string, bool> reduces;
  for (const plan::Task& task : position.tasks) {
    reduces[task.name] = task.kind == "all_reduce" || task.kind == "reduce_scatter";
  }
  std::vector<Span> spans;
  const std::vector<plan::Entry>& entries = position.schedules.at("train");
  for (size_t e = 0; e < entries.size(); ++e) {
    if (!reduces.at(entries[e].task)) continue;
    const Span& span = simulated.entries[e].span;
    const double length = (span.end - span.begin) * kLonger + kLateStart;
    spans.push_back({span.begin, span.begin + length});
  }
  return spans;
}

class Marker {
 public:
  Marker(const KernelizedGraph& program, const Hardware& hardware)
      : program_(program),
        seconds_(group_seconds(program, hardware, hardware.units)),
        beside_(program.groups.size()) {}

  // Calls of one entry, from its beginning on, each for its share of the entry's time.
  void mark(const Span& entry, const std::vector<int64_t>& groups, const std::vector<Span>& busy) {
    double all = 0;
    for (const int64_t group : groups) all += seconds_of(group);
    if (all == 0) return;
    double at = entry.begin;
    for (const int64_t group : groups) {
      const double end = at + seconds_of(group) * (entry.end - entry.begin) / all;
      const bool meets = std::any_of(busy.begin(), busy.end(), [&](const Span& span) {
        return at < span.end && span.begin < end;
      });
      if (meets && is_backward(group)) beside_[static_cast<size_t>(group)] = true;
      at = end;
    }
  }

  std::vector<bool> result() { return std::move(beside_); }

 private:
  double seconds_of(int64_t group) const {
    return group < 0 ? 0 : seconds_[static_cast<size_t>(group)];
  }

  // The update waits for all reductions.
  bool is_backward(int64_t group) const {
    return group >= 0 && program_.groups[static_cast<size_t>(group)].phase == Phase::kBackward;
  }

  const KernelizedGraph& program_;
  const std::vector<double> seconds_;
  std::vector<bool> beside_;
};

}  // namespace

std::vector<bool> groups_beside_reductions(const BuiltPlan& built, const KernelizedGraph& program,
                                           const Hardware& hardware) {
  const Simulation simulation = simulate(built.plan, hardware);
  Marker marker(program, hardware);
  for (size_t p = 0; p < built.plan.positions.size(); ++p) {
    const plan::Position& position = built.plan.positions[p];
    const std::vector<Span> busy = reductions(position, simulation.positions[p]);
    const std::vector<plan::Entry>& entries = position.schedules.at("train");
    for (size_t e = 0; e < entries.size(); ++e) {
      const auto groups = built.groups_of_calls[p].find(entries[e].task);
      if (groups == built.groups_of_calls[p].end()) continue;
      marker.mark(simulation.positions[p].entries[e].span, groups->second, busy);
    }
  }
  return marker.result();
}

}  // namespace sgtc
