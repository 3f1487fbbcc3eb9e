// The Graph has no regions: one list of nodes serves gradients, fusion, scheduling and memory
// alike. So a Loop or Scan is unrolled. Each iteration is lowered with the number of the iteration
// and the condition as constants; what an exporter computes from them folds away, and shapes may
// change from one iteration to the next. The price is a Graph whose size grows with the number of
// iterations, which the limit on nodes bounds.
#include "import/control_flow.h"

#include <algorithm>

#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr int64_t kMaxIterations = int64_t{1} << 16;
constexpr int64_t kScanWithoutBatch = 9;

bool truth_of(const LiteralPtr& literal, const std::string& what) {
  if (literal->element_count() != 1) {
    throw Error(what + ": expected a single value, found shape " + to_string(literal->shape()));
  }
  return literal->as_int(0) != 0;
}

class ControlFlow {
 public:
  ControlFlow(ImportState& state, const onnx::NodeProto& node, const std::vector<Binding>& inputs,
              const Scope& scope, const Surroundings& surroundings)
      : state_(state),
        node_(node),
        inputs_(inputs),
        scope_(scope),
        surroundings_(surroundings),
        lowering_(state, node, inputs, 1, surroundings.owner) {}

  std::vector<Binding> lower() {
    enter_context();
    if (node_.op_type() == "If") return lower_branch();
    return node_.op_type() == "Loop" ? lower_loop() : lower_scan();
  }

 private:
  // One output that stacks what every iteration gives.
  struct Stack {
    ValueIds elements;
    int64_t axis = 0;
    bool reversed = false;
  };

  void enter_context() {
    state_.graph.context() = {surroundings_.phase, 0, {surroundings_.prefix + name_of(node_)}};
    if (node_.output_size() > 0) {
      lowering_.set_result_name(surroundings_.prefix + node_.output(0));
    }
  }

  const onnx::GraphProto& graph_attribute(const std::string& name) const {
    const onnx::AttributeProto* attribute = lowering_.find(name);
    if (!attribute || !attribute->has_g()) throw Error("attribute \"" + name + "\" is missing");
    return attribute->g();
  }

  // What a body sees before its inputs are bound: the surroundings and its own initializers.
  Scope scope_of(const onnx::GraphProto& body) {
    Scope inner;
    inner.parent = &scope_;
    for (const auto& tensor : body.initializer()) {
      bind(inner, tensor.name(), lowering_.constant(lowering_.literal_attribute(tensor)));
    }
    for (const auto& sparse : body.sparse_initializer()) {
      bind(inner, sparse.values().name(), lowering_.constant(lowering_.literal_attribute(sparse)));
    }
    return inner;
  }

  static void bind(Scope& scope, const std::string& name, ValueId value) {
    Binding binding;
    binding.value = value;
    scope.names[name] = binding;
  }

  std::vector<Binding> run_body(const onnx::GraphProto& body, Scope& inner,
                                const std::string& prefix) {
    std::vector<std::string> outputs;
    for (const auto& output : body.output()) outputs.push_back(output.name());
    Surroundings surroundings = surroundings_;
    surroundings.prefix = prefix;
    ++surroundings.depth;
    std::vector<Binding> results = lower_body(state_, body.node(), outputs, inner, surroundings);
    enter_context();
    return results;
  }

  std::vector<Binding> run_iteration(const onnx::GraphProto& body, Scope& inner,
                                     int64_t iteration) {
    if (iteration >= kMaxIterations) {
      throw Error("it has more than " + std::to_string(kMaxIterations) +
                  " iterations, and each becomes nodes of its own; give it a smaller trip count");
    }
    return run_body(body, inner,
                    surroundings_.prefix + name_of(node_) + "/" + std::to_string(iteration) + "/");
  }

  static bool any_failed(const std::vector<Binding>& bindings) {
    return std::any_of(bindings.begin(), bindings.end(),
                       [](const Binding& binding) { return binding.failed; });
  }

  std::vector<Binding> all_failed() const {
    Binding failed;
    failed.failed = true;
    return std::vector<Binding>(static_cast<size_t>(node_.output_size()), failed);
  }

  static void check_formals(const onnx::GraphProto& body, size_t inputs, size_t outputs) {
    if (static_cast<size_t>(body.input_size()) == inputs &&
        static_cast<size_t>(body.output_size()) >= outputs) {
      return;
    }
    throw Error("its body has " + std::to_string(body.input_size()) + " inputs and " +
                std::to_string(body.output_size()) + " outputs, expected " +
                std::to_string(inputs) + " and at least " + std::to_string(outputs));
  }

