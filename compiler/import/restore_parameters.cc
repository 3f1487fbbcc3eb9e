// The exporter's optimizer sees an inference graph: it merges initializers of equal values (all
// zero biases of one size, all ones of normalizations), drops biases that are zero and replaces an
// expanded parameter by its copies. Trained as they stand, such tensors would be tied, missing or
// free to drift apart. The optimizer leaves the record of PyTorch's calls beside the nodes, which
// names the parameters; so the file is repaired before anything is made of it. Of tensors that were
// computed from parameters before they were merged, only the module of each call is known.
//
// Left out: a MatMul whose bias is gone with its Add (the optimizer does not do that), copies in
// which only some rows are equal, and nodes inside functions.
#include "import/restore_parameters.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "import/checks.h"
#include "import/export_record.h"
#include "import/node_order.h"
#include "import/tensor.h"

namespace sgtc {
namespace {

constexpr size_t kRoles = 4;  // weight, bias, running mean, running variance
constexpr int kBiasInput = 2;
constexpr std::string_view kAffine =
    " LayerNormalization RMSNormalization GroupNormalization Mul Add ";
constexpr std::string_view kLinear = " Gemm MatMul Transpose Add ";
constexpr std::string_view kConvolution = " Conv ConvTranspose Add ";

// Where a call of PyTorch has its tensors, and the ONNX operators that may hold them.
struct CallRule {
  std::string_view op;
  std::array<int, kRoles> arguments;  // -1: the call has none
  std::string_view nodes;             // each between spaces
};

constexpr CallRule kCalls[] = {
    {"linear", {1, 2, -1, -1}, kLinear},
    {"addmm", {2, 0, -1, -1}, kLinear},
    {"conv1d", {1, 2, -1, -1}, kConvolution},
    {"conv2d", {1, 2, -1, -1}, kConvolution},
    {"conv3d", {1, 2, -1, -1}, kConvolution},
    {"convolution", {1, 2, -1, -1}, kConvolution},
    {"conv_transpose1d", {1, 2, -1, -1}, kConvolution},
    {"conv_transpose2d", {1, 2, -1, -1}, kConvolution},
    {"conv_transpose3d", {1, 2, -1, -1}, kConvolution},
    {"layer_norm", {2, 3, -1, -1}, kAffine},
    {"native_layer_norm", {2, 3, -1, -1}, kAffine},
    {"rms_norm", {2, -1, -1, -1}, kAffine},
    {"group_norm", {2, 3, -1, -1}, kAffine},
    {"native_group_norm", {1, 2, -1, -1}, kAffine},
    {"instance_norm", {1, 2, -1, -1}, " InstanceNormalization Mul Add "},
    {"batch_norm", {1, 2, 3, 4}, " BatchNormalization "},
    {"_native_batch_norm_legit_functional", {1, 2, 3, 4}, " BatchNormalization "},
    {"embedding", {0, -1, -1, -1}, " Gather "},
    {"prelu", {1, -1, -1, -1}, " PRelu "},
};

// Calls of two operands, of which one may be a parameter, and the ONNX operators that may hold it.
// An RMSNormalization takes the place of the product with its scale.
const std::map<std::string, std::string> kBinaryCalls = {
    {"add", " Add "}, {"sub", " Sub "}, {"mul", " Mul RMSNormalization "}, {"div", " Div "}};

// Which of the tensors of its call an input of a node holds; -1 for data.
int role_of(const std::string& op, int input) {
  if (op == "Add") return 1;
  if (op == "Mul" || op == "MatMul" || op == "Transpose") return 0;
  if (op == "Gather") return input == 0 ? 0 : -1;
  return input - 1;
}

// Sizes are not checked yet.
bool is_number(const onnx::TensorProto& tensor) {
  return std::all_of(tensor.dims().begin(), tensor.dims().end(),
                     [](int64_t size) { return size == 1; });
}

int64_t integer_attribute(const onnx::NodeProto& node, const std::string& name, int64_t otherwise) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return otherwise;
}

// The shape of the bias that fits the weight of a node; nothing when the node takes none.
std::optional<std::vector<int64_t>> bias_shape(const onnx::NodeProto& node,
                                               const onnx::TensorProto& weight) {
  const std::string& op = node.op_type();
  const std::vector<int64_t> dims(weight.dims().begin(), weight.dims().end());
  if (op == "LayerNormalization") return dims;
  if (dims.size() < 2) return std::nullopt;
  if (op == "Gemm") return {{integer_attribute(node, "transB", 0) != 0 ? dims[0] : dims[1]}};
  if (op == "Conv") return {{dims[0]}};
  int64_t channels = 0;
  if (op == "ConvTranspose" &&
      !__builtin_mul_overflow(dims[1], integer_attribute(node, "group", 1), &channels)) {
    return {{channels}};
  }
  return std::nullopt;
}

onnx::TensorProto tensor_of(const std::string& name, int32_t data_type,
                            const std::vector<int64_t>& dims, std::string bytes) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(data_type);
  for (int64_t size : dims) tensor.add_dims(size);
  tensor.set_raw_data(std::move(bytes));
  return tensor;
}

