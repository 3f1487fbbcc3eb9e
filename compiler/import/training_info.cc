// ONNX defines a training step as one graph, the inference graph and the algorithm together, and
// knows no phases. sgtc needs three: the loss, to split it over micro-batches; the gradients, to
// accumulate them; and the update, which runs once per step. So the merged graph is cut at the
// Gradient nodes: what the outputs need is forward, the Gradient nodes are replaced by sgtc's own
// differentiation, and what only the updates need is the update. Values that cross from forward to
// update otherwise than through gradients exist per micro-batch; the import refuses more than one
// micro-batch then.
#include "import/training_info.h"

#include <algorithm>
#include <map>

#include "import/gradient_node.h"
#include "import/node_order.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

const onnx::TrainingInfoProto* find_algorithm(const onnx::ModelProto& proto) {
  const onnx::TrainingInfoProto* found = nullptr;
  for (const auto& info : proto.training_info()) {
    if (info.algorithm().node_size() == 0) continue;
    if (found) {
      throw Error("the file has more than one training algorithm (training_info); expected one");
    }
    found = &info;
  }
  return found;
}

template <typename List>
void append_new(const List& list, List* target) {
  for (const auto& item : list) {
    const bool known = std::any_of(target->begin(), target->end(), [&item](const auto& other) {
      return other.name() == item.name();
    });
    if (!known) *target->Add() = item;
  }
}

class Merge {
 public:
  Merge(onnx::GraphProto& graph, const onnx::TrainingInfoProto& info)
      : graph_(graph), info_(info) {}

  TrainingAlgorithm run() {
    const onnx::GraphProto& algorithm = info_.algorithm();
    const int first_node = graph_.node_size();
    append_new(algorithm.input(), graph_.mutable_input());
    graph_.mutable_initializer()->MergeFrom(algorithm.initializer());
    graph_.mutable_sparse_initializer()->MergeFrom(algorithm.sparse_initializer());
    graph_.mutable_node()->MergeFrom(algorithm.node());
    for (const auto& tensor : graph_.initializer()) initializers_.insert(tensor.name());
    for (const auto& sparse : graph_.sparse_initializer()) {
      initializers_.insert(sparse.values().name());
    }
    take_gradient_nodes(first_node);
    read_bindings();
    choose_outputs(algorithm);
    classify();
    return std::move(result_);
  }

 private:
  void take_gradient_nodes(int first_node) {
    auto& nodes = *graph_.mutable_node();
    for (int i = first_node; i < nodes.size(); ++i) {
      if (is_gradient_node(nodes[i])) take_gradient_node(nodes[i]);
    }
    const auto end = std::remove_if(nodes.begin() + first_node, nodes.end(), is_gradient_node);
    nodes.erase(end, nodes.end());
  }

  static GradientNode read(const onnx::NodeProto& node) {
    try {
      return read_gradient_node(node);
    } catch (const Error& error) {
      throw Error(describe(node) + ": " + error.what());
    }
  }

  void take_gradient_node(const onnx::NodeProto& node) {
    const GradientNode gradient = read(node);
    if (!gradient.at_named_values) {
      throw Error(describe(node) +
                  " of a training algorithm: expected its inputs to be the values "
                  "that xs and zs name");
    }
    if (!result_.loss.empty() && result_.loss != gradient.y) {
      throw Error(describe(node) + " differentiates \"" + gradient.y + "\", another Gradient \"" +
                  result_.loss + "\"; expected one loss in a training algorithm");
    }
    result_.loss = gradient.y;
    for (const std::string& held : gradient.zs) {
      if (is_computed(held)) refuse_variable(node, held, "zs");
    }
    for (size_t i = 0; i < gradient.xs.size(); ++i) {
      if (initializers_.count(gradient.xs[i]) == 0) refuse_variable(node, gradient.xs[i], "xs");
      const bool wanted = static_cast<int>(i) < node.output_size();
      const std::string output = wanted ? node.output(static_cast<int>(i)) : "";
      if (output.empty()) continue;
      result_.gradients.push_back({gradient.xs[i], output});
      gradients_.insert(output);
    }
  }

  [[noreturn]] static void refuse_variable(const onnx::NodeProto& node, const std::string& name,
                                           const std::string& list) {
    throw Error(describe(node) + " of a training algorithm: \"" + name + "\" in " + list +
                " is not an initializer" + (list == "zs" ? " or an input" : "") + "; make it one");
  }

  bool is_computed(const std::string& name) const {
    return std::any_of(graph_.node().begin(), graph_.node().end(), [&name](const auto& node) {
      return std::count(node.output().begin(), node.output().end(), name) != 0;
    });
  }

  void read_bindings() {
    for (const auto& binding : info_.update_binding()) {
      const std::string object = "update_binding of \"" + binding.key() + "\"";
      if (initializers_.count(binding.key()) == 0) {
        throw Error(object + ": there is no initializer of that name");
      }
      if (result_.updates_state(binding.key())) throw Error(object + ": it is given twice");
      if (!is_computed(binding.value()) && gradients_.count(binding.value()) == 0) {
        throw Error(object + ": nothing computes \"" + binding.value() + "\"");
      }
      if (!is_statistic(binding)) result_.updates.push_back({binding.key(), binding.value()});
    }
    if (result_.updates.empty()) {
      throw Error("the training algorithm updates nothing: its update_binding is empty");
    }
  }