  std::vector<Binding> lower_branch() {
    const bool taken = truth_of(lowering_.literal_input(0, "the condition of an If"), "condition");
    const onnx::GraphProto& branch = graph_attribute(taken ? "then_branch" : "else_branch");
    Scope inner = scope_of(branch);
    return run_body(branch, inner, surroundings_.prefix);
  }

  // Inputs: trip count, condition, carried values. The body maps (iteration, condition, carried) to
  // (condition, carried, elements of the stacked outputs).
  std::vector<Binding> lower_loop() {
    const onnx::GraphProto& body = graph_attribute("body");
    std::vector<Binding> carried(inputs_.begin() + std::min<ptrdiff_t>(2, std::ssize(inputs_)),
                                 inputs_.end());
    const auto outputs = static_cast<size_t>(node_.output_size());
    check_formals(body, carried.size() + 2, std::max(outputs, carried.size()) + 1);
    std::vector<Stack> stacks(static_cast<size_t>(body.output_size()) - 1 - carried.size());
    const int64_t trips = lowering_.has_input(0)
                              ? lowering_.integer_input(0, "the trip count of a Loop")
                              : kMaxIterations + 1;
    bool more = !lowering_.has_input(1) ||
                truth_of(lowering_.literal_input(1, "the condition of a Loop"), "condition");
    const Scope common = scope_of(body);
    for (int64_t i = 0; more && i < trips; ++i) {
      Scope inner = common;
      bind(inner, body.input(0).name(),
           lowering_.constant(make_literal(DType::kInt64, {}, std::vector<int64_t>{i})));
      bind(inner, body.input(1).name(), lowering_.scalar(DType::kBool, 1));
      for (size_t k = 0; k < carried.size(); ++k) {
        inner.names[body.input(static_cast<int>(k) + 2).name()] = carried[k];
      }
      const std::vector<Binding> results = run_iteration(body, inner, i);
      if (any_failed(results)) return all_failed();
      more = continues(results.front(), i);
      std::copy_n(results.begin() + 1, carried.size(), carried.begin());
      push_elements(stacks, results, carried.size() + 1);
    }
    append_stacks(carried, stacks, body);
    return carried;
  }

  bool continues(const Binding& condition, int64_t iteration) {
    const LiteralPtr known = condition.present() ? state_.literal(condition) : nullptr;
    if (known) return truth_of(known, "the condition that the body computes");
    throw Error("its body computes the condition of iteration " + std::to_string(iteration + 1) +
                " from data, and loops are unrolled when the model is compiled; export the model "
                "with a fixed number of iterations");
  }

  void push_elements(std::vector<Stack>& stacks, const std::vector<Binding>& results,
                     size_t first) {
    for (size_t k = 0; k < stacks.size(); ++k) {
      const Binding& element = results[first + k];
      if (!element.present()) throw Error("a stacked output of its body is not supported");
      stacks[k].elements.push_back(state_.value(element));
    }
  }

  // The stacked outputs behind the carried ones; an empty one has the shape that the body declares.
  void append_stacks(std::vector<Binding>& outputs, const std::vector<Stack>& stacks,
                     const onnx::GraphProto& body) {
    for (size_t k = 0; k < stacks.size(); ++k) {
      const int formal = body.output_size() - static_cast<int>(stacks.size() - k);
      Binding binding;
      binding.value = stacks[k].elements.empty() ? empty_stack(body.output(formal), stacks[k].axis)
                                                 : stacked(stacks[k]);
      outputs.push_back(binding);
    }
  }

  ValueId stacked(const Stack& stack) {
    ValueIds parts;
    int64_t axis = 0;
    for (ValueId element : stack.elements) {
      axis = normalized_axis(stack.axis, lowering_.rank(element) + 1);
      parts.push_back(lowering_.unsqueeze(element, {axis}));
    }
    if (stack.reversed) std::reverse(parts.begin(), parts.end());
    return lowering_.concat(parts, axis);
  }

  ValueId empty_stack(const onnx::ValueInfoProto& declared, int64_t axis) {
    const auto& tensor = declared.type().tensor_type();
    const std::optional<DType> dtype = dtype_from_onnx(tensor.elem_type());
    Shape shape;
    bool known = dtype.has_value() && tensor.has_shape();
    for (const auto& dim : tensor.shape().dim()) {
      known = known && dim.has_dim_value() && dim.dim_value() >= 0;
      shape.push_back(dim.dim_value());
    }
    if (!known) {
      throw Error("it has no iteration, and its body does not declare the shape of \"" +
                  declared.name() + "\"; run onnx.shape_inference on the file");
    }
    shape.insert(shape.begin() + normalized_axis(axis, std::ssize(shape) + 1), 0);
    return lowering_.broadcast(lowering_.scalar(*dtype, 0), shape);
  }

