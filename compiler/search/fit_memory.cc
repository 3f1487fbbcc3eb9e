#include "search/fit_memory.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "recompute/choose_recompute.h"
#include "recompute/find_problem.h"
#include "recompute/rerun_nodes.h"
#include "search/group_times.h"
#include "search/memory_report.h"
#include "simulate/job.h"
#include "simulate/simulate.h"

namespace sgtc {
namespace {

constexpr int kMostPlans = 6;
constexpr size_t kShapes = 2;          // that are planned beside the first
constexpr size_t kManyNodes = 10'000;  // of a graph whose plan takes seconds
constexpr int kMostPlansOfMany = 3;
constexpr size_t kShapesOfMany = 1;
constexpr size_t kFewNodes = 400;  // that may run again, of all positions
constexpr size_t kShapesOfFewNodes = 24;
constexpr double kWellUsed = 0.985;  // of the budget: more is not worth another plan
constexpr double kAimed = 0.9925;    // of the budget, by a last plan: amid what is well used
constexpr double kPeakStep = 0.01;   // of the budget: peaks that differ by less are alike

// A plan as far as it is compared with others.
struct Attempt {
  size_t plan = 0;
  std::vector<int64_t> peaks;  // of each position
  double seconds = 0;
};

int64_t largest(const std::vector<int64_t>& bytes) {
  return *std::max_element(bytes.begin(), bytes.end());
}

class Fitter {
 public:
  Fitter(const Graph& graph, const MemoryRequest& request, const Hardware& hardware,
         const StepPlanner& planner)
      : graph_(graph), request_(request), hardware_(hardware), planner_(planner) {}

  FittedStep run(const StepShape& shape, bool searches) {
    if (request_.budget == 0 && request_.recompute != Recompute::kFull) return plan_once(shape);
    Fit fit;
    for (const StepShape& other : fit_shape(fit, shape, searches)) fit_shape(fit, other, false);
    return {fit.best.plan, fit.best.seconds, fit.seconds_without, largest(fit.best.peaks),
            std::move(fit.live)};
  }

 private:
  struct Fit {
    Attempt best;
    std::string live;  // at the peak of the best attempt's fullest position
    double seconds_without = 0;
  };

  // A position's problem and what its plans need beside it.
  struct Position {
    PositionProblem found;
    RecomputeChoice choice;
    int64_t overhead = 0;
  };

  FittedStep plan_once(const StepShape& shape) const {
    const PlannedStep planned = planner_(graph_, shape);
    return {0, 0, 0, largest(arenas(*planned.plan)), ""};
  }

  static std::vector<int64_t> arenas(const plan::Plan& plan) {
    std::vector<int64_t> bytes;
    for (const plan::Position& position : plan.positions) bytes.push_back(position.arena_bytes);
    return bytes;
  }

  bool fits(const Attempt& attempt) const {
    return request_.budget == 0 || largest(attempt.peaks) <= request_.budget;
  }

  bool is_better(const Attempt& a, const Attempt& b) const {
    return std::pair(missed(a), a.seconds) < std::pair(missed(b), b.seconds);
  }

  // 0 of what fits, else the peak in steps that are so coarse that nobody pays time for less.
  double missed(const Attempt& attempt) const {
    if (fits(attempt)) return 0;
    const auto budget = static_cast<double>(request_.budget);
    return std::ceil(static_cast<double>(largest(attempt.peaks)) / budget / kPeakStep);
  }

  PlannedStep plan(const Graph& graph, const StepShape& shape, Attempt& attempt) {
    const PlannedStep planned = planner_(graph, shape);
    attempt.plan = plans_++;
    attempt.seconds = simulate(*planned.plan, hardware_).seconds;
    attempt.peaks = arenas(*planned.plan);
    return planned;
  }

  void consider(Fit& fit, const Attempt& attempt, const PlannedStep& planned) const {
    if (!fit.best.peaks.empty() && !is_better(attempt, fit.best)) return;
    fit.best = attempt;
    fit.live.clear();
    if (fits(attempt)) return;
    const auto fullest = std::max_element(attempt.peaks.begin(), attempt.peaks.end());
    fit.live = live_bytes_text(*planned.plan, fullest - attempt.peaks.begin());
  }

  // Plans the step in a shape, with what it has to compute again; the other shapes to try, if that
  // is asked for.
  std::vector<StepShape> fit_shape(Fit& fit, StepShape shape, bool searches) {
    Attempt attempt;
    const PlannedStep whole = plan(graph_, shape, attempt);
    // What runs again takes time in its stage, but is chosen for these cuts.
    shape.begins = begins_of(*whole.kernels, *whole.placement);
    if (fit.seconds_without == 0) fit.seconds_without = attempt.seconds;
    if (request_.recompute != Recompute::kFull) consider(fit, attempt, whole);
    const bool is_done = request_.recompute == Recompute::kNone ||
                         (request_.recompute == Recompute::kAuto && fits(attempt));
    if (is_done) return {};
    const RerunCosts costs =
        group_times(*whole.kernels, hardware_,
                    hardware_.units_of_rank(RankLayout(*whole.plan, hardware_).size()));
    std::vector<Position> positions = find_positions(whole, shape, costs, attempt);
    if (request_.recompute == Recompute::kFull) {
      for (Position& position : positions) {
        position.choice = recompute_everything(position.found.problem);
      }
      const PlannedStep planned = plan(rerun(positions), shape, attempt);
      consider(fit, attempt, planned);
      return {};
    }
    std::vector<StepShape> others;
    const bool is_hopeless = has_many_nodes() && !has_room(positions);
    if (searches && !is_hopeless) others = other_shapes(whole, positions, costs);
    approach(fit, attempt, positions, shape);
    return others;
  }