  // Running statistics that a BatchNormalization computes from themselves.
  bool is_statistic(const onnx::StringStringEntryProto& binding) const {
    for (const auto& node : graph_.node()) {
      if (node.op_type() != "BatchNormalization") continue;
      for (int k = 1; k < node.output_size() && k <= 2; ++k) {
        const bool own = node.input_size() > k + 2 && node.input(k + 2) == binding.key();
        if (own && node.output(k) == binding.value()) return true;
      }
    }
    return false;
  }

  std::vector<const onnx::NodeProto*> nodes_behind(const std::vector<std::string>& names) const {
    std::vector<const onnx::NodeProto*> nodes;
    for (int i : needed_nodes(graph_.node(), names)) nodes.push_back(&graph_.node(i));
    return nodes;
  }

  bool needs_gradient(const std::string& name) const {
    if (gradients_.count(name) != 0) return true;
    const auto nodes = nodes_behind({name});
    return std::any_of(nodes.begin(), nodes.end(), [this](const onnx::NodeProto* node) {
      return std::any_of(node->input().begin(), node->input().end(),
                         [this](const auto& input) { return gradients_.count(input) != 0; });
    });
  }

  bool is_update(const std::string& name) const {
    return std::any_of(result_.updates.begin(), result_.updates.end(),
                       [&name](const UpdateBinding& update) { return update.value == name; });
  }

  void choose_outputs(const onnx::GraphProto& algorithm) {
    for (const auto& output : algorithm.output()) {
      if (is_update(output.name()) || needs_gradient(output.name())) continue;
      google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> one;
      *one.Add() = output;
      append_new(one, graph_.mutable_output());
    }
    if (result_.loss.empty()) return;
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> loss;
    loss.Add()->set_name(result_.loss);
    append_new(loss, graph_.mutable_output());
  }

  // What the update reads of the forward graph, and which input is the learning rate.
  void classify() {
    std::vector<std::string> outputs, updates;
    for (const auto& output : graph_.output()) outputs.push_back(output.name());
    for (const UpdateBinding& update : result_.updates) updates.push_back(update.value);
    std::set<std::string> made, read;
    std::set<const onnx::NodeProto*> forward;
    for (const onnx::NodeProto* node : nodes_behind(outputs)) {
      forward.insert(node);
      made.insert(node->output().begin(), node->output().end());
      read.insert(node->input().begin(), node->input().end());
    }
    std::set<std::string>& reads = result_.reads;
    reads.insert(updates.begin(), updates.end());
    for (const onnx::NodeProto* node : nodes_behind(updates)) {
      if (forward.count(node) != 0) continue;
      const std::set<std::string> inputs = inputs_of(*node);
      reads.insert(inputs.begin(), inputs.end());
    }
    for (const std::string& name : reads) {
      if (made.count(name) != 0) result_.forward_values.push_back(name);
    }
    for (const onnx::ValueInfoProto& input :
         std::vector<onnx::ValueInfoProto>(graph_.input().begin(), graph_.input().end())) {
      if (reads.count(input.name()) == 0 || initializers_.count(input.name()) != 0) continue;
      if (read.count(input.name()) != 0) {
        result_.forward_values.push_back(input.name());
      } else {
        take_learning_rate(input);
      }
    }
  }

  void take_learning_rate(const onnx::ValueInfoProto& input) {
    const auto& type = input.type().tensor_type();
    const bool real = type.elem_type() == onnx::TensorProto::FLOAT ||
                      type.elem_type() == onnx::TensorProto::DOUBLE;
    const auto& dims = type.shape().dim();
    const bool scalar =
        type.has_shape() && dims.size() <= 1 &&
        std::all_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.dim_value() == 1; });
    if (!real || !scalar || result_.learning_rate) {
      throw Error("input \"" + input.name() +
                  "\" is read by the update of the training algorithm alone: expected " +
                  (result_.learning_rate
                       ? "one such input, and \"" + result_.learning_rate->name() + "\" is the one"
                       : "a float scalar, the learning rate") +
                  "; make it an initializer");
    }
    result_.learning_rate = input;
    auto& inputs = *graph_.mutable_input();
    inputs.erase(std::find_if(inputs.begin(), inputs.end(), [&input](const auto& candidate) {
      return candidate.name() == input.name();
    }));
  }

  onnx::GraphProto& graph_;
  const onnx::TrainingInfoProto& info_;
  TrainingAlgorithm result_;
  std::set<std::string> initializers_, gradients_;
};

}  // namespace

bool TrainingAlgorithm::updates_state(const std::string& name) const {
  return std::any_of(updates.begin(), updates.end(),
                     [&name](const UpdateBinding& update) { return update.state == name; });
}

TrainingAlgorithm merge_algorithm(onnx::ModelProto& proto) {
  const onnx::TrainingInfoProto* info = find_algorithm(proto);
  if (!info) return {};
  return Merge(*proto.mutable_graph(), onnx::TrainingInfoProto(*info)).run();
}

}  // namespace sgtc
