#include "search/stage_shapes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "cost/cost.h"
#include "partition/chain.h"
#include "partition/pipeline_time.h"
#include "recompute/choose_recompute.h"

namespace sgtc {
namespace {

constexpr int64_t kMostWork = 100'000;  // nodes of the problems that are solved
constexpr size_t kAllCuts = 64;         // so few links are cut before any of them

// What a stage takes for one micro-batch.
struct StageCost {
  StageSeconds seconds;  // with what is computed again
  int64_t excess = 0;    // bytes over the budget
};

struct Estimate {
  int64_t excess = 0;  // of all stages
  double seconds = 0;
  bool operator<(const Estimate& other) const {
    return std::tie(excess, seconds) < std::tie(other.excess, other.seconds);
  }
};

struct Candidate {
  Cuts cuts;
  int64_t in_flight = 0;
  Estimate estimate;
};

class ShapeSearch {
 public:
  ShapeSearch(const PlacedStep& step, const RerunCosts& costs, const Hardware& hardware)
      : step_(step),
        costs_(costs),
        hardware_(hardware),
        graph_(*step.kernels->graph),
        chain_(find_chain(*step.kernels, costs.group_seconds)),
        stages_(step.placement->stages),
        time_(chain_, hardware, step.schedule, graph_.micro_batches) {
    for (size_t link = 1; link < chain_.links.size(); ++link) {
      if (stage_of(link) != stage_of(link - 1)) own_cuts_.push_back(link);
    }
    places_ = good_cuts(*step.kernels, chain_);
    if (chain_.links.size() <= kAllCuts) {
      places_.clear();
      for (size_t link = 1; link < chain_.links.size(); ++link) places_.push_back(link);
    }
  }

  std::vector<StepShape> run(size_t most) {
    std::vector<Candidate> found;  // the best of each number in flight, then all others
    Cuts cuts = own_cuts_;
    for (int64_t in_flight = std::min(stages_, graph_.micro_batches); in_flight > 0;
         in_flight = stages_ > 4 ? in_flight / 2 : in_flight - 1) {
      found.push_back(descend({cuts, in_flight, estimate(cuts, in_flight)}));
      cuts = found.back().cuts;
    }
    const auto bests = static_cast<int64_t>(found.size());
    found.insert(found.end(), estimated_.begin(), estimated_.end());
    const auto is_faster = [](const Candidate& a, const Candidate& b) {
      return a.estimate < b.estimate;
    };
    std::stable_sort(found.begin(), found.begin() + bests, is_faster);
    std::stable_sort(found.begin() + bests, found.end(), is_faster);
    std::vector<StepShape> shapes;
    for (const Candidate& candidate : found) {
      const bool is_own = candidate.cuts == own_cuts_ && candidate.in_flight >= stages_;
      const StepShape shape = shape_of(candidate);
      const bool is_new = std::find(shapes.begin(), shapes.end(), shape) == shapes.end();
      if (!is_own && is_new && shapes.size() < most) shapes.push_back(shape);
    }
    return shapes;
  }

 private:
  int64_t stage_of(size_t link) const {
    return step_.placement->groups[chain_.links[link]].front();
  }

  StepShape shape_of(const Candidate& candidate) const {
    return {stages_, begins_of(candidate.cuts), candidate.in_flight};
  }

  StageBegins begins_of(const Cuts& cuts) const {
    StageBegins begins;
    for (const size_t cut : cuts) begins.push_back(begin_of(*step_.kernels, chain_, cut));
    return begins;
  }

  // Moves one cut at a time to the next place, as long as that helps.
  Candidate descend(Candidate best) {
    for (bool improves = true; improves && work_ < kMostWork;) {
      improves = false;
      for (Cuts& cuts : neighbours(best.cuts, places_)) {
        if (work_ >= kMostWork) break;
        const Estimate estimate = this->estimate(cuts, best.in_flight);
        if (!(estimate < best.estimate)) continue;
        best = {std::move(cuts), best.in_flight, estimate};
        improves = true;
      }
    }
    return best;
  }

  Estimate estimate(const Cuts& cuts, int64_t in_flight) {
    std::optional<Placement> placement;
    std::vector<StageSeconds> stages;
    Estimate result;
    for (int64_t p = 0; p < stages_; ++p) {
      const auto at = static_cast<size_t>(p);
      const size_t begin = p == 0 ? 0 : cuts[at - 1];
      const size_t end = p + 1 == stages_ ? chain_.links.size() : cuts[at];
      const int64_t slots =
          slots_of(pipeline_order(step_.schedule, stages_, p, graph_.micro_batches, in_flight));
      const auto [known, is_new] = known_.try_emplace({p, begin, end, slots});
      if (is_new) {
        if (!placement) placement = partition_at(*step_.kernels, begins_of(cuts), hardware_);
        known->second = cost_of(*placement, p, slots);
      }
      stages.push_back(known->second.seconds);
      result.excess += known->second.excess;
    }
    result.seconds = time_.seconds(cuts, stages, in_flight);
    estimated_.push_back({cuts, in_flight, result});
    return result;
  }

  StageCost cost_of(const Placement& placement, int64_t position, int64_t slots) {
    StageCost cost;
    for (size_t g = 0; g < step_.kernels->groups.size(); ++g) {
      if (!placement.runs(g, position)) continue;
      const Phase phase = step_.kernels->groups[g].phase;
      if (phase == Phase::kForward) cost.seconds.forward += costs_.group_seconds[g];
      if (phase == Phase::kBackward) cost.seconds.backward += costs_.group_seconds[g];
    }
    const RecomputeProblem problem =
        find_problem(*step_.kernels, placement, position, slots, costs_).problem;
    work_ += static_cast<int64_t>(problem.nodes.size());
    const int64_t budget = step_.budget - step_.other_bytes[static_cast<size_t>(position)] -
                           state_bytes(graph_, placement, position);
    const RecomputeCost again = evaluate(problem, choose_recompute(problem, budget));
    cost.seconds.backward += again.seconds;
    cost.excess = std::max<int64_t>(0, again.peak_bytes - budget);
    return cost;
  }

  const PlacedStep& step_;
  const RerunCosts& costs_;
  const Hardware& hardware_;
  const Graph& graph_;
  const Chain chain_;
  const int64_t stages_;
  const PipelineTime time_;
  Cuts own_cuts_;
  std::vector<size_t> places_;  // of cuts, ascending
  // By position, first and last link, and slots.
  std::map<std::tuple<int64_t, size_t, size_t, int64_t>, StageCost> known_;
  std::vector<Candidate> estimated_;  // all of them
  int64_t work_ = 0;
};

}  // namespace

int64_t state_bytes(const Graph& graph, const Placement& placement, int64_t position) {
  int64_t bytes = 0;
  for (const ValueId state : graph.states) {
    if (placement.holds(state, position)) bytes += bytes_of(graph.type(state));
  }
  return bytes;
}

std::vector<StepShape> other_shapes(const PlacedStep& step, const RerunCosts& costs,
                                    const Hardware& hardware, size_t most) {
  return ShapeSearch(step, costs, hardware).run(most);
}

}  // namespace sgtc
