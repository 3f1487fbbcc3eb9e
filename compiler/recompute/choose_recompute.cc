// Choosing what runs again.
//
// If memory had a price per byte that is kept, the best choice would be a minimum cut: a value that
// is needed is on the source's side, a node that runs again too, and the edges that leave are what
// is paid: a kept value's bytes, a node's time. One cut weighs all chains of the graph against each
// other. So the search is one over prices: the lowest price at which the peak fits, and between the
// choices just below and above it those that differ in a part of the graph only, since parts that
// do not touch can be chosen apart. In a model of equal layers this decides layer by layer, and
// costs no more than the last step over the budget.
//
// A price per byte knows nothing about time: at a high price it would keep the step's inputs alone,
// and the whole forward phase would run again at once and be live. So cuts are made on the graph
// with *walls*: places in the forward phase where few bytes are live. What crosses a wall never
// runs again, so that only what lies between two walls is live twice. The search tries walls at
// several distances, none too, and takes the cheapest choice; peaks are those of `evaluate`, which
// knows the time of everything. Then the best one is changed in single parts, in all nodes of a
// kind, of which each layer has one, and in single nodes.
//
// Graphs of few nodes are then searched exactly (exact_search.h). Left out: several copies of a
// node in the backward phase, prices that vary with time, and the exact optimum of large graphs:
// integer programs of that size take minutes (Jain et al., Checkmate, 2020).
#include "recompute/choose_recompute.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "recompute/exact_search.h"
#include "recompute/min_cut.h"
#include "recompute/walls.h"

namespace sgtc {
namespace {

constexpr double kUnits = 1e12;              // that all nodes cost together
constexpr double kMostUnits = 1e14;          // that one value may cost at the highest price
constexpr int kPrices = 12;                  // halvings of the range of prices
constexpr int64_t kExactSteps = 20'000'000;  // of the exact search: far more than it takes

using Nodes = std::vector<size_t>;

size_t at(int32_t id) { return static_cast<size_t>(id); }

struct Candidate {
  RecomputeChoice choice;
  RecomputeCost cost;
};

class Chooser {
 public:
  Chooser(const RecomputeProblem& problem, int64_t budget) : problem_(problem), budget_(budget) {
    for (size_t n = 0; n < problem.nodes.size(); ++n) {
      if (problem.nodes[n].may_rerun) movable_.push_back(n);
      all_seconds_ += problem.nodes[n].seconds;
    }
    for (const RecomputeProblem::Value& value : problem.values) {
      largest_ = std::max(largest_, static_cast<double>(value.bytes));
    }
  }

  RecomputeChoice run(size_t exact_nodes, int64_t work) {
    consider(RecomputeChoice(problem_.nodes.size(), false));
    if (fits(best_.cost)) return best_.choice;
    for (const std::vector<bool>& walls : all_walls(problem_)) search_prices(walls);
    improve(work);
    if (movable_.size() <= exact_nodes) {
      const auto exact = search_exactly(problem_, budget_, best_.cost, kExactSteps);
      if (exact) best_ = priced(*exact);
    }
    return needed_nodes(problem_, best_.choice);
  }

  // With everything between walls at each distance.
  RecomputeChoice everything() {
    best_ = {};
    for (const std::vector<bool>& walls : all_walls(problem_))
      consider(cut(walls, highest_price()));
    return needed_nodes(problem_, best_.choice);
  }

 private:
  // Prices are in units per byte.
  double highest_price() const { return kMostUnits / largest_; }
  double lowest_price() const { return 1 / largest_; }

  bool fits(const RecomputeCost& cost) const { return cost.peak_bytes <= budget_; }

  Candidate priced(RecomputeChoice choice) const {
    RecomputeCost cost = evaluate(problem_, choice);
    return {std::move(choice), cost};
  }

  bool is_better(const RecomputeCost& a, const RecomputeCost& b) const {
    if (fits(a) != fits(b)) return fits(a);
    if (fits(a)) return std::pair(a.seconds, a.peak_bytes) < std::pair(b.seconds, b.peak_bytes);
    return std::pair(a.peak_bytes, a.seconds) < std::pair(b.peak_bytes, b.seconds);
  }

  RecomputeCost consider(const RecomputeChoice& choice) {
    Candidate candidate = priced(choice);
    const RecomputeCost cost = candidate.cost;
    if (best_.choice.empty() || is_better(cost, best_.cost)) best_ = std::move(candidate);
    return cost;
  }

  // ---- Prices

  int32_t value_vertex(size_t value) const {
    return static_cast<int32_t>(2 + problem_.nodes.size() + value);
  }
  static int32_t node_vertex(size_t node) { return static_cast<int32_t>(2 + node); }

