#include "import/lowering.h"

#include <tuple>

#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

using Key = std::tuple<std::string, std::string, int64_t>;

std::map<Key, const Rule*> build_table() {
  std::map<Key, const Rule*> table;
  for (const Rule* rule : all_rules()) {
    for (int64_t version : rule->versions) {
      const Key key(rule->domain, rule->op, version);
      SGTC_CHECK(table.emplace(key, rule).second, "two rules for " + std::string(rule->op));
    }
  }
  return table;
}

void refuse_sequence(const Binding& binding) {
  if (!binding.elements) return;
  throw Error("expected a tensor, found a sequence of " + std::to_string(binding.elements->size()));
}

std::string attribute_error(const std::string& name, const std::string& expected) {
  return "attribute \"" + name + "\": expected " + expected;
}

}  // namespace

std::vector<const Rule*> all_rules() {
  std::vector<const Rule*> rules;
  for (const auto& family :
       {elementwise_rules(), activation_rules(),    constant_rules(),
        movement_rules(),    indexing_rules(),      reduction_rules(),
        matmul_rules(),      einsum_rules(),        convolution_rules(),
        pooling_rules(),     normalization_rules(), batch_normalization_rules(),
        loss_rules(),        attention_rules(),     recurrent_rules(),
        random_rules(),      resize_rules(),        grid_sample_rules(),
        roi_align_rules(),   roi_pool_rules(),      choosing_rules(),
        signal_rules(),      quantization_rules(),  slow_rules(),
        microsoft_rules(),   gradient_rules(),      optimizer_rules()}) {
    for (const Rule& rule : family) rules.push_back(&rule);
  }
  return rules;
}

const Rule* find_rule(const std::string& domain, const std::string& op, int64_t since) {
  static const std::map<Key, const Rule*> table = build_table();
  const auto found = table.find(Key(domain, op, since));
  return found == table.end() ? nullptr : found->second;
}

ValueId ImportState::value(const Binding& binding) {
  refuse_sequence(binding);
  return binding.value != kNone ? binding.value : leaves.value(binding.leaf);
}

TensorType ImportState::type(const Binding& binding) const {
  refuse_sequence(binding);
  return binding.value != kNone ? graph.type(binding.value) : leaves.type(binding.leaf);
}

LiteralPtr ImportState::literal(const Binding& binding) {
  refuse_sequence(binding);
  if (binding.value == kNone) return leaves.literal(binding.leaf);
  const Value& value = graph.value(binding.value);
  return value.kind == ValueKind::kConstant ? value.literal : nullptr;
}

Lowering::Lowering(ImportState& state, const onnx::NodeProto& node, std::vector<Binding> inputs,
                   int64_t since, std::shared_ptr<const void> owner)
    : Emitter(state.graph, &state.reserved_names, state.most_tensors),
      state_(state),
      node_(node),
      inputs_(std::move(inputs)),
      since_(since),
      owner_(std::move(owner)) {}

LiteralPtr Lowering::literal_attribute(const onnx::TensorProto& tensor) const {
  return literal_of(tensor, state_.model.external_data(), owner_);
}

LiteralPtr Lowering::literal_attribute(const onnx::SparseTensorProto& tensor) const {
  const LiteralPtr dense = literal_of(tensor, state_.model.external_data(), owner_);
  if (dense) return dense;
  const TensorType type = type_of(tensor);
  return std::make_shared<Literal>(type.dtype, type.shape);
}

bool Lowering::has_input(int index) const {
  return index < input_count() && inputs_[static_cast<size_t>(index)].present();
}

ValueId Lowering::input(int index) {
  if (!has_input(index)) throw Error("input " + std::to_string(index) + " is missing");
  return state_.value(inputs_[static_cast<size_t>(index)]);
}

ValueIds Lowering::inputs() {
  ValueIds ids;
  for (int i = 0; i < input_count(); ++i) ids.push_back(input(i));
  return ids;
}

TensorType Lowering::input_type(int index) const {
  if (!has_input(index)) throw Error("input " + std::to_string(index) + " is missing");
  return state_.type(inputs_[static_cast<size_t>(index)]);
}

int64_t Lowering::input_rank(int index) const {
  return static_cast<int64_t>(input_shape(index).size());
}

