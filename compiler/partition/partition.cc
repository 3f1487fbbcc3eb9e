// Choosing the cuts. The stages of a chain are intervals, and each of them alone bounds the time of
// the pipeline from below. So the cuts with the lowest bound of the first j links into k stages
// extend those of some first i links into k-1 stages: an exact dynamic programme in O(stages *
// links²), a fraction of a second for the deepest models. Of many micro-batches the bound is that
// of the slowest stage, so stages are balanced; of few, filling and draining the pipeline counts as
// much, and a late stage that is slow costs more than an early one. Bytes decide between equals.
// The bound is close but no more than that: from its cuts, and from balanced ones, the time of the
// pipeline descends by moving cuts, or all cuts are tried where they are few.
//
// Where a model repeats a layer, cuts between whole layers are tried too: stages of equal layers
// share their kernels, and such a plan is easier to read. They are preferred to others, and
// balanced stages, which need like memory, to others, if the pipeline takes at most 1% longer. Left
// out: memory (search/ weighs it) and orders of the forward groups other than their own.
#include "partition/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cost/communication_time.h"
#include "cost/group_time.h"
#include "partition/chain.h"
#include "partition/find_repeats.h"
#include "partition/pipeline_time.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr double kPreferred = 1.01;  // how much slower the pipeline may be with better cuts
constexpr double kFewWays = 2000;    // to cut: all of them are tried
constexpr int64_t kManyMicroBatches = 1'000'000;  // only balance counts

struct Score {
  double seconds = 0;
  int64_t bytes = 0;  // over all cuts
  bool operator<(const Score& other) const {
    return std::tie(seconds, bytes) < std::tie(other.seconds, other.bytes);
  }
};

class Cutter {
 public:
  Cutter(const Chain& chain, const Hardware& hardware, size_t stages, int64_t micro_batches)
      : chain_(chain), stages_(stages), micro_batches_(static_cast<double>(micro_batches)) {
    for (size_t link = 0; link < chain.links.size(); ++link) {
      forward_.push_back(forward_.back() + chain.forward_seconds[link]);
      both_.push_back(both_.back() + chain.forward_seconds[link] + chain.backward_seconds[link]);
    }
    for (const int64_t bytes : chain.bytes) crossing_.push_back(crossing(hardware, bytes));
  }

  // The best cuts among those that are allowed, by the link behind each; none if there is no way to
  // cut.
  std::optional<Cuts> run(const std::vector<bool>& allowed) const {
    const size_t links = chain_.links.size();
    std::vector<std::vector<Score>> best(stages_, std::vector<Score>(links + 1, {kImpossible, 0}));
    std::vector<std::vector<size_t>> from(stages_, std::vector<size_t>(links + 1, 0));
    for (size_t end = 1; end <= links; ++end) best[0][end] = {bound(0, 0, end), 0};
    for (size_t s = 1; s < stages_; ++s) {
      for (size_t end = s + 1; end <= links; ++end) {
        for (size_t begin = s; begin < end; ++begin) {
          const Score& before = best[s - 1][begin];
          if (!allowed[begin]) continue;
          const Score score = {std::max(before.seconds, bound(s, begin, end)),
                               before.bytes + chain_.bytes[begin]};
          if (!(score < best[s][end])) continue;
          best[s][end] = score;
          from[s][end] = begin;
        }
      }
    }
    if (best[stages_ - 1][links].seconds == kImpossible) return std::nullopt;
    Cuts cuts(stages_ - 1);
    size_t end = links;
    for (size_t s = stages_ - 1; s > 0; --s) end = cuts[s - 1] = from[s][end];
    return cuts;
  }

 private:
  static constexpr double kImpossible = std::numeric_limits<double>::infinity();

  static double crossing(const Hardware& hardware, int64_t bytes) {
    if (bytes == 0) return 0;
    CommunicationWork work;
    work.kind = "send";
    work.bytes = bytes;
    work.blocks = hardware.communication_blocks;
    return communication_seconds(hardware, work);
  }

  // Seconds that the pipeline takes at least for the sake of one stage: what leads to its first
  // forward pass, its own passes, what follows its last backward pass, and as long as it has to
  // wait for its first backward pass, less the forward passes that it does meanwhile.
  double bound(size_t stage, size_t begin, size_t end) const {
    const double own = both_[end] - both_[begin] + crossing_[begin] + crossing_[end];
    const double ahead = std::min(static_cast<double>(stages_ - stage), micro_batches_) - 1;
    const double wait = both_.back() - both_[end] - ahead * (forward_[end] - forward_[begin]);
    return both_[begin] + micro_batches_ * own + std::max(0.0, wait);
  }

