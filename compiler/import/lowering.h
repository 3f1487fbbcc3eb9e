// One ONNX node as its lowering rule sees it, and the table of rules.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/emitter.h"
#include "import/leaves.h"
#include "import/model.h"
#include "onnx/onnx_pb.h"

namespace sgtc {

/// What a name of the ONNX file stands for: a value of the Graph, an initializer that no node has
/// used yet, a sequence of tensors, or nothing (an omitted optional input).
struct Binding {
  ValueId value = kNone;
  int leaf = -1;
  std::shared_ptr<const std::vector<Binding>> elements;  // of a sequence
  bool failed = false;  // its node could not be lowered, which is reported already
  bool unmade = false;  // an output that the rule of its node does not compute
  bool present() const { return value != kNone || leaf >= 0 || elements; }
};

/// Appends the gradients of the sum of y's elements, weighted by `seed` (kNone: ones), with respect
/// to `xs`: one value per x, kNone where it is zero. `xs` and `held` count as independent.
using GradientFunction = std::function<ValueIds(Graph& graph, ValueId y, ValueId seed,
                                                const ValueIds& xs, const ValueIds& held)>;

/// What rules notice in a training import that a training export should not have: names of nodes.
struct ExportFaults {
  std::vector<std::string> fixed_statistics;  // BatchNormalization in inference mode
  std::vector<std::string> idle_dropouts;     // Dropout in inference mode
  std::vector<std::string> probabilities;     // losses that take the result of a Softmax
};

/// What all nodes of one import share.
struct ImportState {
  ImportState(const OnnxModel& the_model, Diagnostics& the_diagnostics)
      : model(the_model), diagnostics(the_diagnostics), leaves(graph) {}
  ImportState(const ImportState&) = delete;
  ImportState& operator=(const ImportState&) = delete;

  /// Of a binding that is present: its value in the Graph, an initializer becomes a leaf there; its
  /// type; its elements if they are known when the model is compiled, else null. Throw Error for a
  /// sequence.
  ValueId value(const Binding& binding);
  TensorType type(const Binding& binding) const;
  LiteralPtr literal(const Binding& binding);

  const OnnxModel& model;
  Diagnostics& diagnostics;
  Graph graph;
  Leaves leaves;
  bool training = true;
  bool accepts_slow = false;  // rules that are slow may be used
  /// Tensors that the graph may have, and nodes that may be lowered: bodies of functions can cost
  /// time without adding tensors.
  int64_t most_tensors = kMaxTensors;
  int64_t lowered_nodes = 0;
  int64_t micro_batches = 1;  // of all replicas
  GradientFunction gradients;
  /// The value that each BatchNorm statistic takes at the end of the step.
  std::map<ValueId, ValueId> statistic_updates;
  /// Statistics, which are never trained.
  std::set<ValueId> statistics;
  /// Rows that get no gradient from Gather, by the name of the tensor, and which of these names a
  /// Gather was found for.
  std::map<std::string, int64_t> padding_index;
  std::set<std::string> padded;
  ExportFaults faults;
  /// Names that the file or the Graph gives to leaves: no other value may take them.
  std::set<std::string> reserved_names;
};

/// A node with its inputs and attributes; emits Graph nodes into the same graph.
/// All accessors throw Error (without the node's name, which the caller adds) when the node does
/// not fit the operator's definition.
class Lowering : public Emitter {
 public:
  /// `owner` keeps `node` alive, and with it the bytes of tensors in its attributes.
  Lowering(ImportState& state, const onnx::NodeProto& node, std::vector<Binding> inputs,
           int64_t since, std::shared_ptr<const void> owner);

  ImportState& state() { return state_; }
  /// The node's name, with the functions and loops that it is in.
  std::string full_name() const { return state_.graph.context().sources.front(); }
  const onnx::NodeProto& node() const { return node_; }
  /// The version since which the operator is defined this way.
  int64_t since() const { return since_; }
  /// The elements of a tensor in an attribute.
  LiteralPtr literal_attribute(const onnx::TensorProto& tensor) const;
  LiteralPtr literal_attribute(const onnx::SparseTensorProto& tensor) const;

  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has_input(int index) const;
  ValueId input(int index);
  ValueIds inputs();
  TensorType input_type(int index) const;
  Shape input_shape(int index) const { return input_type(index).shape; }
  int64_t input_rank(int index) const;
  /// The elements of an input that must be known at compile time; `what` names it in the error.
  LiteralPtr literal_input(int index, const std::string& what) const;
  std::vector<int64_t> integers_input(int index, const std::string& what) const;
  int64_t integer_input(int index, const std::string& what) const;
  double real_input(int index, const std::string& what) const;
  /// Whether output `index` has a name.
  bool wants_output(int index) const;

  bool has_attribute(const std::string& name) const { return find(name) != nullptr; }
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double real(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> integers(const std::string& name,
                                const std::vector<int64_t>& otherwise = {}) const;
  std::vector<double> reals(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name,
                                 const std::vector<std::string>& otherwise) const;
  int64_t required_integer(const std::string& name) const;
  const onnx::AttributeProto* find(const std::string& name) const;

  /// The gradients of `y`, weighted by `seed` and summed, with respect to `xs`; zeros where y does
  /// not depend on them. The nodes get the source of this node.
  ValueIds gradients(ValueId y, ValueId seed, const ValueIds& xs, const ValueIds& held = {});

  /// The axes given by input `index` (newer opsets) or by attribute "axes", or nothing.
  std::optional<std::vector<int64_t>> axes(int index) const;

 private:
  ImportState& state_;
  const onnx::NodeProto& node_;
  std::vector<Binding> inputs_;
  int64_t since_;
  std::shared_ptr<const void> owner_;
};

/// Emits the node and returns its outputs in order; an output that nobody can use is kNone or
/// left out at the end.
using LowerFunction = ValueIds (*)(Lowering&);

struct Rule {
  std::string_view domain;
  std::string_view op;
  /// The since-versions whose meaning the function implements.
  std::vector<int64_t> versions;
  LowerFunction lower;
  /// Right but far from what a kernel would take: used only where the user accepts it.
  bool slow = false;
};

/// The rules of each family, beside their functions.
std::span<const Rule> elementwise_rules();
std::span<const Rule> activation_rules();
std::span<const Rule> constant_rules();
std::span<const Rule> movement_rules();
std::span<const Rule> indexing_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> matmul_rules();
std::span<const Rule> einsum_rules();
std::span<const Rule> convolution_rules();
std::span<const Rule> pooling_rules();
std::span<const Rule> normalization_rules();
std::span<const Rule> batch_normalization_rules();
std::span<const Rule> loss_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> recurrent_rules();
std::span<const Rule> random_rules();
std::span<const Rule> resize_rules();
std::span<const Rule> grid_sample_rules();
std::span<const Rule> roi_align_rules();
std::span<const Rule> roi_pool_rules();
std::span<const Rule> choosing_rules();
std::span<const Rule> signal_rules();
std::span<const Rule> quantization_rules();
std::span<const Rule> slow_rules();
std::span<const Rule> microsoft_rules();
std::span<const Rule> gradient_rules();
std::span<const Rule> optimizer_rules();

/// The rules of all families.
std::vector<const Rule*> all_rules();

/// The rule for an operator as defined since `since`, or null.
const Rule* find_rule(const std::string& domain, const std::string& op, int64_t since);

}  // namespace sgtc
