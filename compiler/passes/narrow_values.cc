// The problem: a value is rounded where the Graph says, not where fusion happens to store it, so
// that bits do not depend on fusion. But bf16 pays only for what is stored: rounding in the middle
// of a kernel loses digits for nothing, and a value that is stored in f32 costs twice the bytes.
// So this analysis has to know, before fusion, which values will be stored.
//
// Two known ways: a list of operators with their types, as PyTorch's autocast has (it rounds after
// every operator, and keeps the operands of every f32 operator in f32 in memory), or types by
// search over fused graphs (too slow, and bits would then depend on fusion). Here: types follow
// from what each value is for.
// - Products and attention take bf16 operands: tensor cores do. Sums are f32.
// - What reaches memory whatever is fused is rounded once, and everybody reads that: the operands
// of
//   products and pools; the end of the elementwise chain after a product, which its kernel computes
//   on sums in registers (kernels of products end at what needs whole rows, moves elements, or
//   waits for another product; where they would end in several values, they end where the chain
//   parts); and what is read again behind a later product, such as a residual stream.
// - What the backward phase reads ends a product's kernel too, which is then differentiated at the
//   rounded value. Other values of the forward phase stay f32.
// - All else is f32 in registers: norms, softmax, exponentials, losses.
// - Statistics (results of reductions, and what is computed of these alone) are small and stay f32,
//   and so do gradients of parameters: nothing is rounded between a sum and the optimizer.
// - A product of values that no state reaches stays f32: these are positions, frequencies of
//   rotations and masks, whose exact values matter and whose cost does not.
#include "passes/narrow_values.h"

#include <algorithm>

namespace sgtc {
namespace {

// A reduction to fewer than one in so many elements is a statistic.
constexpr int64_t kStatisticRatio = 16;

bool is_in_step(const Node& node) {
  return node.phase == Phase::kForward || node.phase == Phase::kBackward;
}

bool is_attention(Op op) { return op == Op::kAttention || op == Op::kAttentionGrad; }

/// What is known of a value from what it is computed of.
struct Source {
  bool per_batch = false;  // a feed or random numbers reach it
  bool trained = false;    // a state reaches it
  bool statistic = false;
  int64_t products = 0;   // most products and attentions on a path to it
  int64_t barriers = 0;   // the same, and reductions, scans, pools, indexed writes
  NodeId kernel = kNone;  // the product that may compute it on its sums in registers
  bool at_hand = true;    // in memory, or elementwise operators lead to it from what is
};

/// What is known of a value from what it is used for.
struct Use {
  bool narrow = false;    // by a product or a pool, perhaps after a movement
  bool memory = false;    // by what no product's kernel can do with its result
  bool backward = false;  // of a forward value, by the backward phase
  bool only_sums = true;  // only sums over micro-batches and the update read it
  // Of the values that end a product's kernel, the first that elementwise operators reach from
  // here, and whether there are several.
  ValueId end = kNone;
  bool parts = false;
};

class Finder {
 public:
  explicit Finder(const Graph& graph)
      : graph_(graph), sources_(graph.values.size()), uses_(graph.values.size()) {
    result_.products.assign(graph.nodes.size(), false);
    result_.rounded.assign(graph.values.size(), false);
  }

  NarrowValues run() {
    for (ValueId id = 0; id < size(graph_.values); ++id) sources_[index(id)] = source_of_leaf(id);
    for (NodeId id = 0; id < size(graph_.nodes); ++id) derive(id);
    for (const Output& output : graph_.outputs) use(output.value).only_sums = false;
    for (NodeId id = size(graph_.nodes); id-- > 0;) collect_uses(id);
    for (NodeId id = 0; id < size(graph_.nodes); ++id) decide(id);
    return std::move(result_);
  }

 private:
  template <typename T>
  static int32_t size(const std::vector<T>& list) {
    return static_cast<int32_t>(list.size());
  }
  static size_t index(int32_t id) { return static_cast<size_t>(id); }
  Source& source(ValueId id) { return sources_[index(id)]; }
  Use& use(ValueId id) { return uses_[index(id)]; }
  bool is_f32(ValueId id) const { return graph_.dtype(id) == DType::kFloat32; }