// Whether all slices along `axis` have the same bytes.
bool is_repeated(const Literal& literal, size_t axis) {
  const Shape& shape = literal.shape();
  const auto extent = static_cast<size_t>(shape[axis]);
  if (extent < 2 || literal.element_count() == 0) return false;
  const size_t outer = static_cast<size_t>(
      element_count({shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)}));
  const size_t slice = literal.bytes().size() / outer / extent;
  const std::byte* bytes = literal.bytes().data();
  for (size_t i = 0; i < outer * extent; ++i) {
    const std::byte* first = bytes + i / extent * extent * slice;
    if (!std::equal(first, first + slice, bytes + i * slice)) return false;
  }
  return true;
}

// The bytes of the first slice along each of `axes`.
std::string first_slices(const Literal& literal, const std::set<size_t>& axes) {
  std::string bytes(reinterpret_cast<const char*>(literal.bytes().data()), literal.bytes().size());
  Shape shape = literal.shape();
  for (size_t axis : axes) {
    const size_t outer = static_cast<size_t>(
        element_count({shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)}));
    const size_t stride = bytes.size() / outer;
    const size_t slice = stride / static_cast<size_t>(shape[axis]);
    std::string kept;
    for (size_t o = 0; o < outer; ++o) kept += bytes.substr(o * stride, slice);
    bytes = std::move(kept);
    shape[axis] = 1;
  }
  return bytes;
}

class Restoration {
 public:
  Restoration(onnx::GraphProto& graph, const ExternalData& external)
      : graph_(graph), external_(external), record_(graph) {
    for (int i = 0; i < graph.initializer_size(); ++i)
      initializers_[graph.initializer(i).name()] = i;
    for (const auto& [name, at] : initializers_) {
      taken_.insert(name);
      held_.insert(name);
      for (const std::string& folded : record_.folded_parameters(name)) held_.insert(folded);
    }
    for (const auto& input : graph.input()) taken_.insert(input.name());
    for (const auto& node : graph.node()) taken_.insert(node.output().begin(), node.output().end());
  }

  // The number of tensors that were added.
  size_t run() {
    if (!record_.present()) return 0;
    separate_merged();
    add_zero_biases();
    cut_copies();
    return restored_.size();
  }

 private:
  struct Use {
    onnx::NodeProto* node;
    int input;
    std::string parameter;  // empty: the initializer itself belongs there
  };

  const onnx::TensorProto* find(const std::string& name) const {
    const auto found = initializers_.find(name);
    return found == initializers_.end() ? nullptr : &graph_.initializer(found->second);
  }

  // The only tensor of the module among the arguments.
  std::string sole_tensor(const RecordedCall& call) const {
    std::string sole;
    for (const std::string& argument : call.arguments) {
      const std::string tensor = record_.tensor_of(argument);
      if (tensor.empty()) continue;
      if (!sole.empty()) return "";
      sole = tensor;
    }
    return sole;
  }

  // The tensor of the module that the record wants at an input; empty when it does not tell.
  std::string wanted(const onnx::NodeProto& node, int input) const {
    const std::optional<RecordedCall> call = recorded_call(node);
    if (!call) return "";
    const std::string operation = ' ' + node.op_type() + ' ';
    const auto binary = kBinaryCalls.find(call->op);
    if (binary != kBinaryCalls.end()) {
      const bool holds = binary->second.find(operation) != std::string::npos;
      return holds ? sole_tensor(*call) : "";
    }
    const int role = role_of(node.op_type(), input);
    if (role < 0 || role >= static_cast<int>(kRoles)) return "";
    for (const CallRule& rule : kCalls) {
      const bool holds = rule.nodes.find(operation) != std::string_view::npos;
      if (rule.op != call->op || !holds) continue;
      const int position = rule.arguments[static_cast<size_t>(role)];
      const bool given = position >= 0 && position < static_cast<int>(call->arguments.size());
      return given ? record_.tensor_of(call->arguments[static_cast<size_t>(position)]) : "";
    }
    return "";
  }