  const Chain& chain_;
  const size_t stages_;
  const double micro_batches_;
  std::vector<double> forward_ = {0};  // of the links before each
  std::vector<double> both_ = {0};
  std::vector<double> crossing_;  // of each cut
};

// Which cuts leave repeated layers whole: within the repetition one cut per layer, where the fewest
// bytes cross.
std::vector<bool> between_layers(const KernelizedGraph& program, const Chain& chain) {
  std::vector<std::string> symbols;
  for (const size_t link : chain.links) symbols.push_back(program.kernels[link].symbol);
  const Repeats repeats = find_repeats(symbols);
  std::vector<bool> allowed(chain.links.size() + 1, true);
  if (repeats.count < 2) return allowed;
  // Measured in the second layer, where the repetition has settled.
  const auto bytes_at = [&](size_t offset) {
    return chain.bytes[repeats.first + repeats.period + offset];
  };
  size_t best = 0;
  for (size_t offset = 1; offset < repeats.period; ++offset) {
    if (bytes_at(offset) < bytes_at(best)) best = offset;
  }
  for (size_t i = 0; i < repeats.count * repeats.period; ++i) {
    allowed[repeats.first + i] = i % repeats.period == best;
  }
  return allowed;
}

std::vector<size_t> places(const Chain& chain, const std::vector<bool>& allowed) {
  std::vector<size_t> result;
  for (size_t link = 1; link < chain.links.size(); ++link) {
    if (allowed[link]) result.push_back(link);
  }
  return result;
}

struct TimedCuts {
  Cuts cuts;
  double seconds = 0;
};

// Moves one cut or a few at a time, as long as that makes the pipeline faster.
TimedCuts descend(TimedCuts best, const std::vector<size_t>& places, const PipelineTime& time) {
  for (bool improves = true; improves;) {
    improves = false;
    for (Cuts& cuts : neighbours(best.cuts, places)) {
      const double seconds = time.seconds(cuts);
      if (seconds >= best.seconds) continue;
      best = {std::move(cuts), seconds};
      improves = true;
    }
  }
  return best;
}

// Goes to the next of all ways to choose numbers below `end`, ascending. False after the last.
bool next_choice(std::vector<size_t>& numbers, size_t end) {
  const size_t count = numbers.size();
  for (size_t i = count; i-- > 0;) {
    if (numbers[i] == end - count + i) continue;
    std::iota(numbers.begin() + static_cast<std::ptrdiff_t>(i), numbers.end(), numbers[i] + 1);
    return true;
  }
  return false;
}

TimedCuts best_of_all(TimedCuts best, const std::vector<size_t>& places, const PipelineTime& time) {
  std::vector<size_t> numbers(best.cuts.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  do {
    Cuts cuts;
    for (const size_t number : numbers) cuts.push_back(places[number]);
    const double seconds = time.seconds(cuts);
    if (seconds < best.seconds) best = {std::move(cuts), seconds};
  } while (next_choice(numbers, places.size()));
  return best;
}

// The binomial coefficient, as a real number: it may be large.
double ways_to_choose(size_t count, size_t of) {
  double ways = 1;
  for (size_t i = 0; i < count; ++i) {
    ways *= static_cast<double>(of - i) / static_cast<double>(i + 1);
  }
  return ways;
}

Cuts choose_cuts(const KernelizedGraph& program, const Chain& chain, size_t stages,
                 const Hardware& hardware) {
  const int64_t micro_batches = program.graph->micro_batches;
  const PipelineTime time(chain, hardware, PipelineSchedule::k1F1B, micro_batches);
  std::vector<TimedCuts> found;  // the preferred first
  for (const std::vector<bool>& allowed :
       {between_layers(program, chain), std::vector<bool>(chain.links.size() + 1, true)}) {
    for (const int64_t passes : {kManyMicroBatches, micro_batches}) {
      const std::optional<Cuts> cuts = Cutter(chain, hardware, stages, passes).run(allowed);
      if (!cuts) continue;
      found.push_back({*cuts, time.seconds(*cuts)});
      const std::vector<size_t> links = places(chain, allowed);
      const bool few = ways_to_choose(stages - 1, links.size()) <= kFewWays;
      found.push_back((few ? best_of_all : descend)(found.back(), links, time));
    }
  }
  const auto best = std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.seconds < b.seconds;
  });
  return std::find_if(
             found.begin(), found.end(),
             [&](const TimedCuts& timed) { return timed.seconds <= kPreferred * best->seconds; })
      ->cuts;
}