  // Inputs: states, sequences. The body maps (states, elements) to (states, elements).
  std::vector<Binding> lower_scan() {
    const onnx::GraphProto& body = graph_attribute("body");
    const int64_t sequences = lowering_.required_integer("num_scan_inputs");
    if (sequences < 1 || sequences > std::ssize(inputs_)) {
      throw Error("attribute \"num_scan_inputs\": expected 1 to " + std::to_string(inputs_.size()) +
                  ", found " + std::to_string(sequences));
    }
    const size_t first = inputs_.size() - static_cast<size_t>(sequences);
    std::vector<Binding> carried(inputs_.begin(),
                                 inputs_.begin() + std::ssize(inputs_) - sequences);
    const auto outputs = static_cast<size_t>(node_.output_size());
    check_formals(body, inputs_.size(), std::max(outputs, first));
    std::vector<Stack> stacks = scan_outputs(static_cast<size_t>(body.output_size()) - first);
    const std::vector<int64_t> axes = scan_axes(first);
    const std::vector<int64_t> backward =
        flags("scan_input_directions", static_cast<size_t>(sequences));
    const int64_t trips = scan_length(first, axes);
    const Scope common = scope_of(body);
    for (int64_t i = 0; i < trips; ++i) {
      Scope inner = common;
      for (size_t k = 0; k < first; ++k) {
        inner.names[body.input(static_cast<int>(k)).name()] = carried[k];
      }
      for (size_t k = 0; k < axes.size(); ++k) {
        const ValueId sequence = lowering_.input(static_cast<int>(first + k));
        const int64_t at = backward[k] != 0 ? trips - 1 - i : i;
        const ValueId element = lowering_.slice(sequence, axes[k], at, 1);
        bind(inner, body.input(static_cast<int>(first + k)).name(),
             lowering_.squeeze(element, {axes[k]}));
      }
      const std::vector<Binding> results = run_iteration(body, inner, i);
      if (any_failed(results)) return all_failed();
      std::copy_n(results.begin(), first, carried.begin());
      push_elements(stacks, results, first);
    }
    append_stacks(carried, stacks, body);
    return carried;
  }

  std::vector<int64_t> flags(const std::string& attribute, size_t count) const {
    const std::vector<int64_t> values =
        lowering_.integers(attribute, std::vector<int64_t>(count, 0));
    if (values.size() == count) return values;
    throw Error("attribute \"" + attribute + "\": expected " + std::to_string(count) +
                " values, found " + std::to_string(values.size()));
  }

  std::vector<Stack> scan_outputs(size_t count) const {
    const std::vector<int64_t> axes = flags("scan_output_axes", count);
    const std::vector<int64_t> backward = flags("scan_output_directions", count);
    std::vector<Stack> stacks(count);
    for (size_t k = 0; k < count; ++k) {
      stacks[k].axis = axes[k];
      stacks[k].reversed = backward[k] != 0;
    }
    return stacks;
  }

  std::vector<int64_t> scan_axes(size_t first) const {
    std::vector<int64_t> axes = flags("scan_input_axes", inputs_.size() - first);
    for (size_t k = 0; k < axes.size(); ++k) {
      axes[k] = normalized_axis(axes[k], lowering_.input_rank(static_cast<int>(first + k)));
    }
    return axes;
  }

  int64_t scan_length(size_t first, const std::vector<int64_t>& axes) const {
    int64_t length = -1;
    for (size_t k = 0; k < axes.size(); ++k) {
      const int64_t size =
          lowering_.input_shape(static_cast<int>(first + k))[static_cast<size_t>(axes[k])];
      if (length >= 0 && size != length) {
        throw Error("its sequences have lengths " + std::to_string(length) + " and " +
                    std::to_string(size) + ", expected equal ones");
      }
      length = size;
    }
    return length;
  }

  ImportState& state_;
  const onnx::NodeProto& node_;
  const std::vector<Binding>& inputs_;
  const Scope& scope_;
  const Surroundings& surroundings_;
  Lowering lowering_;
};

}  // namespace

bool is_control_flow(const onnx::NodeProto& node, int64_t since) {
  if (!canonical_domain(node.domain()).empty()) return false;
  const std::string& op = node.op_type();
  return op == "If" || op == "Loop" || (op == "Scan" && since >= kScanWithoutBatch);
}

std::vector<Binding> lower_control_flow(ImportState& state, const onnx::NodeProto& node,
                                        const std::vector<Binding>& inputs, const Scope& scope,
                                        const Surroundings& surroundings) {
  return ControlFlow(state, node, inputs, scope, surroundings).lower();
}

}  // namespace sgtc