  std::vector<Position> find_positions(const PlannedStep& planned, const StepShape& shape,
                                       const RerunCosts& costs, const Attempt& attempt) const {
    std::vector<Position> positions;
    for (int64_t p = 0; p < shape.stages; ++p) {
      const int64_t slots = slots_of(
          pipeline_order(planned.schedule, shape.stages, p, graph_.micro_batches, shape.in_flight));
      Position position;
      position.found = find_problem(*planned.kernels, *planned.placement, p, slots, costs);
      const RecomputeProblem& problem = position.found.problem;
      position.choice.assign(problem.nodes.size(), false);
      position.overhead =
          attempt.peaks[static_cast<size_t>(p)] - evaluate(problem, position.choice).peak_bytes;
      positions.push_back(std::move(position));
    }
    return positions;
  }

  bool uses_well(int64_t peak) const { return peak >= kWellUsed * request_.budget; }

  bool has_many_nodes() const { return graph_.nodes.size() > kManyNodes; }

  // Whether positions together have room for what no choice lowers.
  bool has_room(const std::vector<Position>& positions) const {
    double room = 0;
    for (const Position& position : positions) {
      room += static_cast<double>(request_.budget - position.overhead);
    }
    return room >= 0;
  }

  std::vector<StepShape> other_shapes(const PlannedStep& whole,
                                      const std::vector<Position>& positions,
                                      const RerunCosts& costs) const {
    if (positions.size() == 1) return {};
    PlacedStep step{whole.kernels, whole.placement, whole.schedule, {}, request_.budget};
    size_t nodes = 0;
    for (size_t p = 0; p < positions.size(); ++p) {
      step.other_bytes.push_back(positions[p].overhead -
                                 state_bytes(graph_of(whole), *whole.placement, p));
      nodes += positions[p].found.nodes.size();
    }
    const size_t most = has_many_nodes() ? kShapesOfMany : kShapes;
    return sgtc::other_shapes(step, costs, hardware_,
                              nodes <= kFewNodes ? kShapesOfFewNodes : most);
  }

  static const Graph& graph_of(const PlannedStep& planned) { return *planned.kernels->graph; }

  // Plans again and again, with what the last plan needed beyond its model, until its memory is
  // well used or the fullest position can do with no less. A choice for the whole budget may miss
  // it by little every time, so the last one is for less if none was within it.
  void approach(Fit& fit, Attempt attempt, std::vector<Position>& positions,
                const StepShape& shape) {
    std::vector<std::vector<bool>> known;
    const int most = has_many_nodes() ? kMostPlansOfMany : kMostPlans;
    bool has_fitted = false;
    for (int i = 1; i < most; ++i) {
      const bool is_last = i + 1 == most;
      choose(positions, attempt, is_last && !has_fitted ? kAimed : 1);
      const std::vector<bool> again = nodes_again(positions);
      if (std::find(known.begin(), known.end(), again) != known.end()) return;
      known.push_back(again);
      const PlannedStep planned = plan(rerun_nodes(graph_, again), shape, attempt);
      consider(fit, attempt, planned);
      has_fitted = has_fitted || fits(attempt);
      if (fits(attempt) && uses_well(largest(attempt.peaks))) return;
      bool is_least = false;
      for (size_t p = 0; p < positions.size() && p < attempt.peaks.size(); ++p) {
        Position& position = positions[p];
        const int64_t peak = evaluate(position.found.problem, position.choice).peak_bytes;
        is_least = is_least || (attempt.peaks[p] == largest(attempt.peaks) &&
                                peak > request_.budget - position.overhead);
        position.overhead = attempt.peaks[p] - peak;
      }
      if (is_least && !fits(attempt)) return;
    }
  }

  // For a share of the budget. Positions that fit as they are keep everything, and those that use
  // their memory well what was chosen for them.
  void choose(std::vector<Position>& positions, const Attempt& attempt, double share) const {
    const auto aim = static_cast<int64_t>(share * static_cast<double>(request_.budget));
    for (size_t p = 0; p < positions.size(); ++p) {
      Position& position = positions[p];
      const bool is_chosen = std::count(position.choice.begin(), position.choice.end(), true) > 0;
      const bool is_done = !is_chosen || uses_well(attempt.peaks[p]);
      if (is_done && attempt.peaks[p] <= request_.budget) continue;
      position.choice = choose_recompute(position.found.problem, aim - position.overhead);
    }
  }

  std::vector<bool> nodes_again(const std::vector<Position>& positions) const {
    std::vector<bool> again(graph_.nodes.size(), false);
    for (const Position& position : positions) {
      for (size_t n = 0; n < position.choice.size(); ++n) {
        if (position.choice[n]) again[static_cast<size_t>(position.found.nodes[n])] = true;
      }
    }
    return again;
  }

  Graph rerun(const std::vector<Position>& positions) const {
    return rerun_nodes(graph_, nodes_again(positions));
  }

  const Graph& graph_;
  const MemoryRequest& request_;
  const Hardware& hardware_;
  const StepPlanner& planner_;
  size_t plans_ = 0;
};

}  // namespace

FittedStep fit_memory(const Graph& graph, int64_t stages, const MemoryRequest& request,
                      const Hardware& hardware, const StepPlanner& planner) {
  return Fitter(graph, request, hardware, planner).run({stages}, true);
}

FittedStep fit_in_shape(const Graph& graph, const StepShape& shape, const MemoryRequest& request,
                        const Hardware& hardware, const StepPlanner& planner) {
  return Fitter(graph, request, hardware, planner).run(shape, false);
}

}  // namespace sgtc