  // Whether the initializer is the parameter or was computed from it.
  bool stands_for(const std::string& initializer, const std::string& parameter) const {
    const std::vector<std::string> folded = record_.folded_parameters(initializer);
    return initializer == parameter || initializer.starts_with(parameter + "_") ||
           std::count(folded.begin(), folded.end(), parameter) != 0;
  }

  // Of an initializer that was computed from a parameter of another module: the parameter of the
  // node's own module that has the same name there, if the file holds no tensor of it.
  std::string counterpart(const onnx::NodeProto& node, const std::string& holder) const {
    const std::vector<std::string> folded = record_.folded_parameters(holder);
    const size_t dot = folded.size() == 1 ? folded[0].rfind('.') : std::string::npos;
    if (dot == std::string::npos) return "";
    const std::string own = recorded_module(node) + folded[0].substr(dot);
    return record_.is_parameter(own) && held_.count(own) == 0 ? own : "";
  }

  // The parameter that should be in place of the initializer at an input; empty for none. A single
  // number that is no parameter is part of how the call was written: an epsilon.
  std::string replacement(const onnx::NodeProto& node, int input) const {
    const std::string& holder = node.input(input);
    const std::string parameter = wanted(node, input);
    if (parameter.empty()) return counterpart(node, holder);
    if (stands_for(holder, parameter)) return "";
    const bool number = is_number(*find(holder)) && record_.origin(holder) != Origin::kParameter &&
                        sole_tensor(*recorded_call(node)) != parameter;
    return number ? "" : parameter;
  }

  void separate_merged() {
    std::map<std::string, std::vector<Use>> uses;
    for (auto& node : *graph_.mutable_node()) {
      for (int i = 0; i < node.input_size(); ++i) {
        const onnx::TensorProto* tensor = find(node.input(i));
        const std::optional<DType> dtype =
            tensor ? dtype_from_onnx(tensor->data_type()) : std::nullopt;
        if (!dtype || !is_float(*dtype)) continue;
        uses[node.input(i)].push_back({&node, i, replacement(node, i)});
      }
    }
    for (const auto& [holder, list] : uses) {
      std::set<std::string> owners;
      for (const Use& use : list) owners.insert(use.parameter);
      if (owners.size() < 2) continue;
      for (const Use& use : list) {
        if (!use.parameter.empty()) separate(use, holder);
      }
    }
  }

  void separate(const Use& use, const std::string& holder) {
    const std::vector<std::string> folded = record_.folded_parameters(holder);
    const std::string name = folded.empty() ? use.parameter : use.parameter + '_' + holder;
    if (restored_.count(name) == 0) {
      if (taken_.count(name) != 0) return;
      onnx::TensorProto copy = *find(holder);
      copy.set_name(name);
      add(std::move(copy));
      if (!folded.empty()) record_folding(graph_, name, use.parameter);
    }
    use.node->set_input(use.input, name);
  }

  void add(onnx::TensorProto tensor) {
    taken_.insert(tensor.name());
    restored_.insert(tensor.name());
    initializers_[tensor.name()] = graph_.initializer_size();
    *graph_.add_initializer() = std::move(tensor);
  }

  void add_zero_biases() {
    const std::vector<std::string> lost = ExportRecord(graph_).lost_parameters(graph_);
    const std::set<std::string> missing(lost.begin(), lost.end());
    for (auto& node : *graph_.mutable_node()) {
      const bool has_bias = node.input_size() > kBiasInput && !node.input(kBiasInput).empty();
      const onnx::TensorProto* weight = node.input_size() > 1 ? find(node.input(1)) : nullptr;
      if (has_bias || !weight) continue;
      const std::string bias = wanted(node, kBiasInput);
      const std::optional<std::vector<int64_t>> shape = bias_shape(node, *weight);
      if (missing.count(bias) != 0 && shape) add_zero_bias(node, bias, *shape, weight->data_type());
    }
  }