  Source source_of_leaf(ValueId id) const {
    const ValueKind kind = graph_.value(id).kind;
    Source source;
    source.per_batch = kind == ValueKind::kFeed;
    source.trained = kind == ValueKind::kState && is_float(graph_.dtype(id)) &&
                     graph_.value(id).role != StateRole::kAccumulator;
    return source;
  }

  bool is_barrier(const Node& node) const {
    const OpKind kind = info(node.op).kind;
    if (kind == OpKind::kIndexing) return !moves_elements(node.op);
    return kind != OpKind::kElementwise && kind != OpKind::kMovement;
  }

  void derive(NodeId id) {
    const Node& node = graph_.node(id);
    Source source;
    source.per_batch = info(node.op).kind == OpKind::kRandom;
    bool statistics = info(node.op).kind == OpKind::kElementwise || node.op == Op::kReshape ||
                      node.op == Op::kBroadcast;
    bool any = false;
    for (const ValueId operand : node.operands) {
      const Source& from = this->source(operand);
      source.per_batch |= from.per_batch;
      source.trained |= from.trained;
      source.products = std::max(source.products, from.products);
      source.barriers = std::max(source.barriers, from.barriers);
      statistics = statistics && (from.statistic || !from.per_batch);
      any |= from.statistic;
    }
    const bool takes_f32 = !node.operands.empty() && is_f32(node.operands[0]);
    result_.products[index(id)] = (is_product(node.op) || is_attention(node.op)) && takes_f32 &&
                                  source.trained && is_in_step(node);
    if (is_product(node.op) || is_attention(node.op)) ++source.products;
    if (is_barrier(node)) ++source.barriers;
    source.statistic = (statistics && any) || is_small_reduction(node);
    for (const ValueId result : node.results) {
      this->source(result) = source;
      // The maximum and the sum of scores.
      this->source(result).statistic |= node.op == Op::kAttention && result != node.results[0];
    }
  }

  bool is_small_reduction(const Node& node) const {
    return info(node.op).kind == OpKind::kReduction &&
           element_count(graph_.shape(node.results[0])) * kStatisticRatio <=
               element_count(graph_.shape(node.operands[0]));
  }

  void collect_uses(NodeId id) {
    const Node& node = graph_.node(id);
    for (const ValueId result : node.results) {
      Use& use = this->use(result);
      if (!use.narrow && !use.memory && !use.backward) continue;
      use.end = result;
      use.parts = false;
    }
    for (const ValueId operand : node.operands) {
      Use& use = this->use(operand);
      const Node* producer = graph_.producer(operand);
      use.backward |= producer != nullptr && producer->phase == Phase::kForward &&
                      node.phase == Phase::kBackward;
      use.only_sums = use.only_sums && is_sum(node);
      use.narrow |= result_.products[index(id)] || is_pool(node.op);
      add_ends(node, use);
      if (info(node.op).kind == OpKind::kElementwise || node.op == Op::kAccumulate) continue;
      if (!moves_elements(node.op)) {
        use.memory = true;
        continue;
      }
      const Use& moved = this->use(node.results[0]);
      use.narrow |= moved.narrow;
      use.memory |= node.op != Op::kReshape || moved.memory;
      use.backward |= moved.backward && producer != nullptr && producer->phase == Phase::kForward;
    }
  }

  void add_ends(const Node& node, Use& use) {
    if (info(node.op).kind != OpKind::kElementwise && node.op != Op::kReshape) return;
    const Use& next = this->use(node.results[0]);
    use.parts |= next.parts || (use.end != kNone && next.end != kNone && use.end != next.end);
    if (use.end == kNone) use.end = next.end;
  }

  // Whether the node only hands a gradient on to the update.
  bool is_sum(const Node& node) {
    const OpKind kind = info(node.op).kind;
    if (node.phase == Phase::kForward) return false;
    if (node.phase == Phase::kUpdate || kind == OpKind::kMicroBatch) return true;
    if (kind != OpKind::kElementwise && kind != OpKind::kMovement && kind != OpKind::kReduction) {
      return false;
    }
    return std::all_of(node.results.begin(), node.results.end(),
                       [&](ValueId result) { return use(result).only_sums; });
  }