int64_t stage_of(const Cuts& cuts, int32_t link) {
  return std::upper_bound(cuts.begin(), cuts.end(), static_cast<size_t>(link)) - cuts.begin();
}

// A floating group runs wherever its results are read; what nobody reads, where its operand is made
// or else with the loss.
void place_floating(const KernelizedGraph& program, const Chain& chain, Placement& placement) {
  const Graph& graph = *program.graph;
  std::vector<Positions> readers(graph.values.size());
  const std::vector<int32_t> maker = makers_of(program);
  for (size_t g = program.groups.size(); g-- > 0;) {
    const Group& group = program.groups[g];
    Positions& positions = placement.groups[g];
    if (chain.floating[g]) {
      for (const ValueId output : group.outputs) {
        unite(positions, readers[static_cast<size_t>(output)]);
      }
      for (const ValueId input : group.inputs) {
        const int32_t made = maker[static_cast<size_t>(input)];
        if (positions.empty() && made != kNone) {
          positions = placement.groups[static_cast<size_t>(made)];
        }
      }
      if (positions.empty()) positions = {placement.stages - 1};
    }
    for (const ValueId input : group.inputs) unite(readers[static_cast<size_t>(input)], positions);
  }
}

Placement place_at(const KernelizedGraph& program, const Chain& chain, const Cuts& cuts) {
  Placement placement;
  placement.stages = static_cast<int64_t>(cuts.size()) + 1;
  placement.groups.resize(program.groups.size());
  for (size_t g = 0; g < program.groups.size(); ++g) {
    if (chain.link_of[g] != kNone) placement.groups[g] = {stage_of(cuts, chain.link_of[g])};
  }
  place_floating(program, chain, placement);
  place_update(program, placement);
  return placement;
}

Chain chain_of(const KernelizedGraph& program, const Hardware& hardware) {
  const int64_t units = hardware.is_gpu() ? hardware.units : 1;
  return find_chain(program, group_seconds(program, hardware, units));
}

}  // namespace

std::vector<int64_t> fusion_parts(const Graph& graph) {
  const auto scalar = [&](ValueId value) { return element_count(graph.shape(value)) == 1; };
  std::vector<int64_t> parts;
  for (const Node& node : graph.nodes) {
    const bool apart = node.phase == Phase::kUpdate &&
                       std::all_of(node.operands.begin(), node.operands.end(), scalar) &&
                       std::all_of(node.results.begin(), node.results.end(), scalar);
    parts.push_back(apart ? 1 : 0);
  }
  return parts;
}

Placement partition(const KernelizedGraph& program, int64_t stages, const Hardware& hardware) {
  if (stages == 1) return place_on_one(program);
  const Chain chain = chain_of(program, hardware);
  const auto links = static_cast<int64_t>(chain.links.size());
  if (links < stages) {
    throw Error("--mesh: " + std::to_string(stages) + " pipeline stages, but the model has only " +
                std::to_string(links) + " groups of forward nodes to place; use at most " +
                std::to_string(links) + " stages");
  }
  return place_at(program, chain,
                  choose_cuts(program, chain, static_cast<size_t>(stages), hardware));
}

Placement partition_at(const KernelizedGraph& program, const StageBegins& begins,
                       const Hardware& hardware) {
  const Chain chain = chain_of(program, hardware);
  const size_t stages = begins.size() + 1;
  SGTC_CHECK(chain.links.size() >= stages, "fewer links than stages");
  Cuts cuts;
  for (size_t s = 1; s < stages; ++s) {
    size_t link = s == 1 ? 1 : cuts.back() + 1;
    const size_t last = chain.links.size() - (stages - s);
    while (link < last && begin_of(program, chain, link) < begins[s - 1]) ++link;
    cuts.push_back(link);
  }
  return place_at(program, chain, cuts);
}

StageBegins begins_of(const KernelizedGraph& program, const Placement& placement) {
  const Chain chain = find_chain(program, std::vector<double>(program.groups.size(), 0));
  StageBegins begins;
  for (size_t link = 1; link < chain.links.size(); ++link) {
    if (placement.groups[chain.links[link]] == placement.groups[chain.links[link - 1]]) continue;
    begins.push_back(begin_of(program, chain, link));
  }
  return begins;
}

std::vector<size_t> good_cuts(const KernelizedGraph& program, const Chain& chain) {
  return places(chain, between_layers(program, chain));
}

NodeId begin_of(const KernelizedGraph& program, const Chain& chain, size_t link) {
  const std::vector<NodeId>& nodes = program.groups[chain.links[link]].nodes;
  return *std::max_element(nodes.begin(), nodes.end());
}

}  // namespace sgtc
