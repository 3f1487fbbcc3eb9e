#include "search/stage_shapes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "cost/communication_time.h"
#include "cost/cost.h"
#include "partition/chain.h"
#include "recompute/choose_recompute.h"

namespace sgtc {
namespace {

constexpr int64_t kMostWork = 100'000;       // nodes of the problems that are solved
constexpr int64_t kMostMicroBatches = 4096;  // whose passes are followed
constexpr size_t kAllCuts = 64;              // so few links are cut before any of them

// What a stage takes for one micro-batch.
struct StageCost {
  double forward = 0;
  double backward = 0;  // with what is computed again
  int64_t excess = 0;   // bytes over the budget
};

struct Estimate {
  int64_t excess = 0;  // of all stages
  double seconds = 0;
  bool operator<(const Estimate& other) const {
    return std::tie(excess, seconds) < std::tie(other.excess, other.seconds);
  }
};

// Cuts are numbers of links: the first of each stage but the first stage.
struct Candidate {
  std::vector<size_t> cuts;
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
        micro_batches_(std::min(graph_.micro_batches, kMostMicroBatches)) {
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
    std::vector<size_t> cuts = own_cuts_;
    for (int64_t in_flight = std::min(stages_, micro_batches_); in_flight > 0;
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

  StageBegins begins_of(const std::vector<size_t>& cuts) const {
    StageBegins begins;
    for (const size_t cut : cuts) begins.push_back(begin_of(*step_.kernels, chain_, cut));
    return begins;
  }

  // Moves one cut at a time to the next place, as long as that helps.
  Candidate descend(Candidate best) {
    for (bool improves = true; improves && work_ < kMostWork;) {
      improves = false;
      const Candidate from = best;
      for (size_t s = 0; s < from.cuts.size(); ++s) {
        for (const bool later : {false, true}) {
          std::optional<std::vector<size_t>> cuts = moved(from.cuts, s, later);
          if (!cuts || work_ >= kMostWork) continue;
          const Estimate estimate = this->estimate(*cuts, from.in_flight);
          if (!(estimate < best.estimate)) continue;
          best = {std::move(*cuts), from.in_flight, estimate};
          improves = true;
        }
      }
    }
    return best;
  }

  std::optional<std::vector<size_t>> moved(std::vector<size_t> cuts, size_t s, bool later) const {
    if (later) {
      const auto next = std::upper_bound(places_.begin(), places_.end(), cuts[s]);
      if (next == places_.end()) return std::nullopt;
      cuts[s] = *next;
    } else {
      const auto next = std::lower_bound(places_.begin(), places_.end(), cuts[s]);
      if (next == places_.begin()) return std::nullopt;
      cuts[s] = *(next - 1);
    }
    const bool is_first = s == 0 || cuts[s - 1] < cuts[s];
    const bool is_last = s + 1 == cuts.size() || cuts[s] < cuts[s + 1];
    return is_first && is_last ? std::optional(cuts) : std::nullopt;
  }

  Estimate estimate(const std::vector<size_t>& cuts, int64_t in_flight) {
    std::optional<Placement> placement;
    std::vector<StageCost> stages;
    Estimate result;
    for (int64_t p = 0; p < stages_; ++p) {
      const auto at = static_cast<size_t>(p);
      const size_t begin = p == 0 ? 0 : cuts[at - 1];
      const size_t end = p + 1 == stages_ ? chain_.links.size() : cuts[at];
      const int64_t slots = slots_of(order(p, in_flight));
      const auto [known, is_new] = known_.try_emplace({p, begin, end, slots});
      if (is_new) {
        if (!placement) placement = partition_at(*step_.kernels, begins_of(cuts), hardware_);
        known->second = cost_of(*placement, p, slots);
      }
      stages.push_back(known->second);
      result.excess += known->second.excess;
    }
    result.seconds = pipeline_seconds(stages, cuts, in_flight);
    estimated_.push_back({cuts, in_flight, result});
    return result;
  }

  std::vector<PipelineStep> order(int64_t position, int64_t in_flight) const {
    return pipeline_order(step_.schedule, stages_, position, micro_batches_, in_flight);
  }

  StageCost cost_of(const Placement& placement, int64_t position, int64_t slots) {
    StageCost cost;
    for (size_t g = 0; g < step_.kernels->groups.size(); ++g) {
      if (!placement.runs(g, position)) continue;
      const Phase phase = step_.kernels->groups[g].phase;
      if (phase == Phase::kForward) cost.forward += costs_.group_seconds[g];
      if (phase == Phase::kBackward) cost.backward += costs_.group_seconds[g];
    }
    const RecomputeProblem problem =
        find_problem(*step_.kernels, placement, position, slots, costs_).problem;
    work_ += static_cast<int64_t>(problem.nodes.size());
    const int64_t budget = step_.budget - step_.other_bytes[static_cast<size_t>(position)] -
                           state_bytes(graph_, placement, position);
    const RecomputeCost again =
        evaluate(problem, choose_recompute(problem, budget, kExactNodes, kEstimateWork));
    cost.backward += again.seconds;
    cost.excess = std::max<int64_t>(0, again.peak_bytes - budget);
    return cost;
  }

  // When the last backward pass ends.
  double pipeline_seconds(const std::vector<StageCost>& stages, const std::vector<size_t>& cuts,
                          int64_t in_flight) const {
    const size_t count = stages.size();
    std::vector<std::vector<PipelineStep>> orders;
    for (size_t p = 0; p < count; ++p) orders.push_back(order(static_cast<int64_t>(p), in_flight));
    constexpr double kOpen = -1;
    const auto passes = static_cast<size_t>(micro_batches_);
    std::vector<std::vector<double>> forward(count, std::vector<double>(passes, kOpen));
    std::vector<std::vector<double>> backward = forward;
    std::vector<size_t> next(count, 0);
    std::vector<double> free(count, 0);
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t p = 0; p < count; ++p) {
        for (; next[p] < orders[p].size(); ++next[p], moves = true) {
          const auto m = static_cast<size_t>(orders[p][next[p]].micro_batch);
          const bool is_forward = orders[p][next[p]].phase == Phase::kForward;
          double ready = is_forward ? 0 : forward[p][m];
          if (is_forward && p > 0) {
            if (forward[p - 1][m] == kOpen) break;
            ready = forward[p - 1][m] + crossing(cuts[p - 1]);
          } else if (!is_forward && p + 1 < count) {
            if (backward[p + 1][m] == kOpen) break;
            ready = backward[p + 1][m] + crossing(cuts[p]);
          }
          free[p] =
              std::max(free[p], ready) + (is_forward ? stages[p].forward : stages[p].backward);
          (is_forward ? forward : backward)[p][m] = free[p];
        }
      }
    }
    return *std::max_element(free.begin(), free.end());
  }

  // Of one direction.
  double crossing(size_t cut) const {
    CommunicationWork work;
    work.kind = "send";
    work.bytes = chain_.bytes[cut] / 2;
    work.blocks = hardware_.communication_blocks;
    return work.bytes == 0 ? 0 : communication_seconds(hardware_, work);
  }

  const PlacedStep& step_;
  const RerunCosts& costs_;
  const Hardware& hardware_;
  const Graph& graph_;
  const Chain chain_;
  const int64_t stages_;
  const int64_t micro_batches_;
  std::vector<size_t> own_cuts_;
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