LiteralPtr Lowering::literal_input(int index, const std::string& what) const {
  if (!has_input(index)) throw Error(what + " (input " + std::to_string(index) + ") is missing");
  const LiteralPtr known = state_.literal(inputs_[static_cast<size_t>(index)]);
  if (known) return known;
  throw Error(what + " (input " + std::to_string(index) +
              ") must be known when the model is compiled; make it a constant of the model, for "
              "example by simplifying the exported file");
}

std::vector<int64_t> Lowering::integers_input(int index, const std::string& what) const {
  const LiteralPtr known = literal_input(index, what);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < known->element_count(); ++i) values.push_back(known->as_int(i));
  return values;
}

int64_t Lowering::integer_input(int index, const std::string& what) const {
  const std::vector<int64_t> values = integers_input(index, what);
  if (values.size() != 1) {
    throw Error(what + ": expected one value, found " + std::to_string(values.size()));
  }
  return values.front();
}

double Lowering::real_input(int index, const std::string& what) const {
  const LiteralPtr known = literal_input(index, what);
  if (known->element_count() != 1) {
    throw Error(what + ": expected one value, found shape " + to_string(known->shape()));
  }
  return known->as_double(0);
}

bool Lowering::wants_output(int index) const {
  return index < node_.output_size() && !node_.output(index).empty();
}

const onnx::AttributeProto* Lowering::find(const std::string& name) const {
  for (const auto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t Lowering::integer(const std::string& name, int64_t otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  if (!attribute) return otherwise;
  if (!attribute->has_i()) throw Error(attribute_error(name, "an integer"));
  return attribute->i();
}

int64_t Lowering::required_integer(const std::string& name) const {
  if (!has_attribute(name)) throw Error("attribute \"" + name + "\" is missing");
  return integer(name, 0);
}

double Lowering::real(const std::string& name, double otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  if (!attribute) return otherwise;
  if (!attribute->has_f()) throw Error(attribute_error(name, "a real number"));
  return attribute->f();
}

std::string Lowering::text(const std::string& name, const std::string& otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  if (!attribute) return otherwise;
  if (!attribute->has_s()) throw Error(attribute_error(name, "a text"));
  if (static_cast<int64_t>(attribute->s().size()) > kMaxNameLength) {
    throw Error(attribute_error(name, "at most " + std::to_string(kMaxNameLength) +
                                          " characters, found " +
                                          std::to_string(attribute->s().size())));
  }
  return attribute->s();
}

std::vector<int64_t> Lowering::integers(const std::string& name,
                                        const std::vector<int64_t>& otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  if (!attribute) return otherwise;
  if (attribute->type() != onnx::AttributeProto::INTS) {
    throw Error(attribute_error(name, "a list of integers"));
  }
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> Lowering::reals(const std::string& name) const {
  const onnx::AttributeProto* attribute = find(name);
  if (!attribute) return {};
  if (attribute->type() != onnx::AttributeProto::FLOATS) {
    throw Error(attribute_error(name, "a list of real numbers"));
  }
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> Lowering::texts(const std::string& name,
                                         const std::vector<std::string>& otherwise) const {
  const onnx::AttributeProto* attribute = find(name);
  if (!attribute) return otherwise;
  if (attribute->type() != onnx::AttributeProto::STRINGS) {
    throw Error(attribute_error(name, "a list of texts"));
  }
  return {attribute->strings().begin(), attribute->strings().end()};
}

ValueIds Lowering::gradients(ValueId y, ValueId seed, const ValueIds& xs, const ValueIds& held) {
  SGTC_CHECK(state_.gradients, "an import of gradient nodes needs a gradient function");
  for (ValueId x : xs) {
    if (graph().value(x).kind != ValueKind::kConstant) continue;
    throw Error("\"" + graph().value(x).name +
                "\" is a constant, which has no gradient; make it an input or an initializer");
  }
  ValueIds results = state_.gradients(graph(), y, seed, xs, held);
  for (size_t i = 0; i < xs.size(); ++i) {
    if (results[i] == kNone) results[i] = broadcast(scalar(dtype(xs[i]), 0), shape(xs[i]));
  }
  return results;
}

std::optional<std::vector<int64_t>> Lowering::axes(int index) const {
  if (has_input(index)) return integers_input(index, "axes");
  if (has_attribute("axes")) return integers("axes");
  return std::nullopt;
}

}  // namespace sgtc
