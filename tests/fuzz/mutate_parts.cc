#include "fuzz/mutate_parts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "import/tensor.h"
#include "onnx/defs/schema.h"

namespace sgtc::fuzz {
namespace {

// More elements than this would make the search slow.
constexpr int64_t kMostElements = 512;

// Operators of the standard domain by their least number of inputs.
const std::map<int, std::vector<std::string>>& operators_by_inputs() {
  static const std::map<int, std::vector<std::string>> kOperators = [] {
    std::map<int, std::vector<std::string>> operators;
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
      if (schema.domain().empty()) operators[schema.min_input()].push_back(schema.Name());
    }
    return operators;
  }();
  return kOperators;
}

const std::vector<std::string>& all_operators() {
  static const std::vector<std::string> kAll = [] {
    std::vector<std::string> all;
    for (const auto& [inputs, names] : operators_by_inputs()) {
      all.insert(all.end(), names.begin(), names.end());
    }
    return all;
  }();
  return kAll;
}

void set_values(Random& random, onnx::AttributeProto& attribute) {
  using onnx::AttributeProto;
  switch (attribute.type()) {
    case AttributeProto::INT:
      attribute.set_i(random.number());
      break;
    case AttributeProto::FLOAT:
      attribute.set_f(static_cast<float>(random.number()) / 4);
      break;
    case AttributeProto::INTS:
      for (int64_t left = random.integer(0, 4); left > 0; --left) {
        attribute.add_ints(random.number());
      }
      break;
    case AttributeProto::FLOATS:
      for (int64_t left = random.integer(0, 4); left > 0; --left) {
        attribute.add_floats(static_cast<float>(random.number()));
      }
      break;
    case AttributeProto::STRING:
      attribute.set_s(random.pick(std::vector<std::string>{
          "mean",    "sum",        "none",       "SAME_UPPER",    "SAME_LOWER",
          "VALID",   "forward",    "reverse",    "bidirectional", "linear",
          "nearest", "cubic",      "constant",   "reflect",       "edge",
          "wrap",    "add",        "mul",        "min",           "max",
          "tanh",    "half_pixel", "asymmetric", "align_corners", "bij,bjk->bik"}));
      break;
    default:
      break;
  }
}

// A row-major resize that keeps what fits; new bytes are zero.
void resize(onnx::TensorProto& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.dims()) {
    if (size < 0 || size > kMostElements) return;
    count *= size;
    if (count > kMostElements) return;
  }
  const std::optional<DType> dtype = dtype_from_onnx(tensor.data_type());
  if (!dtype) return;
  if (tensor.has_raw_data()) {
    tensor.mutable_raw_data()->resize(static_cast<size_t>(count * size_of(*dtype)), '\0');
  }
  const auto fit = [count](auto& field) {
    if (field.size() > 0) field.Resize(static_cast<int>(count), {});
  };
  fit(*tensor.mutable_float_data());
  fit(*tensor.mutable_int64_data());
  fit(*tensor.mutable_int32_data());
  fit(*tensor.mutable_double_data());
}

void change_dims(Random& random, onnx::TensorProto& tensor) {
  const int rank = tensor.dims_size();
  const int64_t kind = random.integer(0, 5);
  if (rank == 0 || kind == 0) {
    tensor.add_dims(random.chance(0.5) ? 1 : random.size());
  } else if (kind == 1) {
    tensor.mutable_dims()->RemoveLast();
  } else if (kind == 2 && rank > 1) {
    tensor.mutable_dims()->SwapElements(random.index(rank), random.index(rank));
  } else {
    tensor.set_dims(random.index(rank), random.size());
  }
  if (random.chance(0.9)) resize(tensor);
}

void change_value(Random& random, onnx::TensorProto& tensor) {
  if (tensor.data_type() == onnx::TensorProto::INT64 && tensor.raw_data().size() >= 8) {
    const int at = random.index(static_cast<int>(tensor.raw_data().size() / 8));
    const int64_t value = random.number();
    tensor.mutable_raw_data()->replace(static_cast<size_t>(at) * 8, 8,
                                       reinterpret_cast<const char*>(&value), 8);
  } else if (tensor.int64_data_size() > 0) {
    tensor.set_int64_data(random.index(tensor.int64_data_size()), random.number());
  } else if (!tensor.raw_data().empty()) {
    const int at = random.index(static_cast<int>(tensor.raw_data().size()));
    (*tensor.mutable_raw_data())[static_cast<size_t>(at)] =
        static_cast<char>(random.integer(-128, 127));
  }
}

}  // namespace