  void add_zero_bias(onnx::NodeProto& node, const std::string& bias,
                     const std::vector<int64_t>& shape, int32_t data_type) {
    const std::optional<DType> dtype = dtype_from_onnx(data_type);
    const bool valid = std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n >= 0; });
    if (!dtype || !valid || (taken_.count(bias) != 0 && restored_.count(bias) == 0)) return;
    if (restored_.count(bias) == 0) {
      checked_list_size(shape, "the bias \"" + bias + "\"");
      const auto bytes = static_cast<size_t>(element_count(shape) * size_of(*dtype));
      add(tensor_of(bias, data_type, shape, std::string(bytes, '\0')));
    }
    while (node.input_size() <= kBiasInput) node.add_input("");
    node.set_input(kBiasInput, bias);
  }

  void cut_copies() {
    const int count = graph_.initializer_size();
    for (int i = 0; i < count; ++i) {
      const std::string name = graph_.initializer(i).name();
      const std::vector<std::string> parameters = record_.folded_parameters(name);
      if (parameters.size() != 1 || !repeats_rows(name)) continue;
      const std::set<size_t> axes = repeated_axes(graph_.initializer(i));
      if (!axes.empty()) cut(*graph_.mutable_initializer(i), axes, parameters[0]);
    }
  }

  // Values are named after the calls that computed them: "expand_1", "embedding".
  bool repeats_rows(const std::string& initializer) const {
    std::vector<std::string> values = record_.folded_values(initializer);
    values.push_back(initializer);
    return std::any_of(values.begin(), values.end(), [](const std::string& value) {
      return value.starts_with("expand") || value.starts_with("embedding");
    });
  }

  // Along which dimensions a tensor repeats itself. When all elements are equal, values do not tell
  // what was repeated; it is the first dimension of an expand then, and otherwise nothing is known.
  std::set<size_t> repeated_axes(const onnx::TensorProto& tensor) const {
    std::set<size_t> axes;
    try {
      const LiteralPtr literal = literal_of(tensor, external_, nullptr);
      size_t long_axes = 0;
      for (size_t axis = 0; axis < literal->shape().size(); ++axis) {
        if (literal->shape()[axis] > 1) ++long_axes;
        if (is_repeated(*literal, axis)) axes.insert(axis);
      }
      if (axes.size() < long_axes) return axes;
      const bool first = tensor.name().starts_with("expand") && axes.count(0) != 0;
      return first ? std::set<size_t>{0} : std::set<size_t>{};
    } catch (const Error&) {
      return {};  // reported when the initializers are declared
    }
  }

  void cut(onnx::TensorProto& tensor, const std::set<size_t>& axes, const std::string& parameter) {
    const std::string copies = tensor.name();
    const std::string name = parameter + '_' + copies;
    const std::string shape_name = copies + "_shape";
    if (taken_.count(name) != 0 || taken_.count(shape_name) != 0) return;
    const std::vector<int64_t> whole(tensor.dims().begin(), tensor.dims().end());
    std::vector<int64_t> dims = whole;
    for (size_t axis : axes) dims[axis] = 1;
    std::string bytes = first_slices(*literal_of(tensor, external_, nullptr), axes);
    tensor = tensor_of(name, tensor.data_type(), dims, std::move(bytes));
    taken_.insert({name, shape_name});
    record_folding(graph_, name, parameter);
    std::string shape_bytes(reinterpret_cast<const char*>(whole.data()),
                            whole.size() * sizeof(int64_t));
    *graph_.add_initializer() =
        tensor_of(shape_name, onnx::TensorProto::INT64, {static_cast<int64_t>(whole.size())},
                  std::move(shape_bytes));
    onnx::NodeProto* expand = graph_.add_node();
    expand->set_op_type("Expand");
    expand->set_name(copies);
    expand->add_input(name);
    expand->add_input(shape_name);
    expand->add_output(copies);
  }

  onnx::GraphProto& graph_;
  const ExternalData& external_;
  const ExportRecord record_;
  std::map<std::string, int> initializers_;  // positions by name
  std::set<std::string> held_;  // initializers, and parameters that they were computed from
  std::set<std::string> taken_;
  std::set<std::string> restored_;
};

}  // namespace

void restore_parameters(onnx::GraphProto& graph, const ExternalData& external,
                        const std::string& model, Diagnostics& diagnostics) {
  const size_t count = Restoration(graph, external).run();
  if (count == 0) return;
  diagnostics.warning(model, std::to_string(count) +
                                 " tensors that the exporter had merged with equal ones or dropped "
                                 "as zero were restored as parameters of their own");
}

}  // namespace sgtc
