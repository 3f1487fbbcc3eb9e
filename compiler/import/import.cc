#include "import/import.h"

#include <algorithm>
#include <set>

#include "import/check_algorithm.h"
#include "import/initializers.h"
#include "import/mark_backward_nodes.h"
#include "import/node_lowering.h"
#include "import/parameters.h"
#include "import/soundness.h"
#include "import/tensor.h"
#include "ir/limits.h"

namespace sgtc {
namespace {

constexpr const char* kControlNames[] = {"learning_rate", "seed", "step"};

class Importer {
 public:
  Importer(const OnnxModel& model, const ImportOptions& options, Diagnostics& diagnostics)
      : options_(options),
        diagnostics_(diagnostics),
        proto_(model.proto().graph()),
        state_(model, diagnostics) {
    state_.training = options.training;
    state_.accepts_slow = options.accepts_slow;
    state_.most_tensors = options.max_tensors;
    state_.micro_batches = options.micro_batches * options.replicas;
    state_.gradients = options.gradients;
    state_.padding_index = options.padding_index;
    state_.graph.name = proto_.name();
    state_.graph.micro_batches = options.micro_batches;
    state_.graph.replicas = options.replicas;
  }

  Graph run() {
    reserve_names();
    declare_initializers(state_, options_.train);
    declare_inputs();
    check_outputs();
    diagnostics_.checkpoint();
    choose_wanted();
    diagnostics_.checkpoint();
    bind_leaves();
    Surroundings surroundings;
    surroundings.opsets = &state_.model.opsets();
    surroundings.owner = state_.model.shared_proto();
    lower_nodes(state_, proto_.node(), wanted_, scope_, surroundings);
    diagnostics_.checkpoint();
    state_.graph.context() = {};
    const ValueId loss = add_outputs();
    diagnostics_.checkpoint();
    if (options_.training) mark_backward_nodes(state_.graph, state_.model.given_gradients());
    assign_roles(state_, loss, options_.train, options_.freeze);
    for (const auto& [running, next] : state_.statistic_updates) {
      state_.graph.updates.push_back({running, next});
    }
    report_unused_inputs();
    report_unused_padding();
    if (options_.training && loss != kNone) check_soundness(state_, loss);
    diagnostics_.checkpoint();
    return std::move(state_.graph);
  }

 private:
  void reserve_names() {
    for (const auto& tensor : proto_.initializer()) state_.reserved_names.insert(tensor.name());
    for (const auto& sparse : proto_.sparse_initializer()) {
      state_.reserved_names.insert(sparse.values().name());
    }
    for (const char* name : kControlNames) {
      const bool taken = state_.reserved_names.count(name) != 0 ||
                         std::any_of(proto_.input().begin(), proto_.input().end(),
                                     [name](const auto& input) { return input.name() == name; });
      if (taken) {
        diagnostics_.error("tensor \"" + std::string(name) + "\"",
                           "inputs and initializers must not be called learning_rate, seed or "
                           "step; rename it");
      }
    }
    state_.reserved_names.insert(std::begin(kControlNames), std::end(kControlNames));
  }

  // An operand without a name is one that is absent.
  void check_name(const std::string& kind, const onnx::ValueInfoProto& value) {
    if (!value.name().empty()) return;
    diagnostics_.error(kind + " \"\"", "the " + kind + " has no name; give it one");
  }

  void check_outputs() {
    std::set<std::string> seen;
    for (const auto& output : proto_.output()) {
      check_name("output", output);
      if (seen.insert(output.name()).second) continue;
      diagnostics_.error("output \"" + output.name() + "\"", "the name is given twice");
    }
  }

  // Inputs that are initializers too are weights.
  void declare_inputs() {
    std::set<std::string> seen;
    for (const auto& input : proto_.input()) {
      check_name("input", input);
      if (!seen.insert(input.name()).second) {
        diagnostics_.error("input \"" + input.name() + "\"", "the name is given twice");
      } else if (state_.leaves.find(input.name()) < 0) {
        declare_feed(input);
      }
    }
    for (const auto& [name, size] : options_.dims) {
      if (used_dims_.count(name) != 0) continue;
      std::string known;
      for (const std::string& dim : known_dims_) known += (known.empty() ? "" : ", ") + dim;
      diagnostics_.error("--dim " + name + "=" + std::to_string(size),
                         "the model has no symbolic dimension of that name; it has " +
                             (known.empty() ? std::string("none") : known));
    }
  }

