// Structure-aware changes. A generic mutator of protobuf messages would break nearly every model:
// a node is only reached by the import when its operator exists, its inputs are names that earlier
// values have, and its attributes are those that the operator knows. So each change below knows one
// of these things, draws the rest from what the model and ONNX's table of operators have, and
// leaves the others alone.
#include "fuzz/mutate_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/compile_model.h"
#include "fuzz/mutate_parts.h"

namespace sgtc::fuzz {
namespace {

constexpr int64_t kMostNodes = 60;

void collect(onnx::GraphProto& graph, std::vector<onnx::GraphProto*>& graphs) {
  graphs.push_back(&graph);
  for (auto& node : *graph.mutable_node()) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) collect(*attribute.mutable_g(), graphs);
    }
  }
}

// Names that a node at `end` may use: inputs, initializers and results of earlier nodes.
std::vector<std::string> names_before(const onnx::GraphProto& graph, int end) {
  std::vector<std::string> names;
  for (const auto& input : graph.input()) names.push_back(input.name());
  for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
  for (int i = 0; i < std::min(end, graph.node_size()); ++i) {
    for (const std::string& name : graph.node(i).output()) {
      if (!name.empty()) names.push_back(name);
    }
  }
  return names;
}

void rename_uses(onnx::GraphProto& graph, int begin, const std::string& from,
                 const std::string& to) {
  for (int i = begin; i < graph.node_size(); ++i) {
    for (std::string& input : *graph.mutable_node(i)->mutable_input()) {
      if (input == from) input = to;
    }
  }
}

// The last node moves to place `at`.
void move_last_node(onnx::GraphProto& graph, int at) {
  for (int i = graph.node_size() - 1; i > at; --i) graph.mutable_node()->SwapElements(i, i - 1);
}

class Change {
 public:
  Change(Random& random, onnx::ModelProto& model) : random_(random), model_(model) {
    std::vector<onnx::GraphProto*> graphs;
    collect(*model.mutable_graph(), graphs);
    graph_ = random_.chance(0.7) ? graphs.front() : random_.pick(graphs);
  }

  void apply() {
    using Kind = void (Change::*)();
    static const std::vector<Kind> kKinds = {
        &Change::change_operator,  &Change::change_operator,    &Change::change_input,
        &Change::change_input,     &Change::insert_unary,       &Change::insert_unary,
        &Change::insert_binary,    &Change::insert_binary,      &Change::remove_node,
        &Change::change_attribute, &Change::change_attribute,   &Change::change_attribute,
        &Change::add_attribute,    &Change::change_initializer, &Change::change_initializer,
        &Change::change_feed,      &Change::exchange_feed,      &Change::change_outputs,
        &Change::copy_node,        &Change::change_file,        &Change::change_bytes,
        &Change::change_options,
    };
    (this->*random_.pick(kKinds))();
  }

 private:
  int pick_node() { return random_.index(graph_->node_size()); }

  std::string fresh_name() {
    return "m" + std::to_string(graph_->node_size()) + "_" +
           std::to_string(random_.integer(0, 999));
  }

  void change_operator() {
    if (graph_->node_size() == 0) return;
    onnx::NodeProto& node = *graph_->mutable_node(pick_node());
    node.set_op_type(random_operator(random_, node));
  }

  void change_input() {
    if (graph_->node_size() == 0) return;
    const int at = pick_node();
    onnx::NodeProto& node = *graph_->mutable_node(at);
    const std::vector<std::string> names = names_before(*graph_, at);
    const int64_t kind = random_.integer(0, 9);
    if (node.input_size() == 0 || kind == 0) {
      if (!names.empty()) node.add_input(random_.pick(names));
    } else if (kind == 1) {
      node.mutable_input()->RemoveLast();
    } else if (kind == 2) {
      node.mutable_input(random_.index(node.input_size()))->clear();
    } else if (!names.empty()) {
      *node.mutable_input(random_.index(node.input_size())) = random_.pick(names);
    }
  }

  // Puts a node between a value and those that use it.
  void insert(const std::string& op, bool binary) {
    if (graph_->node_size() >= kMostNodes || graph_->node_size() == 0) return;
    const int at = pick_node();
    const std::vector<std::string> names = names_before(*graph_, at);
    if (names.empty()) return;
    const std::string value = random_.pick(names), name = fresh_name();
    if (random_.chance(0.8)) rename_uses(*graph_, at, value, name);
    onnx::NodeProto& node = *graph_->add_node();
    node.set_op_type(op);
    node.add_input(value);
    if (binary) node.add_input(random_.pick(names));
    if (random_.chance(0.3))
      std::reverse(node.mutable_input()->begin(), node.mutable_input()->end());
    node.add_output(name);
    move_last_node(*graph_, at);
  }
  void insert_unary() { insert(random_unary(random_), false); }
  void insert_binary() { insert(random_binary(random_), true); }

  void remove_node() {
    if (graph_->node_size() < 2) return;
    const int at = pick_node();
    const onnx::NodeProto node = graph_->node(at);
    graph_->mutable_node()->DeleteSubrange(at, 1);
    if (node.input_size() == 0) return;
    for (const std::string& output : node.output()) rename_uses(*graph_, at, output, node.input(0));
  }

