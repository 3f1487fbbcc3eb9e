#include "recompute/recompute_problem.h"

#include <algorithm>

namespace sgtc {
namespace {

// When the backward phase needs each value and each chosen node.
class Needs {
 public:
  Needs(const RecomputeProblem& problem, const RecomputeChoice& choice)
      : problem_(problem), choice_(choice), runs_(problem.nodes.size(), false) {
    for (const RecomputeProblem::Value& value : problem.values) {
      first_.push_back(value.first_backward);
      last_.push_back(value.last_backward);
    }
    for (size_t n = problem.nodes.size(); n-- > 0;) visit(n);
  }

  bool runs(size_t node) const { return runs_[node]; }
  // Of the backward phase; -1: it is not needed.
  int64_t first(int32_t value) const { return first_[static_cast<size_t>(value)]; }
  int64_t last(int32_t value) const { return last_[static_cast<size_t>(value)]; }
  int64_t node_time(size_t node) const {
    int64_t time = -1;
    for (const int32_t result : problem_.nodes[node].results) {
      if (first(result) >= 0 && (time < 0 || first(result) < time)) time = first(result);
    }
    return time;
  }

 private:
  void visit(size_t n) {
    const int64_t time = node_time(n);
    runs_[n] = choice_[n] && time >= 0;
    if (!runs_[n]) return;
    for (const RecomputeProblem::Operand& operand : problem_.nodes[n].operands) {
      int64_t& first = first_[static_cast<size_t>(operand.value)];
      int64_t& last = last_[static_cast<size_t>(operand.value)];
      first = first < 0 ? time : std::min(first, time);
      last = std::max(last, time);
    }
  }

  const RecomputeProblem& problem_;
  const RecomputeChoice& choice_;
  std::vector<bool> runs_;
  std::vector<int64_t> first_;
  std::vector<int64_t> last_;
};

}  // namespace

RecomputeCost evaluate(const RecomputeProblem& problem, const RecomputeChoice& choice) {
  const Needs needs(problem, choice);
  RecomputeCost cost;
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    if (!needs.runs(n)) continue;
    cost.seconds += problem.nodes[n].seconds;
    for (const RecomputeProblem::Operand& operand : problem.nodes[n].operands) {
      const int32_t maker = problem.values[static_cast<size_t>(operand.value)].node;
      if (!needs.runs(static_cast<size_t>(maker))) cost.seconds += operand.seconds;
    }
  }
  std::vector<int64_t> change(problem.other_bytes.size() + 1, 0);
  const auto add = [&](int64_t from, int64_t to, int64_t bytes) {
    change[static_cast<size_t>(from)] += bytes;
    change[static_cast<size_t>(to) + 1] -= bytes;
  };
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const RecomputeProblem::Value& value = problem.values[v];
    const auto id = static_cast<int32_t>(v);
    const bool again = needs.runs(static_cast<size_t>(value.node));
    if (needs.first(id) >= 0 && !again) {
      add(value.made, std::max(value.last_forward, needs.last(id)), value.bytes);
      add(0, problem.backward_end, (problem.slots - 1) * value.bytes);
      continue;
    }
    if (!value.stored) continue;
    add(value.made, value.last_forward, value.bytes);
    if (needs.first(id) < 0) continue;
    add(needs.node_time(static_cast<size_t>(value.node)), needs.last(id), value.bytes);
  }
  int64_t live = 0;
  for (size_t t = 0; t < problem.other_bytes.size(); ++t) {
    live += change[t];
    if (live + problem.other_bytes[t] <= cost.peak_bytes) continue;
    cost.peak_bytes = live + problem.other_bytes[t];
    cost.peak_time = static_cast<int64_t>(t);
  }
  return cost;
}

RecomputeChoice needed_nodes(const RecomputeProblem& problem, const RecomputeChoice& choice) {
  const Needs needs(problem, choice);
  RecomputeChoice needed;
  for (size_t n = 0; n < problem.nodes.size(); ++n) needed.push_back(needs.runs(n));
  return needed;
}

}  // namespace sgtc