  int64_t units(double seconds) const {
    return all_seconds_ > 0 ? std::llround(seconds / all_seconds_ * kUnits) : 0;
  }

  // The cheapest choice at a price per kept byte.
  RecomputeChoice cut(const std::vector<bool>& is_wall, double price) const {
    constexpr int32_t kSource = 0;
    constexpr int32_t kSink = 1;
    MinCut graph(value_vertex(problem_.values.size()), kSource, kSink);
    std::vector<bool> reruns(problem_.nodes.size());
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      const RecomputeProblem::Node& node = problem_.nodes[n];
      reruns[n] = node.may_rerun && std::none_of(node.results.begin(), node.results.end(),
                                                 [&](int32_t r) { return is_wall[at(r)]; });
    }
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      const RecomputeProblem::Node& node = problem_.nodes[n];
      if (!reruns[n]) continue;
      graph.add_edge(node_vertex(n), kSink, units(node.seconds));
      for (const RecomputeProblem::Operand& operand : node.operands) {
        graph.add_edge(node_vertex(n), value_vertex(at(operand.value)), MinCut::kInfinite);
        const size_t maker = at(problem_.values[at(operand.value)].node);
        graph.add_edge(node_vertex(n), reruns[maker] ? node_vertex(maker) : kSink,
                       units(operand.seconds));
      }
    }
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const RecomputeProblem::Value& value = problem_.values[v];
      if (value.first_backward >= 0) {
        graph.add_edge(kSource, value_vertex(v), MinCut::kInfinite);
      }
      graph.add_edge(value_vertex(v), reruns[at(value.node)] ? node_vertex(at(value.node)) : kSink,
                     std::llround(price * static_cast<double>(value.bytes)));
    }
    const std::vector<bool> side = graph.source_side();
    RecomputeChoice choice;
    for (size_t n = 0; n < problem_.nodes.size(); ++n) choice.push_back(side[at(node_vertex(n))]);
    return choice;
  }

  // From the lowest price that is worth something, halving its logarithm.
  void search_prices(const std::vector<bool>& walls) {
    RecomputeChoice low(problem_.nodes.size(), false);
    RecomputeChoice high = cut(walls, highest_price());
    if (!fits(consider(high))) return;
    double low_price = lowest_price();
    double high_price = highest_price();
    for (int i = 0; i < kPrices; ++i) {
      const double price = std::sqrt(low_price * high_price);
      RecomputeChoice middle = cut(walls, price);
      if (fits(consider(middle))) {
        high = std::move(middle);
        high_price = price;
      } else {
        low = std::move(middle);
        low_price = price;
      }
    }
    walk(low, high);
  }

  // ---- Parts of a choice

  // Nodes in which two choices differ, in parts that have no value in common.
  std::vector<Nodes> parts_between(const RecomputeChoice& a, const RecomputeChoice& b) const {
    std::vector<size_t> part(problem_.nodes.size());
    std::iota(part.begin(), part.end(), size_t{0});
    const auto root = [&](size_t n) {
      while (part[n] != n) n = part[n] = part[part[n]];
      return n;
    };
    std::vector<size_t> first_user(problem_.values.size(), SIZE_MAX);
    const auto touch = [&](size_t n, int32_t value) {
      size_t& user = first_user[at(value)];
      if (user == SIZE_MAX) user = n;
      part[root(n)] = root(user);
    };
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      if (a[n] == b[n]) continue;
      for (const auto& operand : problem_.nodes[n].operands) {
        const size_t maker = at(problem_.values[at(operand.value)].node);
        if (a[maker] != b[maker]) touch(n, operand.value);
      }
      for (const int32_t result : problem_.nodes[n].results) touch(n, result);
    }
    std::vector<Nodes> parts;
    std::vector<size_t> number(problem_.nodes.size(), SIZE_MAX);
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      if (a[n] == b[n]) continue;
      size_t& place = number[root(n)];
      if (place == SIZE_MAX) {
        place = parts.size();
        parts.emplace_back();
      }
      parts[place].push_back(n);
    }
    return parts;
  }

  static RecomputeChoice mixed(const RecomputeChoice& base, const RecomputeChoice& other,
                               const Nodes& part) {
    RecomputeChoice choice = base;
    for (const size_t n : part) choice[n] = other[n];
    return choice;
  }

  // Goes from a choice that is too large to one that fits, part by part from the last layers, whose
  // values are needed soonest and so are live again for the shortest time; the last parts first or
  // the first ones, whichever fits sooner.
  void walk(const RecomputeChoice& low, const RecomputeChoice& high) {
    std::vector<Nodes> parts = parts_between(low, high);
    for (int direction = 0; direction < 2; ++direction) {
      // The number of parts after which it fits: more parts never need more memory, but for what is
      // live twice, so halving finds a good one.
      size_t too_few = 0;
      size_t enough = parts.size();
      while (too_few + 1 < enough) {
        const size_t middle = (too_few + enough) / 2;
        RecomputeChoice choice = low;
        for (size_t i = 0; i < middle; ++i) choice = mixed(choice, high, parts[i]);
        (fits(consider(choice)) ? enough : too_few) = middle;
      }
      std::reverse(parts.begin(), parts.end());
    }
  }

  int64_t evaluation_work() const {
    return static_cast<int64_t>(problem_.nodes.size() * 3 + problem_.values.size() * 3 +
                                problem_.other_bytes.size());
  }

  // Tries the best choice without each of its parts, and without single nodes, those that save most
  // time first; then with one or two kinds of nodes changed, and with one or two nodes. Large
  // graphs see a part of that.
  void improve(int64_t work) {
    left_ = work / evaluation_work();
    while (fits(best_.cost) && drop_parts()) continue;
    while (change_kinds()) continue;
    while (change_nodes()) continue;
  }

  // Whether the work that is left allowed to try, and whether the choice is better than the best.
  bool try_choice(const RecomputeChoice& choice) {
    if (left_-- <= 0) return false;
    const RecomputeCost before = best_.cost;
    consider(choice);
    return is_better(best_.cost, before);
  }

  bool drop_parts() {
    const RecomputeChoice none(problem_.nodes.size(), false);
    best_.choice = needed_nodes(problem_, best_.choice);
    std::vector<Nodes> parts = parts_between(best_.choice, none);
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      if (best_.choice[n]) parts.push_back({n});
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [&](const Nodes& a, const Nodes& b) { return seconds_of(a) > seconds_of(b); });
    bool changed = false;
    for (const Nodes& part : parts) changed |= try_choice(mixed(best_.choice, none, part));
    return changed;
  }

  // Nodes that are alike, in the layers of a model.
  std::vector<Nodes> kinds() const {
    using Kind = std::tuple<double, size_t, std::vector<std::pair<int64_t, bool>>>;
    std::map<Kind, Nodes> kinds;
    for (const size_t n : movable_) {
      const RecomputeProblem::Node& node = problem_.nodes[n];
      Kind kind = {node.seconds, node.operands.size(), {}};
      for (const int32_t result : node.results) {
        const RecomputeProblem::Value& value = problem_.values[at(result)];
        std::get<2>(kind).emplace_back(value.bytes, value.first_backward >= 0);
      }
      kinds[kind].push_back(n);
    }
    std::vector<Nodes> result;
    for (auto& [kind, nodes] : kinds) {
      if (nodes.size() > 1) result.push_back(std::move(nodes));
    }
    return result;
  }

  // Lets all nodes of a kind or of two run again, or none of them.
  bool change_kinds() {
    const RecomputeChoice none(problem_.nodes.size(), false);
    const RecomputeChoice all(problem_.nodes.size(), true);
    const std::vector<Nodes> kinds = this->kinds();
    bool changed = false;
    for (size_t i = 0; i < kinds.size() && left_ > 0; ++i) {
      for (size_t j = 0; j <= i && left_ > 0; ++j) {
        for (const RecomputeChoice* first : {&none, &all}) {
          for (const RecomputeChoice* second : {&none, &all}) {
            if (j == i && second != first) continue;
            const RecomputeChoice choice = mixed(best_.choice, *first, kinds[i]);
            changed |= try_choice(mixed(choice, *second, kinds[j]));
          }
        }
      }
    }
    return changed;
  }

  bool change_nodes() {
    bool changed = false;
    for (size_t i = 0; i < movable_.size() && left_ > 0; ++i) {
      for (size_t j = 0; j <= i && left_ > 0; ++j) {
        RecomputeChoice choice = best_.choice;
        choice[movable_[i]].flip();
        if (j != i) choice[movable_[j]].flip();
        changed |= try_choice(choice);
      }
    }
    return changed;
  }

  double seconds_of(const Nodes& part) const {
    double seconds = 0;
    for (const size_t n : part) seconds += problem_.nodes[n].seconds;
    return seconds;
  }

  const RecomputeProblem& problem_;
  const int64_t budget_;
  Nodes movable_;
  double all_seconds_ = 0;
  double largest_ = 1;  // bytes of a value
  Candidate best_;
  int64_t left_ = 0;  // evaluations that may still be tried
};

}  // namespace

RecomputeChoice choose_recompute(const RecomputeProblem& problem, int64_t budget,
                                 size_t exact_nodes, int64_t work) {
  return Chooser(problem, budget).run(exact_nodes, work);
}

RecomputeChoice recompute_everything(const RecomputeProblem& problem) {
  return Chooser(problem, 0).everything();
}

}  // namespace sgtc