int64_t Random::size() {
  static const std::vector<int64_t> kHuge = {
      1000, 65536, int64_t{1} << 31, int64_t{1} << 40, std::numeric_limits<int64_t>::max(), -1};
  if (chance(0.03)) return pick(kHuge);
  return chance(0.05) ? 0 : integer(1, 8);
}

int64_t Random::number() {
  static const std::vector<int64_t> kRare = {
      64,
      1000,
      INT32_MAX,
      INT32_MIN,
      int64_t{1} << 32,
      std::numeric_limits<int64_t>::max(),
      std::numeric_limits<int64_t>::min(),
  };
  return chance(0.05) ? pick(kRare) : integer(-3, 8);
}

int random_dtype(Random& random) { return static_cast<int>(random.integer(0, 18)); }

std::string random_operator(Random& random, const onnx::NodeProto& node) {
  const auto fitting = operators_by_inputs().find(node.input_size());
  if (fitting == operators_by_inputs().end() || random.chance(0.2)) {
    return random.pick(all_operators());
  }
  if (node.input_size() == 1 && random.chance(0.5)) return random_unary(random);
  if (node.input_size() == 2 && random.chance(0.5)) return random_binary(random);
  return random.pick(fitting->second);
}

std::string random_unary(Random& random) {
  static const std::vector<std::string> kUnary = {"Neg",
                                                  "Abs",
                                                  "Exp",
                                                  "Sqrt",
                                                  "Tanh",
                                                  "Sigmoid",
                                                  "Relu",
                                                  "Softmax",
                                                  "Transpose",
                                                  "ReduceMean",
                                                  "Erf",
                                                  "ReduceSum",
                                                  "ReduceMax",
                                                  "Flatten",
                                                  "LogSoftmax",
                                                  "Cast",
                                                  "Gelu",
                                                  "Softplus",
                                                  "GlobalAveragePool",
                                                  "Identity",
                                                  "Dropout",
                                                  "Squeeze",
                                                  "ReduceL2",
                                                  "ReduceLogSumExp",
                                                  "Shape",
                                                  "Reciprocal"};
  return random.pick(kUnary);
}

std::string random_binary(Random& random) {
  static const std::vector<std::string> kBinary = {
      "Add",   "Sub",    "Mul",       "Div",    "MatMul",  "Pow",       "Max",
      "Min",   "Concat", "Gather",    "Expand", "Reshape", "Where",     "Greater",
      "Equal", "PRelu",  "Unsqueeze", "Tile",   "CumSum",  "ReduceSum", "GatherElements",
      "Gemm",  "Mod",    "TopK",      "Split",  "Conv"};
  return random.pick(kBinary);
}

void add_attribute(Random& random, onnx::NodeProto& node) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), 21, node.domain());
  if (!schema || schema->attributes().empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, attribute] : schema->attributes()) names.push_back(name);
  const onnx::OpSchema::Attribute& chosen = schema->attributes().at(random.pick(names));
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == chosen.name) return;
  }
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute = chosen.default_value;
  attribute.set_name(chosen.name);
  attribute.set_type(chosen.type);
  if (random.chance(0.8)) set_values(random, attribute);
}

void mutate_attribute(Random& random, onnx::AttributeProto& attribute) {
  const int64_t kind = random.integer(0, 5);
  if (attribute.has_t() && kind > 0) return mutate_tensor(random, *attribute.mutable_t());
  if (attribute.ints_size() > 0 && kind > 1) {
    return attribute.set_ints(random.index(attribute.ints_size()), random.number());
  }
  if (attribute.ints_size() > 0 && kind == 1) return attribute.mutable_ints()->RemoveLast();
  set_values(random, attribute);
}

void mutate_tensor(Random& random, onnx::TensorProto& tensor) {
  const int64_t kind = random.integer(0, 9);
  if (kind == 0) {
    tensor.set_data_type(random_dtype(random));
    if (random.chance(0.9)) resize(tensor);
  } else if (kind < 5) {
    change_dims(random, tensor);
  } else {
    change_value(random, tensor);
  }
}

void mutate_bytes(Random& random, onnx::ModelProto& model) {
  std::string bytes = model.SerializeAsString();
  if (bytes.empty()) return;
  for (int64_t left = random.integer(1, 3); left > 0; --left) {
    bytes[static_cast<size_t>(random.index(static_cast<int>(bytes.size())))] =
        static_cast<char>(random.integer(-128, 127));
  }
  onnx::ModelProto changed;
  if (changed.ParseFromString(bytes)) model = std::move(changed);
}

}  // namespace sgtc::fuzz