  void declare_feed(const onnx::ValueInfoProto& input) {
    const std::string object = "input \"" + input.name() + "\"";
    if (!input.type().has_tensor_type()) {
      diagnostics_.error(object,
                         "expected a tensor; sequences, maps and optional values are not "
                         "supported");
      return;
    }
    const auto& tensor = input.type().tensor_type();
    const std::optional<DType> dtype = dtype_from_onnx(tensor.elem_type());
    if (!dtype) {
      diagnostics_.error(
          object, "tensors of type " + onnx_dtype_name(tensor.elem_type()) + " are not supported");
      return;
    }
    if (!tensor.has_shape()) {
      diagnostics_.error(object, "its rank is not known; export the model with shapes");
      return;
    }
    TensorType type{*dtype, {}};
    for (int k = 0; k < tensor.shape().dim_size(); ++k) {
      type.shape.push_back(dimension(input.name(), k, tensor.shape().dim(k)));
    }
    try {
      check_size(type);
    } catch (const Error& error) {
      diagnostics_.error(object, error.what());
      return;
    }
    Binding binding;
    binding.value = state_.graph.add_feed(input.name(), type);
    scope_.names[input.name()] = binding;
    if (!type.shape.empty() && state_.graph.micro_batch_rows == 0) {
      state_.graph.micro_batch_rows = type.shape[0];
    }
  }

  // The size of dimension `k`; 1 after an error.
  int64_t dimension(const std::string& input, int k, const onnx::TensorShapeProto::Dimension& dim) {
    if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
    const std::string name = dim.has_dim_param() && !dim.dim_param().empty()
                                 ? dim.dim_param()
                                 : input + "_dim" + std::to_string(k);
    known_dims_.insert(name);
    const auto bound = options_.dims.find(name);
    if (bound == options_.dims.end()) {
      diagnostics_.error("input \"" + input + "\"",
                         "dimension " + std::to_string(k) + " (\"" + name +
                             "\") has no size; give it with --dim " + name + "=N");
      return 1;
    }
    used_dims_.insert(name);
    if (bound->second >= 0) return bound->second;
    diagnostics_.error("--dim " + name,
                       "expected a size of 0 or more, found " + std::to_string(bound->second));
    return 1;
  }

  void bind_leaves() {
    for (int i = 0; i < state_.leaves.size(); ++i) {
      Binding binding;
      binding.leaf = i;
      scope_.names[state_.leaves[i].name] = binding;
    }
  }

  static bool declared_scalar_float(const onnx::ValueInfoProto& output) {
    const auto& tensor = output.type().tensor_type();
    const std::optional<DType> dtype = dtype_from_onnx(tensor.elem_type());
    if (!dtype || !is_float(*dtype) || !tensor.has_shape()) return false;
    return std::all_of(tensor.shape().dim().begin(), tensor.shape().dim().end(),
                       [](const auto& dim) { return dim.has_dim_value() && dim.dim_value() == 1; });
  }

  std::string output_names() const {
    std::string names;
    for (const auto& output : proto_.output()) {
      names += (names.empty() ? "\"" : ", \"") + output.name() + "\"";
    }
    return names.empty() ? "none" : names;
  }

  // By the command line or the file's training algorithm.
  const std::string& chosen_loss() const {
    const std::string& own = state_.model.algorithm().loss;
    return own.empty() ? options_.loss : own;
  }

  // The loss as far as the declared types tell; empty when they do not.
  std::string declared_loss() const {
    if (!chosen_loss().empty()) return chosen_loss();
    std::string found;
    for (const auto& output : proto_.output()) {
      if (!declared_scalar_float(output)) continue;
      if (!found.empty()) return "";
      found = output.name();
    }
    return found;
  }

  // Which outputs are lowered: all that are supported, and the loss in any case.
  void choose_wanted() {
    if (!options_.loss.empty()) {
      const bool known =
          std::any_of(proto_.output().begin(), proto_.output().end(),
                      [this](const auto& output) { return output.name() == options_.loss; });
      if (!known) {
        diagnostics_.error(
            "--loss " + options_.loss,
            "the model has no output of that name; its outputs are " + output_names());
        return;
      }
    }
    check_algorithm(state_.model.algorithm(), options_, diagnostics_);
    const std::string loss = declared_loss();
    std::vector<std::string> required = appended_outputs();
    for (const auto& output : proto_.output()) {
      if (loss.empty() || output.name() == loss) required.push_back(output.name());
    }
    const std::vector<int> needed = needed_nodes(proto_.node(), required);
    report_unsupported(
        unsupported_nodes(state_.model, proto_.node(), needed, options_.accepts_slow));
    wanted_ = appended_outputs();
    for (const auto& output : proto_.output()) {
      if (output.name() == loss || is_supported(output.name())) wanted_.push_back(output.name());
    }
  }

  // What follows the file's outputs.
  std::vector<std::string> appended_outputs() const {
    std::vector<std::string> names = options_.extra_outputs;
    if (!options_.training) return names;
    for (const NamedGradient& given : state_.model.given_gradients()) {
      names.push_back(given.gradient);
    }
    for (const std::string& value : state_.model.algorithm().forward_values) {
      const ValueId feed = state_.graph.find(value);
      if (feed == kNone || state_.graph.value(feed).kind != ValueKind::kFeed) {
        names.push_back(value);
      }
    }
    return names;
  }

