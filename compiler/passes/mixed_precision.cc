#include "passes/mixed_precision.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/clone.h"
#include "passes/narrow_values.h"

namespace sgtc {
namespace {

constexpr DType kNarrow = DType::kBFloat16;

class Narrower {
 public:
  explicit Narrower(const Graph& source)
      : source_(source),
        values_(find_narrow_values(source)),
        cloner_(source),
        narrow_(source.values.size(), kNone),
        is_narrow_(source.values.size(), false) {}

  Graph run() {
    for (NodeId id = 0; id < static_cast<NodeId>(source_.nodes.size()); ++id) rewrite(id);
    for (const Output& output : source_.outputs) restore(output.value);
    for (const Update& update : source_.updates) restore(update.value);
    return cloner_.finish();
  }

 private:
  Graph& target() { return cloner_.target(); }
  static size_t index(int32_t id) { return static_cast<size_t>(id); }
  bool is_f32(ValueId id) const { return source_.dtype(id) == DType::kFloat32; }

  void rewrite(NodeId id) {
    const Node& node = source_.node(id);
    const bool is_product = values_.products[index(id)];
    const bool narrow = is_product || takes_narrow(node);
    std::vector<ValueId> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const bool is_wide = !is_f32(node.operands[i]) || (is_product && is_statistic(node.op, i));
      operands.push_back(narrow && !is_wide ? narrowed(node.operands[i], node)
                                            : widened(node.operands[i], node));
    }
    Attributes attributes = node.attributes;
    const bool is_sum =
        is_product && sgtc::is_product(node.op) && !values_.rounded[index(node.results[0])];
    if (is_sum) attributes.set("result", std::string("f32"));
    std::vector<std::string> names;
    for (const ValueId result : node.results) names.push_back(source_.value(result).name);
    cloner_.inherit(node);
    const std::vector<ValueId> results =
        target().add_named_node(node.op, std::move(operands), std::move(attributes), names);
    for (size_t i = 0; i < results.size(); ++i) set_result(node, node.results[i], results[i]);
  }

  // Operands of attention_grad that attention has computed in f32.
  static bool is_statistic(Op op, size_t operand) {
    return op == Op::kAttentionGrad && (operand == 4 || operand == 5);
  }

  // Whether a node that computes in any type gets bf16: what it reads is bf16 in memory.
  bool takes_narrow(const Node& node) const {
    if (is_pool(node.op)) return is_narrow_[index(node.operands[0])];
    if (!moves_elements(node.op)) return false;
    if (info(node.op).kind != OpKind::kMovement) return is_narrow_[index(node.operands[0])];
    const auto is_ready = [&](ValueId operand) {
      return is_narrow_[index(operand)] || source_.value(operand).kind == ValueKind::kConstant;
    };
    return std::all_of(node.operands.begin(), node.operands.end(), is_ready) &&
           std::any_of(node.operands.begin(), node.operands.end(),
                       [&](ValueId operand) { return is_narrow_[index(operand)]; });
  }

  void set_result(const Node& node, ValueId old, ValueId result) {
    cloner_.replace(old, result);
    if (!is_f32(old)) return;
    if (target().dtype(result) == kNarrow) {
      narrow_[index(old)] = result;
      is_narrow_[index(old)] = true;
    } else if (values_.rounded[index(old)]) {
      narrow_[index(old)] = cast(result, kNarrow, node);
      is_narrow_[index(old)] = true;
    }
  }

  ValueId cast(ValueId id, DType dtype, const Node& user) {
    cloner_.inherit(user);
    target().context().id = 0;
    const std::string name = target().value(id).name + '.' + std::string(name_of(dtype));
    return target().add(Op::kCast, {id}, {{"to", std::string(name_of(dtype))}}, name);
  }

  // A source value in its own type for one use.
  ValueId widened(ValueId old, const Node& user) {
    if (!is_narrow_[index(old)]) return cloner_[old];
    return cast(narrow_[index(old)], DType::kFloat32, user);
  }

  // A source value in bf16, rounded once; of what is moved, such as a transposed parameter, what is
  // moved is rounded.
  ValueId narrowed(ValueId old, const Node& user) {
    if (narrow_[index(old)] != kNone) return narrow_[index(old)];
    const Node* producer = source_.producer(old);
    ValueId result = kNone;
    if (producer != nullptr && info(producer->op).kind == OpKind::kMovement &&
        moves_elements(producer->op)) {
      std::vector<ValueId> operands;
      for (const ValueId operand : producer->operands) operands.push_back(narrowed(operand, user));
      cloner_.inherit(user);
      target().context().id = 0;
      result = target().add(producer->op, std::move(operands), producer->attributes,
                            source_.value(old).name + '.' + std::string(name_of(kNarrow)));
    } else {
      result = cast(cloner_[old], kNarrow, user);
    }
    return narrow_[index(old)] = result;
  }

  // Outputs and new states keep their types.
  void restore(ValueId old) {
    if (!is_narrow_[index(old)]) return;
    cloner_.replace(old, cast(narrow_[index(old)], DType::kFloat32, *source_.producer(old)));
    is_narrow_[index(old)] = false;
  }

  const Graph& source_;
  const NarrowValues values_;
  Cloner cloner_;
  std::vector<ValueId> narrow_;  // of each source value, its bf16 form in the target
  std::vector<bool> is_narrow_;  // whether that is its only form in memory
};

}  // namespace

Graph mixed_precision(const Graph& graph) { return Narrower(graph).run(); }

}  // namespace sgtc
