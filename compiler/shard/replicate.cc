#include "shard/replicate.h"

#include <map>
#include <string>
#include <utility>

#include "cost/cost.h"
#include "ir/clone.h"

namespace sgtc {
namespace {

class Replicator {
 public:
  Replicator(const Differentiated& source, Sharding sharding)
      : source_(source), sharding_(sharding), cloner_(source.graph) {}

  Differentiated run() {
    for (const Node& node : source_.graph.nodes) {
      if (node.phase != Phase::kUpdate) clone(node);
    }
    gather_stacked_rows();
    std::vector<ParameterGradient> gradients = reduce_gradients();
    reduce_loss();
    for (const Node& node : source_.graph.nodes) {
      if (node.phase == Phase::kUpdate) cloner_.clone(node);
    }
    return {cloner_.finish(), std::move(gradients)};
  }

 private:
  void clone(const Node& node) {
    cloner_.clone(node);
    if (node.op != Op::kAccumulate || node.phase != Phase::kPrologue) return;
    const ValueId sum = node.results[0];
    cloner_.replace(sum, collective(Op::kAllReduce, sum, Phase::kPrologue, node.sources));
  }

  // `old` is a value of the source.
  ValueId collective(Op op, ValueId old, Phase phase, const Sources& sources) {
    cloner_.target().context() = {phase, 0, sources};
    const bool scatters = op == Op::kReduceScatter;
    Attributes attributes;
    if (scatters) attributes.set("replicas", source_.graph.replicas);
    return cloner_.target().add(op, {cloner_[old]}, std::move(attributes),
                                source_.graph.value(old).name + (scatters ? ".shard" : ".all"));
  }

  bool is_sharded(ValueId state) const {
    if (sharding_ == Sharding::kNone) return false;
    const int64_t replicas = source_.graph.replicas;
    const int64_t bytes = bytes_of(source_.graph.type(state));
    return bytes % (replicas * kShardAlignment) == 0 && bytes / replicas >= kLeastShardBytes;
  }

  void gather_stacked_rows() {
    for (const Node& node : source_.graph.nodes) {
      if (node.op != Op::kStackMicroBatches) continue;
      const ValueId rows = node.results[0];
      cloner_.replace(rows, collective(Op::kAllGather, rows, Phase::kUpdate, node.sources));
    }
  }

  std::vector<ParameterGradient> reduce_gradients() {
    std::vector<ParameterGradient> gradients;
    for (const ParameterGradient& source : source_.gradients) {
      ParameterGradient gradient{cloner_[source.state], {}, is_sharded(source.state)};
      const std::string name = "gradient of " + source_.graph.value(source.state).name;
      const Op op = gradient.sharded ? Op::kReduceScatter : Op::kAllReduce;
      for (const ValueId use : source.uses) gradient.uses.push_back(reduced(op, use, name));
      gradients.push_back(std::move(gradient));
    }
    return gradients;
  }

  // One value may be a gradient of several parameters.
  ValueId reduced(Op op, ValueId use, const std::string& name) {
    const auto [known, is_new] = reduced_.try_emplace({op, use}, kNone);
    if (is_new) known->second = collective(op, use, Phase::kUpdate, {name});
    return known->second;
  }

  void reduce_loss() {
    const ValueId loss = source_.graph.outputs[0].value;
    cloner_.replace(loss, collective(Op::kAllReduce, loss, Phase::kUpdate, {"loss"}));
  }

  const Differentiated& source_;
  const Sharding sharding_;
  Cloner cloner_;
  std::map<std::pair<Op, ValueId>, ValueId>
      reduced_;  // value of the source: its sum, or shard of it
};

}  // namespace

Differentiated replicate(Differentiated source, Sharding sharding) {
  if (source.graph.replicas == 1) return source;
  return Replicator(source, sharding).run();
}

}  // namespace sgtc