  void report_unsupported(const std::vector<std::string>& nodes) {
    if (nodes.empty()) return;
    std::string text =
        std::to_string(nodes.size()) +
        (nodes.size() == 1 ? " node has an operator that is" : " nodes have operators that are") +
        " not supported:";
    for (const std::string& node : nodes) text += "\n  " + node;
    diagnostics_.error(state_.model.name(), text);
  }

  bool is_supported(const std::string& output) {
    const std::vector<std::string> nodes = unsupported_nodes(
        state_.model, proto_.node(), needed_nodes(proto_.node(), {output}), options_.accepts_slow);
    if (!nodes.empty() && !diagnostics_.has_errors()) {
      diagnostics_.warning("output \"" + output + "\"",
                           "left out, it needs what is not supported: " + nodes[0]);
    }
    return nodes.empty();
  }

  ValueId value_of(const std::string& name) {
    const Binding* binding = scope_.find(name);
    if (!binding || !binding->present()) {
      diagnostics_.error("output \"" + name + "\"", "nothing computes it");
      return kNone;
    }
    return state_.value(*binding);
  }

  bool is_scalar_float(ValueId id) const {
    return is_float(state_.graph.dtype(id)) && element_count(state_.graph.shape(id)) == 1;
  }

  std::string find_loss(const std::vector<Output>& outputs) {
    if (!chosen_loss().empty()) return chosen_loss();
    std::vector<std::string> candidates;
    for (const Output& output : outputs) {
      if (is_scalar_float(output.value)) candidates.push_back(output.name);
    }
    if (candidates.size() == 1) return candidates[0];
    if (!options_.training) return "";
    std::string text =
        candidates.empty() ? "no output is a scalar float" : "several outputs are scalar floats";
    diagnostics_.error(
        state_.model.name(),
        text + "; name the loss with --loss NAME, the outputs are " + output_names());
    return "";
  }

  // The outputs of the file that were lowered, in order, and the loss among them first.
  ValueId add_outputs() {
    std::vector<Output> outputs;
    for (const auto& output : proto_.output()) {
      if (std::count(wanted_.begin(), wanted_.end(), output.name()) == 0) continue;
      const ValueId id = value_of(output.name());
      if (id != kNone) outputs.push_back({output.name(), id});
    }
    if (diagnostics_.has_errors()) return kNone;
    const std::string loss = find_loss(outputs);
    std::vector<Output>& list = state_.graph.outputs;
    for (const Output& output : outputs) {
      if (output.name == loss && list.empty()) list.push_back({loss, loss_value(output)});
    }
    for (const Output& output : outputs) {
      const bool shown = loss.empty() || is_float(state_.graph.dtype(output.value));
      if (output.name != loss && shown) list.push_back(output);
    }
    for (const std::string& name : appended_outputs()) {
      const bool listed = std::any_of(list.begin(), list.end(),
                                      [&name](const Output& o) { return o.name == name; });
      const ValueId id = listed ? kNone : value_of(name);
      if (id != kNone) list.push_back({name, id});
    }
    return loss.empty() ? kNone : list.front().value;
  }

  ValueId loss_value(const Output& output) {
    if (!is_scalar_float(output.value)) {
      const TensorType& type = state_.graph.type(output.value);
      diagnostics_.error("--loss " + output.name, "expected a scalar float, found " +
                                                      std::string(name_of(type.dtype)) +
                                                      " of shape " + to_string(type.shape));
      return output.value;
    }
    Emitter emitter(state_.graph, &state_.reserved_names);
    emitter.set_result_name(output.name);
    return emitter.reshape(output.value, {});
  }

  void report_unused_inputs() {
    std::set<ValueId> used;
    for (const Node& node : state_.graph.nodes) {
      used.insert(node.operands.begin(), node.operands.end());
    }
    for (const Output& output : state_.graph.outputs) used.insert(output.value);
    for (ValueId feed : state_.graph.feeds) {
      if (used.count(feed) == 0) {
        diagnostics_.warning("input \"" + state_.graph.value(feed).name + "\"",
                             "no node uses its values");
      }
    }
  }

  void report_unused_padding() {
    for (const auto& [name, row] : options_.padding_index) {
      if (state_.padded.count(name) != 0) continue;
      diagnostics_.error("--padding-index " + name + "=" + std::to_string(row),
                         "no Gather looks up rows of an initializer of that name");
    }
  }

  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  const onnx::GraphProto& proto_;
  ImportState state_;
  Scope scope_;
  std::vector<std::string> wanted_;
  std::set<std::string> known_dims_, used_dims_;
};

}  // namespace

Graph import_graph(const OnnxModel& model, const ImportOptions& options, Diagnostics& diagnostics) {
  return Importer(model, options, diagnostics).run();
}

}  // namespace sgtc