  void copy_node() {
    if (graph_->node_size() == 0 || graph_->node_size() >= kMostNodes) return;
    const int at = pick_node();
    onnx::NodeProto copy = graph_->node(at);
    if (copy.output_size() == 0) return;
    const std::string old = copy.output(0), name = fresh_name();
    for (std::string& output : *copy.mutable_output()) output = output.empty() ? "" : fresh_name();
    copy.set_output(0, name);
    if (copy.input_size() > 0 && random_.chance(0.5)) copy.set_input(0, old);
    rename_uses(*graph_, at + 1, old, name);
    *graph_->add_node() = std::move(copy);
    move_last_node(*graph_, at + 1);
  }

  void change_attribute() {
    if (graph_->node_size() == 0) return;
    onnx::NodeProto& node = *graph_->mutable_node(pick_node());
    if (node.attribute_size() == 0) return add_attribute_to(node);
    const int at = random_.index(node.attribute_size());
    if (random_.chance(0.1)) {
      node.mutable_attribute()->DeleteSubrange(at, 1);
    } else {
      mutate_attribute(random_, *node.mutable_attribute(at));
    }
  }

  void add_attribute() {
    if (graph_->node_size() > 0) add_attribute_to(*graph_->mutable_node(pick_node()));
  }
  void add_attribute_to(onnx::NodeProto& node) { fuzz::add_attribute(random_, node); }

  void change_initializer() {
    if (graph_->initializer_size() > 0) {
      mutate_tensor(random_,
                    *graph_->mutable_initializer(random_.index(graph_->initializer_size())));
    }
  }

  void change_feed() {
    if (graph_->input_size() == 0) return;
    onnx::ValueInfoProto& input = *graph_->mutable_input(random_.index(graph_->input_size()));
    auto& type = *input.mutable_type()->mutable_tensor_type();
    if (random_.chance(0.1)) {
      type.set_elem_type(random_dtype(random_));
    } else if (type.shape().dim_size() == 0 || random_.chance(0.1)) {
      type.mutable_shape()->add_dim()->set_dim_value(random_.size());
    } else if (random_.chance(0.1)) {
      type.mutable_shape()->mutable_dim()->RemoveLast();
    } else if (random_.chance(0.1)) {
      type.mutable_shape()->mutable_dim(0)->set_dim_param("B");
    } else {
      const int at = random_.index(type.shape().dim_size());
      type.mutable_shape()->mutable_dim(at)->set_dim_value(random_.size());
    }
  }

  // A parameter becomes an input.
  void exchange_feed() {
    if (graph_->initializer_size() == 0) return;
    const int at = random_.index(graph_->initializer_size());
    const onnx::TensorProto& tensor = graph_->initializer(at);
    onnx::ValueInfoProto& input = *graph_->add_input();
    input.set_name(tensor.name());
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    for (const int64_t size : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(size);
    graph_->mutable_initializer()->DeleteSubrange(at, 1);
  }

  void change_outputs() {
    const std::vector<std::string> names = names_before(*graph_, graph_->node_size());
    if (names.empty()) return;
    if (graph_->output_size() > 1 && random_.chance(0.5)) {
      graph_->mutable_output()->RemoveLast();
    } else {
      graph_->add_output()->set_name(random_.pick(names));
    }
  }

  void change_file() {
    if (model_.opset_import_size() > 0 && random_.chance(0.7)) {
      model_.mutable_opset_import(0)->set_version(random_.integer(7, 24));
    } else {
      model_.set_ir_version(random_.integer(3, 12));
    }
  }

  void change_bytes() { mutate_bytes(random_, model_); }
  void change_options() {
    model_.set_model_version(random_.index(static_cast<int>(option_choices())));
  }

  Random& random_;
  onnx::ModelProto& model_;
  onnx::GraphProto* graph_;
};

}  // namespace

void ModelMutator::mutate(onnx::ModelProto& model) {
  Random random(random_);
  for (int64_t left = random.integer(1, 3); left > 0; --left) Change(random, model).apply();
}

void ModelMutator::cross(onnx::ModelProto& model, const onnx::ModelProto& other) {
  Random random(random_);
  onnx::GraphProto& graph = *model.mutable_graph();
  const onnx::GraphProto& from = other.graph();
  if (from.node_size() == 0 || graph.node_size() >= kMostNodes) return;
  const int first = random.index(from.node_size());
  const int count = static_cast<int>(random.integer(1, std::min(3, from.node_size() - first)));
  const int at = random.index(graph.node_size() + 1);
  std::vector<std::string> names = names_before(graph, at);
  // Names of the other model are made new ones, so that they cannot meet those of this one.
  const std::string prefix = "x" + std::to_string(random.integer(0, 9999)) + "_";
  for (const auto& tensor : from.initializer()) {
    *graph.add_initializer() = tensor;
    graph.mutable_initializer(graph.initializer_size() - 1)->set_name(prefix + tensor.name());
  }
  std::vector<std::string> known;
  for (const auto& tensor : from.initializer()) known.push_back(tensor.name());
  std::string last;
  for (int k = 0; k < count; ++k) {
    onnx::NodeProto node = from.node(first + k);
    for (std::string& input : *node.mutable_input()) {
      const bool copied = std::find(known.begin(), known.end(), input) != known.end();
      if (input.empty() || (!copied && names.empty())) continue;
      input = copied ? prefix + input : random.pick(names);
    }
    for (std::string& output : *node.mutable_output()) {
      if (output.empty()) continue;
      known.push_back(output);
      output = last = prefix + output;
    }
    *graph.add_node() = std::move(node);
    move_last_node(graph, at + k);
  }
  if (!names.empty() && !last.empty()) rename_uses(graph, at + count, random.pick(names), last);
}

}  // namespace sgtc::fuzz