  // Values that are not rounded but could be: f32 activations and their gradients.
  bool is_candidate(ValueId id) {
    const Source& source = this->source(id);
    const Node* producer = graph_.producer(id);
    return is_f32(id) && source.per_batch && source.trained && !source.statistic &&
           !use(id).only_sums && producer != nullptr && is_in_step(*producer) &&
           info(producer->op).kind != OpKind::kMicroBatch &&
           info(producer->op).kind != OpKind::kCollective;
  }

  // Rounds `id`, or what it moves, if that is made in `phase`.
  void round(ValueId id, Phase phase) {
    if (!is_candidate(id) || graph_.producer(id)->phase != phase) return;
    const Node& node = *graph_.producer(id);
    const size_t moved = info(node.op).kind == OpKind::kMovement ? node.operands.size() : 1;
    bool is_root = true;
    for (size_t i = 0; moves_elements(node.op) && i < moved; ++i) {
      is_root = is_root && !is_candidate(node.operands[i]);
      round(node.operands[i], phase);
    }
    if (!is_root) return;
    result_.rounded[index(id)] = true;
    source(id).kernel = kNone;
    source(id).at_hand = true;
  }

  // In execution order, so that the kernels of the operands are known.
  void decide(NodeId id) {
    const Node& node = graph_.node(id);
    if (!is_in_step(node)) return;
    const NodeId kernel = kernel_of(id);
    for (const ValueId operand : node.operands) {
      const bool waits =
          source(operand).products < source(node.results[0]).products && !source(operand).at_hand;
      const bool elsewhere = source(operand).kernel != kNone && source(operand).kernel != kernel;
      const bool own_loop = info(node.op).kind == OpKind::kElementwise;
      if ((waits && !is_product(node.op) && !is_attention(node.op)) || (own_loop && elsewhere)) {
        round(operand, node.phase);
      }
    }
    for (const ValueId result : node.results) {
      source(result).kernel = kernel;
      source(result).at_hand = source(result).statistic || is_at_hand(node);
      const Use& use = this->use(result);
      const bool ends_kernel = kernel != kNone && (use.memory || use.backward || use.parts);
      if (use.narrow || ends_kernel) round(result, node.phase);
    }
  }

  bool is_at_hand(const Node& node) const {
    const OpKind kind = info(node.op).kind;
    return (kind == OpKind::kElementwise || kind == OpKind::kMovement) &&
           std::all_of(node.operands.begin(), node.operands.end(),
                       [&](ValueId operand) { return sources_[index(operand)].at_hand; });
  }

  // The product in whose kernel the node may run: the last one that any operand waits for.
  NodeId kernel_of(NodeId id) {
    const Node& node = graph_.node(id);
    if (is_product(node.op)) return id;
    if (info(node.op).kind != OpKind::kElementwise && node.op != Op::kReshape) return kNone;
    int64_t barriers = 0;
    for (const ValueId operand : node.operands) {
      barriers = std::max(barriers, source(operand).barriers);
    }
    NodeId kernel = kNone;
    for (const ValueId operand : node.operands) {
      const Source& from = source(operand);
      if (from.barriers == barriers) kernel = std::max(kernel, from.kernel);
    }
    return kernel;
  }

  const Graph& graph_;
  std::vector<Source> sources_;
  std::vector<Use> uses_;
  NarrowValues result_;
};

}  // namespace

bool is_product(Op op) {
  return op == Op::kMatMul || op == Op::kConv || op == Op::kConvInputGrad ||
         op == Op::kConvWeightGrad;
}

bool is_pool(Op op) {
  return op == Op::kMaxPool || op == Op::kMaxPoolGrad || op == Op::kAveragePool ||
         op == Op::kAveragePoolGrad;
}

bool moves_elements(Op op) {
  if (info(op).kind == OpKind::kMovement) return op != Op::kIota;
  return op == Op::kGather || op == Op::kGatherElements || op == Op::kGatherNd || op == Op::kPick;
}

NarrowValues find_narrow_values(const Graph& graph) { return Finder(graph).run(); }

}  // namespace sgtc
