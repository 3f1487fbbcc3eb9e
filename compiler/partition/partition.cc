// Choosing the cuts. The stages of a chain are intervals, so the best cuts of the first j links
// into k stages extend the best cuts of some first i links into k-1 stages: an exact dynamic
// programme in O(stages * links²), a fraction of a second for the deepest models. Balance counts
// first, since the slowest stage sets the pace of all; bytes decide between equals. Where a model
// repeats a layer, cuts between whole layers are tried too and taken if they are at most 1% slower:
// stages of equal layers share their kernels, and such a plan is easier to read. Left out: memory
// (search/ weighs it) and orders of the forward groups other than their own.
#include "partition/partition.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "cost/communication_time.h"
#include "cost/group_time.h"
#include "partition/chain.h"
#include "partition/find_repeats.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr double kWholeLayers = 1.01;  // how much slower the slowest stage may be for them

struct Score {
  double slowest = 0;
  int64_t bytes = 0;  // over all cuts
  bool operator<(const Score& other) const {
    return std::tie(slowest, bytes) < std::tie(other.slowest, other.bytes);
  }
};

class Cutter {
 public:
  Cutter(const Chain& chain, const Hardware& hardware)
      : chain_(chain), hardware_(hardware), sums_{0} {
    for (const double seconds : chain.seconds) sums_.push_back(sums_.back() + seconds);
  }

  double crossing(size_t cut) const {
    const int64_t bytes = chain_.bytes[cut];
    if (bytes == 0) return 0;
    CommunicationWork work;
    work.kind = "send";
    work.bytes = bytes;
    work.blocks = hardware_.communication_blocks;
    return communication_seconds(hardware_, work);
  }

  double stage(size_t begin, size_t end) const {
    return sums_[end] - sums_[begin] + crossing(begin) + crossing(end);
  }

  struct Cuts {
    std::vector<size_t> begins;  // the link that begins each stage
    double slowest = 0;          // infinite if there is no way to cut
  };

  // The best cuts among those that are allowed, by the link behind each.
  Cuts run(size_t stages, const std::vector<bool>& allowed) const {
    const size_t links = chain_.links.size();
    std::vector<std::vector<Score>> best(stages + 1, std::vector<Score>(links + 1));
    std::vector<std::vector<size_t>> from(stages + 1, std::vector<size_t>(links + 1, 0));
    for (size_t end = 1; end <= links; ++end) best[1][end] = {stage(0, end), 0};
    for (size_t k = 2; k <= stages; ++k) {
      for (size_t end = k; end <= links; ++end) {
        best[k][end].slowest = kImpossible;
        for (size_t begin = k - 1; begin < end; ++begin) {
          const Score& before = best[k - 1][begin];
          if (!allowed[begin]) continue;
          const Score score = {std::max(before.slowest, stage(begin, end)),
                               before.bytes + chain_.bytes[begin]};
          if (!(score < best[k][end])) continue;
          best[k][end] = score;
          from[k][end] = begin;
        }
      }
    }
    Cuts cuts{std::vector<size_t>(stages, 0), best[stages][links].slowest};
    size_t end = links;
    for (size_t k = stages; k > 1; --k) end = cuts.begins[k - 1] = from[k][end];
    return cuts;
  }

 private:
  static constexpr double kImpossible = std::numeric_limits<double>::infinity();

  const Chain& chain_;
  const Hardware& hardware_;
  std::vector<double> sums_;  // seconds of the links before each
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

std::vector<size_t> choose_cuts(const KernelizedGraph& program, const Chain& chain, size_t stages,
                                const Hardware& hardware) {
  const Cutter cutter(chain, hardware);
  const Cutter::Cuts best = cutter.run(stages, std::vector<bool>(chain.links.size() + 1, true));
  const Cutter::Cuts whole = cutter.run(stages, between_layers(program, chain));
  return whole.slowest <= kWholeLayers * best.slowest ? whole.begins : best.begins;
}

int64_t stage_of(const std::vector<size_t>& begins, int32_t link) {
  const auto next = std::upper_bound(begins.begin(), begins.end(), static_cast<size_t>(link));
  return next - begins.begin() - 1;
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

// `begins`: the link that begins each stage.
Placement place_at(const KernelizedGraph& program, const Chain& chain,
                   const std::vector<size_t>& begins) {
  Placement placement;
  placement.stages = static_cast<int64_t>(begins.size());
  placement.groups.resize(program.groups.size());
  for (size_t g = 0; g < program.groups.size(); ++g) {
    if (chain.link_of[g] != kNone) placement.groups[g] = {stage_of(begins, chain.link_of[g])};
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
  std::vector<size_t> links = {0};
  for (size_t s = 1; s < stages; ++s) {
    size_t link = links.back() + 1;
    const size_t last = chain.links.size() - (stages - s);
    while (link < last && begin_of(program, chain, link) < begins[s - 1]) ++link;
    links.push_back(link);
  }
  return place_at(program, chain, links);
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
  const std::vector<bool> allowed = between_layers(program, chain);
  std::vector<size_t> cuts;
  for (size_t link = 1; link < chain.links.size(); ++link) {
    if (allowed[link]) cuts.push_back(link);
  }
  return cuts;
}

NodeId begin_of(const KernelizedGraph& program, const Chain& chain, size_t link) {
  const std::vector<NodeId>& nodes = program.groups[chain.links[link]].nodes;
  return *std::max_element(nodes.begin(), nodes.end());
}

double slowest_stage(const KernelizedGraph& program, const Placement& placement,
                     const Hardware& hardware) {
  const Chain chain = chain_of(program, hardware);
  const Cutter cutter(chain, hardware);
  double slowest = 0;
  size_t begin = 0;
  for (size_t end = 1; end <= chain.links.size(); ++end) {
    const bool last = end == chain.links.size();
    if (!last && placement.groups[chain.links[end]] == placement.groups[chain.links[begin]])
      continue;
    slowest = std::max(slowest, cutter.stage(begin, end));
    begin = end;
  }
  return slowest;
}

}  // namespace sgtc
