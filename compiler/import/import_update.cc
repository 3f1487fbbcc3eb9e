#include "import/import_update.h"

#include <algorithm>

#include "import/initializers.h"
#include "import/node_lowering.h"
#include "import/tensor.h"

namespace sgtc {
namespace {

class UpdateImporter {
 public:
  UpdateImporter(const OnnxModel& model, Graph graph,
                 const std::map<std::string, ValueId>& gradients, Diagnostics& diagnostics)
      : algorithm_(model.algorithm()), gradients_(gradients), state_(model, diagnostics) {
    state_.graph = std::move(graph);
    state_.micro_batches = state_.graph.micro_batches * state_.graph.replicas;
    state_.training = false;  // what is said once when training was said by the first import
  }

  Graph run() {
    state_.graph.context() = {Phase::kUpdate, 0, {}};
    reserve_names();
    declare_initializers(state_, {});
    bind_leaves();
    bind_forward_values();
    bind_gradients();
    bind_learning_rate();
    lower();
    state_.diagnostics.checkpoint();
    add_updates();
    state_.diagnostics.checkpoint();
    return std::move(state_.graph);
  }

 private:
  void bind(const std::string& name, ValueId value) { scope_.names[name].value = value; }

  void reserve_names() {
    for (const Value& value : state_.graph.values) state_.reserved_names.insert(value.name);
  }

  // States of the forward graph stay; what is neither there nor updated is a constant.
  void bind_leaves() {
    for (int i = 0; i < state_.leaves.size(); ++i) {
      Leaf& leaf = state_.leaves[i];
      const ValueId known = state_.graph.find(leaf.name);
      if (known != kNone && state_.graph.value(known).kind == ValueKind::kState) {
        leaf.value = known;
      } else if (!algorithm_.updates_state(leaf.name) && leaf.initial.literal) {
        leaf.kind = LeafKind::kConstant;
      }
      scope_.names[leaf.name].leaf = i;
    }
  }

  void bind_forward_values() {
    std::vector<Output>& outputs = state_.graph.outputs;
    for (const std::string& name : algorithm_.forward_values) {
      const auto output = std::find_if(outputs.begin(), outputs.end(),
                                       [&name](const Output& o) { return o.name == name; });
      bind(name, output == outputs.end() ? state_.graph.find(name) : output->value);
    }
    std::set<std::string> shown;
    for (const auto& output : state_.model.proto().graph().output()) shown.insert(output.name());
    const std::vector<std::string>& carried = algorithm_.forward_values;
    outputs.erase(std::remove_if(outputs.begin(), outputs.end(),
                                 [&](const Output& output) {
                                   return shown.count(output.name) == 0 &&
                                          std::count(carried.begin(), carried.end(), output.name) !=
                                              0;
                                 }),
                  outputs.end());
  }

  void bind_gradients() {
    Emitter emitter(state_.graph, &state_.reserved_names);
    for (const NamedGradient& named : algorithm_.gradients) {
      const auto found = gradients_.find(named.parameter);
      if (found != gradients_.end()) {
        bind(named.gradient, found->second);
        continue;
      }
      const TensorType type = state_.leaves.type(state_.leaves.find(named.parameter));
      bind(named.gradient, emitter.broadcast(emitter.scalar(type.dtype, 0), type.shape));
    }
  }

  void bind_learning_rate() {
    if (!algorithm_.learning_rate) return;
    const auto& type = algorithm_.learning_rate->type().tensor_type();
    Emitter emitter(state_.graph, &state_.reserved_names);
    const ValueId rate =
        emitter.cast(state_.graph.control("learning_rate"), *dtype_from_onnx(type.elem_type()));
    const Shape shape(static_cast<size_t>(type.shape().dim_size()), 1);
    bind(algorithm_.learning_rate->name(), emitter.reshape(rate, shape));
  }

  void lower() {
    Surroundings surroundings;
    surroundings.opsets = &state_.model.opsets();
    surroundings.owner = state_.model.shared_proto();
    surroundings.phase = Phase::kUpdate;
    std::vector<std::string> wanted;
    for (const UpdateBinding& update : algorithm_.updates) wanted.push_back(update.value);
    lower_nodes(state_, state_.model.proto().graph().node(), wanted, scope_, surroundings);
  }

  void add_updates() {
    for (const UpdateBinding& update : algorithm_.updates) {
      const Binding& bound = scope_.names[update.value];
      const ValueId value = bound.value != kNone ? bound.value : state_.leaves.value(bound.leaf);
      const int leaf = state_.leaves.find(update.state);
      const ValueId state = state_.leaves.value(leaf);
      StateRole& role = state_.graph.value(state).role;
      if (role == StateRole::kFrozen) role = StateRole::kMoment;
      const TensorType& expected = state_.graph.type(state);
      const TensorType& found = state_.graph.type(value);
      if (found == expected) {
        state_.graph.updates.push_back({state, value});
        continue;
      }
      state_.diagnostics.error(
          "update_binding of \"" + update.state + "\"",
          "expected a value of type " + std::string(name_of(expected.dtype)) + " and shape " +
              to_string(expected.shape) + ", found \"" + update.value + "\" of type " +
              std::string(name_of(found.dtype)) + " and shape " + to_string(found.shape));
    }
  }

  const TrainingAlgorithm& algorithm_;
  const std::map<std::string, ValueId>& gradients_;
  ImportState state_;
  Scope scope_;
};

}  // namespace

Graph import_update(const OnnxModel& model, Graph graph,
                    const std::map<std::string, ValueId>& gradients, Diagnostics& diagnostics) {
  return UpdateImporter(model, std::move(graph), gradients, diagnostics).run();
}

}  // namespace sgtc
