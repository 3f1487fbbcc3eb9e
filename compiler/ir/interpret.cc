#include "ir/interpret.h"

#include "../kernels/include/philox.h"
#include "ir/interpret_ops.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

void dispatch(const interpret::Call& call) {
  switch (info(call.op).kind) {
    case OpKind::kElementwise:
      return interpret::elementwise(call);
    case OpKind::kMovement:
      return interpret::movement(call);
    case OpKind::kIndexing:
      return interpret::indexing(call);
    case OpKind::kReduction:
      return interpret::reduction(call);
    case OpKind::kContraction:
      return interpret::contraction(call);
    case OpKind::kComposition:
      return interpret::composition(call);
    case OpKind::kRandom:
      return interpret::random(call);
    case OpKind::kMicroBatch:
      throw Error(std::string(name_of(call.op)) + " has no value outside of a step");
    case OpKind::kCollective:
      throw Error(std::string(name_of(call.op)) + " has no value in one replica");
  }
}

std::string describe(const Graph& graph, const Node& node) {
  std::string text = std::string(name_of(node.op)) + " %" + graph.value(node.results[0]).name;
  for (const std::string& source : node.sources) text += " (node " + source + ')';
  return text;
}

// A key from a state's name (FNV-1a) for initial values without a seed of their own.
uint64_t key_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::vector<Tensor> evaluate(Op op, const std::vector<const Tensor*>& operands,
                             const Attributes& attributes, const EvaluationContext& context) {
  OperandTypes types;
  for (const Tensor* operand : operands) types.push_back(&operand->type);
  std::vector<Tensor> results;
  for (TensorType& type : infer_types(op, types, attributes)) results.emplace_back(std::move(type));
  dispatch({op, operands, attributes, context, results});
  return results;
}

std::vector<LiteralPtr> evaluate(Op op, const std::vector<LiteralPtr>& operands,
                                 const Attributes& attributes) {
  std::vector<Tensor> tensors;
  for (const LiteralPtr& operand : operands) tensors.emplace_back(*operand);
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  std::vector<LiteralPtr> literals;
  for (const Tensor& result : evaluate(op, pointers, attributes)) {
    literals.push_back(to_literal(result));
  }
  return literals;
}

Interpreter::Interpreter(const Graph& graph, Precision precision)
    : graph_(graph), precision_(precision), values_(graph.values.size()) {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.kind == ValueKind::kConstant) {
      values_[i] = Tensor(*value.literal);
    } else if (value.kind == ValueKind::kState) {
      values_[i] = initial_value(value);
    } else if (value.kind != ValueKind::kResult) {
      values_[i] = Tensor(value.type);
    }
  }
  const ValueId step = graph.find("step");
  if (step != kNone && graph.value(step).kind == ValueKind::kControl) set("step", {1.0});
}

void Interpreter::set(const std::string& name, const Tensor& tensor) {
  const ValueId id = find(name);
  const Value& value = graph_.value(id);
  if (value.kind == ValueKind::kResult || value.kind == ValueKind::kConstant) {
    throw Error('%' + name + " is neither a feed nor a state nor a control value");
  }
  if (tensor.type != value.type) {
    throw Error('%' + name + ": expected " + std::string(name_of(value.type.dtype)) +
                to_string(value.type.shape) + ", found " + std::string(name_of(tensor.type.dtype)) +
                to_string(tensor.type.shape));
  }
  if (value.kind == ValueKind::kFeed) {
    feeds_[id].assign(static_cast<size_t>(graph_.micro_batches), tensor);
  }
  values_[static_cast<size_t>(id)] = tensor;
}

void Interpreter::set(const std::string& name, const std::vector<double>& values) {
  set(name, converted(find(name), values));
}

void Interpreter::set_feed(const std::string& name, int64_t micro_batch,
                           const std::vector<double>& values) {
  const ValueId id = find(name);
  if (graph_.value(id).kind != ValueKind::kFeed || micro_batch < 0 ||
      micro_batch >= graph_.micro_batches) {
    throw Error('%' + name + " is not a feed with micro-batch " + std::to_string(micro_batch));
  }
  std::vector<Tensor>& batches = feeds_[id];
  batches.resize(static_cast<size_t>(graph_.micro_batches), Tensor(graph_.type(id)));
  batches[static_cast<size_t>(micro_batch)] = converted(id, values);
}

void Interpreter::run() {
  outputs_.clear();
  for (const ValueId id : graph_.states) {
    if (graph_.value(id).role != StateRole::kAccumulator) continue;
    values_[static_cast<size_t>(id)] = Tensor(graph_.type(id));
  }
  run_phases(Phase::kSetup, Phase::kSetup, 0);
  for (int64_t m = 0; m < graph_.micro_batches; ++m) {
    load_feeds(m);
    run_phases(Phase::kPrologue, Phase::kPrologue, m);
  }
  for (int64_t m = 0; m < graph_.micro_batches; ++m) {
    load_feeds(m);
    run_phases(Phase::kForward, Phase::kBackward, m);
    collect_outputs(m);
  }
  run_phases(Phase::kUpdate, Phase::kUpdate, 0);
  for (const Output& output : graph_.outputs) {
    const Node* producer = graph_.producer(output.value);
    if (producer == nullptr || producer->phase != Phase::kUpdate) continue;
    outputs_[output.name] = {value(output.value)};
  }
  std::vector<Tensor> updated;
  for (const Update& update : graph_.updates) updated.push_back(value(update.value));
  for (size_t i = 0; i < updated.size(); ++i) {
    values_[static_cast<size_t>(graph_.updates[i].state)] = std::move(updated[i]);
  }
}

