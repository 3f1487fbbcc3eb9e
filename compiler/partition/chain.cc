#include "partition/chain.h"

#include <algorithm>
#include <map>
#include <string>

#include "cost/cost.h"

namespace sgtc {
namespace {

class ChainFinder {
 public:
  ChainFinder(const KernelizedGraph& program, const std::vector<double>& group_seconds)
      : program_(program),
        group_seconds_(group_seconds),
        graph_(*program.graph),
        maker_(makers_of(program)) {
    chain_.link_of.assign(program.groups.size(), kNone);
    chain_.floating.assign(program.groups.size(), false);
  }

  Chain run() {
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (group(g).phase == Phase::kForward) add_forward(g);
    }
    chain_.seconds.assign(chain_.links.size(), 0);
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (group(g).phase != Phase::kBackward) continue;
      chain_.floating[g] = is_view(g);
      if (!is_view(g)) chain_.link_of[g] = link_of_backward(g);
    }
    add_seconds();
    add_bytes();
    return std::move(chain_);
  }

 private:
  const Group& group(size_t g) const { return program_.groups[g]; }

  bool is_view(size_t g) const { return group(g).kind == Group::Kind::kView; }

  // What a view shows, through views of views.
  ValueId base(ValueId value) const {
    int32_t maker = maker_[static_cast<size_t>(value)];
    while (maker != kNone && is_view(static_cast<size_t>(maker))) {
      value = group(static_cast<size_t>(maker)).inputs[0];
      maker = maker_[static_cast<size_t>(value)];
    }
    return value;
  }

  void add_forward(size_t g) {
    chain_.floating[g] = is_view(g) || floats(group(g));
    if (chain_.floating[g]) return;
    const auto link = static_cast<int32_t>(chain_.links.size());
    chain_.link_of[g] = link;
    chain_.links.push_back(g);
    for (const NodeId node : group(g).nodes) {
      for (const std::string& source : graph_.node(node).sources) last_of_source_[source] = link;
    }
  }

  bool floats(const Group& group) const {
    const bool random = std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId node) {
      return info(graph_.node(node).op).kind == OpKind::kRandom;
    });
    return !random && std::all_of(group.inputs.begin(), group.inputs.end(), [&](ValueId viewed) {
      const ValueId input = base(viewed);
      if (graph_.value(input).kind == ValueKind::kState) return false;
      const int32_t maker = maker_[static_cast<size_t>(input)];
      if (maker == kNone) return true;
      return this->group(static_cast<size_t>(maker)).phase == Phase::kForward &&
             chain_.floating[static_cast<size_t>(maker)];
    });
  }

  int32_t link_of_backward(size_t g) const {
    int32_t link = kNone;
    int32_t limit = static_cast<int32_t>(chain_.links.size()) - 1;
    for (const NodeId node : group(g).nodes) {
      for (const std::string& source : graph_.node(node).sources) {
        const auto found = last_of_source_.find(source);
        if (found != last_of_source_.end()) link = std::max(link, found->second);
      }
    }
    for (const ValueId input : group(g).inputs) {
      const int32_t maker = maker_[static_cast<size_t>(base(input))];
      if (maker == kNone) continue;
      const int32_t other = chain_.link_of[static_cast<size_t>(maker)];
      if (other == kNone) continue;
      if (group(static_cast<size_t>(maker)).phase == Phase::kBackward) {
        limit = std::min(limit, other);
      } else {
        link = std::max(link, other);
      }
    }
    return link == kNone ? limit : std::min(link, limit);
  }

  void add_seconds() {
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (chain_.link_of[g] == kNone) continue;
      chain_.seconds[static_cast<size_t>(chain_.link_of[g])] += group_seconds_[g];
    }
  }

  // Each value crosses the cuts between the link that makes it and the farthest one that reads it.
  void add_bytes() {
    struct Reach {
      int32_t low = INT32_MAX;
      int32_t high = -1;
    };
    std::vector<Reach> reaches(graph_.values.size());
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (chain_.link_of[g] == kNone) continue;
      for (const ValueId input : group(g).inputs) {
        Reach& reach = reaches[static_cast<size_t>(base(input))];
        reach.low = std::min(reach.low, chain_.link_of[g]);
        reach.high = std::max(reach.high, chain_.link_of[g]);
      }
    }
    std::vector<int64_t> change(chain_.links.size() + 1, 0);
    for (ValueId value = 0; value < static_cast<ValueId>(graph_.values.size()); ++value) {
      const int32_t maker = maker_[static_cast<size_t>(value)];
      if (maker == kNone || chain_.link_of[static_cast<size_t>(maker)] == kNone) continue;
      const Reach& reach = reaches[static_cast<size_t>(value)];
      if (reach.high < 0) continue;
      const int32_t made = chain_.link_of[static_cast<size_t>(maker)];
      const int64_t bytes = bytes_of(graph_.type(value));
      change[static_cast<size_t>(std::min(made, reach.low)) + 1] += bytes;
      change[static_cast<size_t>(std::max(made, reach.high)) + 1] -= bytes;
    }
    chain_.bytes.assign(chain_.links.size() + 1, 0);
    for (size_t c = 1; c < chain_.bytes.size(); ++c)
      chain_.bytes[c] = chain_.bytes[c - 1] + change[c];
  }

  const KernelizedGraph& program_;
  const std::vector<double>& group_seconds_;
  const Graph& graph_;
  std::vector<int32_t> maker_;  // group that computes each value, or kNone
  std::map<std::string, int32_t> last_of_source_;
  Chain chain_;
};

}  // namespace

Chain find_chain(const KernelizedGraph& program, const std::vector<double>& group_seconds) {
  return ChainFinder(program, group_seconds).run();
}

}  // namespace sgtc
