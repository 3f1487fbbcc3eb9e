#include "recompute/exact_search.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sgtc {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

class Search {
 public:
  Search(const RecomputeProblem& problem, int64_t budget, const RecomputeCost& known, int64_t steps)
      : problem_(problem),
        budget_(budget),
        best_(known),
        steps_(steps),
        choice_(problem.nodes.size(), false),
        live_(problem.other_bytes) {
    for (const RecomputeProblem::Value& value : problem.values) {
      needs_.push_back({value.first_backward, value.last_backward, 0});
      if (value.stored) add(value.made, value.last_forward, value.bytes);
    }
  }

  std::optional<RecomputeChoice> run() {
    visit(problem_.nodes.size());
    return found_;
  }

 private:
  // What the decided nodes need of a value in the backward phase.
  struct Need {
    int64_t first = -1;
    int64_t last = -1;
    double seconds = 0;  // that its readers take more if it does not run again
  };

  void add(int64_t from, int64_t to, int64_t bytes) {
    for (int64_t t = from; t <= to; ++t) live_[at(t)] += bytes;
  }

  bool fits(int64_t peak) const { return peak <= budget_; }

  bool can_be_better(int64_t peak) const {
    return fits(best_.peak_bytes) ? fits(peak) && seconds_ < best_.seconds
                                  : peak < best_.peak_bytes;
  }

  // All ways to decide the nodes before `end`.
  void visit(size_t end) {
    const int64_t peak = *std::max_element(live_.begin(), live_.end());
    if (!can_be_better(peak) || steps_-- <= 0) return;
    if (end == 0) {
      best_.seconds = seconds_;
      best_.peak_bytes = peak;
      found_ = choice_;
      return;
    }
    const size_t n = end - 1;
    keep(n);
    if (problem_.nodes[n].may_rerun && time_of(n) >= 0) run_again(n);
  }

  // When it would run again; -1: nobody needs it.
  int64_t time_of(size_t n) const {
    int64_t time = -1;
    for (const int32_t result : problem_.nodes[n].results) {
      const int64_t first = needs_[at(result)].first;
      if (first >= 0 && (time < 0 || first < time)) time = first;
    }
    return time;
  }

  void keep(size_t n) {
    const double seconds = seconds_;
    change_kept(n, 1);
    for (const int32_t result : problem_.nodes[n].results) seconds_ += needs_[at(result)].seconds;
    visit(n);
    change_kept(n, -1);
    seconds_ = seconds;
  }

  // Bytes of results that are needed, beyond those of the forward phase.
  void change_kept(size_t n, int64_t sign) {
    for (const int32_t result : problem_.nodes[n].results) {
      const RecomputeProblem::Value& value = problem_.values[at(result)];
      const Need& need = needs_[at(result)];
      if (need.first < 0) continue;
      const int64_t from = value.stored ? value.last_forward + 1 : value.made;
      add(from, std::max(value.last_forward, need.last), sign * value.bytes);
      add(0, problem_.backward_end, sign * (problem_.slots - 1) * value.bytes);
    }
  }

  void run_again(size_t n) {
    const RecomputeProblem::Node& node = problem_.nodes[n];
    const int64_t time = time_of(n);
    std::vector<Need> before;
    for (const RecomputeProblem::Operand& operand : node.operands) {
      Need& need = needs_[at(operand.value)];
      before.push_back(need);
      need.first = need.first < 0 ? time : std::min(need.first, time);
      need.last = std::max(need.last, time);
      need.seconds += operand.seconds;
    }
    change_again(n, time, 1);
    const double seconds = std::exchange(seconds_, seconds_ + node.seconds);
    choice_[n] = true;
    visit(n);
    choice_[n] = false;
    seconds_ = seconds;
    change_again(n, time, -1);
    for (size_t i = node.operands.size(); i-- > 0;) {
      needs_[at(node.operands[i].value)] = before[i];
    }
  }

  void change_again(size_t n, int64_t time, int64_t sign) {
    for (const int32_t result : problem_.nodes[n].results) {
      const RecomputeProblem::Value& value = problem_.values[at(result)];
      const Need& need = needs_[at(result)];
      if (value.stored && need.first >= 0) add(time, need.last, sign * value.bytes);
    }
  }

  const RecomputeProblem& problem_;
  const int64_t budget_;
  RecomputeCost best_;
  int64_t steps_;
  std::optional<RecomputeChoice> found_;
  // Of what is decided:
  RecomputeChoice choice_;
  double seconds_ = 0;
  std::vector<int64_t> live_;  // bytes at each time, at least
  std::vector<Need> needs_;    // of each value
};

}  // namespace

std::optional<RecomputeChoice> search_exactly(const RecomputeProblem& problem, int64_t budget,
                                              const RecomputeCost& known, int64_t steps) {
  return Search(problem, budget, known, steps).run();
}

}  // namespace sgtc