const Tensor& Interpreter::value(const std::string& name) const { return value(find(name)); }

const Tensor& Interpreter::output(const std::string& name) const {
  const auto entry = outputs_.find(name);
  if (entry == outputs_.end()) throw Error("no output called " + name + " was computed");
  return entry->second.back();
}

std::vector<Tensor> Interpreter::outputs_by_micro_batch(const std::string& name) const {
  const auto entry = outputs_.find(name);
  if (entry == outputs_.end()) throw Error("no output called " + name + " was computed");
  return entry->second;
}

ValueId Interpreter::find(const std::string& name) const {
  const ValueId id = graph_.find(name);
  if (id == kNone) throw Error("there is no value called %" + name);
  return id;
}

Tensor Interpreter::initial_value(const Value& value) const {
  const Initializer& initial = value.initial;
  if (initial.kind == Initializer::Kind::kLiteral) return Tensor(*initial.literal);
  Tensor tensor(value.type);
  if (initial.kind == Initializer::Kind::kZero) return tensor;
  std::vector<double> values(static_cast<size_t>(tensor.count()), initial.a);
  if (initial.kind != Initializer::Kind::kFill) {
    const uint64_t key =
        initial.seed != 0 ? random::stream_key(initial.seed, 0) : random::mix(key_of(value.name));
    const bool normal = initial.kind == Initializer::Kind::kRandomNormal;
    for (size_t i = 0; i < values.size(); ++i) {
      const double unit = interpret::random_element(normal, key, static_cast<int64_t>(i), 0, 0);
      values[i] += normal ? initial.b * unit : (initial.b - initial.a) * unit;
    }
  }
  return Tensor(value.type, values);
}

Tensor Interpreter::converted(ValueId id, const std::vector<double>& values) const {
  const TensorType& type = graph_.type(id);
  if (static_cast<int64_t>(values.size()) != element_count(type.shape)) {
    throw Error('%' + graph_.value(id).name + ": expected " +
                std::to_string(element_count(type.shape)) + " values, found " +
                std::to_string(values.size()));
  }
  Tensor tensor(type, values);
  if (precision_ == Precision::kFloat64 && tensor.is_real()) tensor.reals = values;
  return tensor;
}

void Interpreter::load_feeds(int64_t micro_batch) {
  for (const auto& [id, batches] : feeds_) {
    values_[static_cast<size_t>(id)] = batches[static_cast<size_t>(micro_batch)];
  }
}

void Interpreter::run_phases(Phase first, Phase last, int64_t micro_batch) {
  for (const Node& node : graph_.nodes) {
    if (node.phase < first || node.phase > last) continue;
    try {
      run_node(node, micro_batch);
    } catch (const Error& error) {
      throw Error(describe(graph_, node) + ": " + error.what());
    }
  }
}

void Interpreter::run_node(const Node& node, int64_t micro_batch) {
  Tensor& first = values_[static_cast<size_t>(node.results[0])];
  if (accumulates(node.op)) {
    Tensor& state = values_[static_cast<size_t>(node.operands[0])];
    std::vector<const Tensor*> operands = {&state};
    for (size_t i = 1; i < node.operands.size(); ++i) operands.push_back(&value(node.operands[i]));
    const Op op = node.op == Op::kAccumulate ? Op::kAdd : Op::kScatterAdd;
    state = evaluate(op, operands, node.attributes, {precision_, 0})[0];
    first = state;
    return;
  }
  if (node.op == Op::kStackMicroBatches) {
    if (micro_batch == 0) first = Tensor(graph_.type(node.results[0]));
    const Tensor& row = value(node.operands[0]);
    for (int64_t i = 0; i < row.count(); ++i) {
      first.copy_element(micro_batch * row.count() + i, row, i);
    }
    return;
  }
  std::vector<const Tensor*> operands;
  for (const ValueId operand : node.operands) operands.push_back(&value(operand));
  const int64_t global = replica_ * graph_.micro_batches + micro_batch;
  std::vector<Tensor> results = evaluate(node.op, operands, node.attributes, {precision_, global});
  for (size_t i = 0; i < results.size(); ++i) {
    values_[static_cast<size_t>(node.results[i])] = std::move(results[i]);
  }
}

void Interpreter::collect_outputs(int64_t micro_batch) {
  for (const Output& output : graph_.outputs) {
    const Node* producer = graph_.producer(output.value);
    if (producer != nullptr && producer->phase == Phase::kUpdate) continue;
    std::vector<Tensor>& list = outputs_[output.name];
    list.resize(static_cast<size_t>(micro_batch) + 1);
    list.back() = value(output.value);
  }
}

}  // namespace sgtc
