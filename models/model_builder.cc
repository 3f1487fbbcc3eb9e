#include "models/model_builder.h"

#include "support/version.h"

namespace sgtc::models {
namespace {

void set_value_info(onnx::ValueInfoProto* info, const std::string& name,
                    onnx::TensorProto::DataType type, const std::vector<Dim>& dims) {
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  auto* shape = tensor->mutable_shape();
  for (const Dim& dim : dims) {
    auto* added = shape->add_dim();
    if (dim.name.empty()) {
      added->set_dim_value(dim.size);
    } else {
      added->set_dim_param(dim.name);
    }
  }
}

onnx::TensorProto integer_tensor(const std::vector<int64_t>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

onnx::TensorProto float_tensor(float value) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_float_data(value);
  return tensor;
}

void set_attribute(onnx::AttributeProto* proto, const Attribute& attribute) {
  proto->set_name(attribute.name);
  if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
    proto->set_type(onnx::AttributeProto::INT);
    proto->set_i(*integer);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    proto->set_type(onnx::AttributeProto::FLOAT);
    proto->set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    proto->set_type(onnx::AttributeProto::STRING);
    proto->set_s(*text);
  } else {
    proto->set_type(onnx::AttributeProto::INTS);
    for (const int64_t i : std::get<std::vector<int64_t>>(attribute.value)) proto->add_ints(i);
  }
}

void set_tensor_attribute(onnx::NodeProto* node, const onnx::TensorProto& tensor) {
  auto* attribute = node->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  *attribute->mutable_t() = tensor;
}

// The version of the file format that came with an opset, by ONNX's table of versions.
int64_t ir_version(int64_t opset) {
  if (opset >= 23) return 11;
  if (opset >= 21) return 10;
  return opset >= 19 ? 9 : 8;
}

}  // namespace

ModelBuilder::ModelBuilder(std::string_view graph_name, int64_t opset) : opset_(opset) {
  model_.set_ir_version(ir_version(opset));
  model_.set_producer_name("sgtc-model");
  model_.set_producer_version(kVersion);
  auto* import = model_.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  model_.mutable_graph()->set_name(std::string(graph_name));
  model_.add_training_info()->mutable_initialization()->set_name("initialization");
}

std::string ModelBuilder::input(const std::string& name, onnx::TensorProto::DataType type,
                                const std::vector<Dim>& dims) {
  set_value_info(model_.mutable_graph()->add_input(), name, type, dims);
  return name;
}

std::string ModelBuilder::weight(const std::string& name, const std::vector<int64_t>& dims,
                                 Initial initial) {
  auto* sparse = model_.mutable_graph()->add_sparse_initializer();
  sparse->mutable_values()->set_name(name);
  sparse->mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(0);
  sparse->mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  sparse->mutable_indices()->add_dims(0);
  for (const int64_t dim : dims) sparse->add_dims(dim);
  if (initial.kind != Initial::Kind::kConstant || initial.value != 0) {
    initialize(name, dims, initial);
  }
  return name;
}

void ModelBuilder::initialize(const std::string& name, const std::vector<int64_t>& dims,
                              Initial initial) {
  auto* info = model_.mutable_training_info(0);
  const std::string value = "initial/" + name;
  auto* node = info->mutable_initialization()->add_node();
  node->set_name(value);
  node->add_output(value);
  if (initial.kind == Initial::Kind::kNormal) {
    node->set_op_type("RandomNormal");
    set_attribute(node->add_attribute(), {"mean", 0.0f});
    set_attribute(node->add_attribute(), {"scale", initial.value});
    set_attribute(node->add_attribute(), {"shape", dims});
  } else {
    node->set_op_type("ConstantOfShape");
    node->add_input(initialization_shape(dims));
    onnx::TensorProto filler = float_tensor(initial.value);
    filler.add_dims(1);
    set_tensor_attribute(node, filler);
  }
  set_value_info(info->mutable_initialization()->add_output(), value, onnx::TensorProto::FLOAT,
                 {dims.begin(), dims.end()});
  auto* binding = info->add_initialization_binding();
  binding->set_key(name);
  binding->set_value(value);
}

std::string ModelBuilder::initialization_shape(const std::vector<int64_t>& dims) {
  std::string name = "shape";
  for (const int64_t dim : dims) name += "/" + std::to_string(dim);
  if (shapes_.insert(name).second) {
    auto* tensor = model_.mutable_training_info(0)->mutable_initialization()->add_initializer();
    *tensor = integer_tensor(dims);
    tensor->set_name(name);
  }
  return name;
}

std::string ModelBuilder::constant(const std::string& name, const onnx::TensorProto& tensor) {
  if (!constants_.insert(name).second) return name;
  add("Constant", name, {});
  auto* graph = model_.mutable_graph();
  set_tensor_attribute(graph->mutable_node(graph->node_size() - 1), tensor);
  return name;
}

std::string ModelBuilder::scalar(const std::string& name, float value) {
  return constant(name, float_tensor(value));
}

std::string ModelBuilder::boolean(const std::string& name, bool value) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::BOOL);
  tensor.add_int32_data(value ? 1 : 0);
  return constant(name, tensor);
}

std::string ModelBuilder::integers(const std::string& name, const std::vector<int64_t>& values) {
  return constant(name, integer_tensor(values));
}

std::string ModelBuilder::reals(const std::string& name, const std::vector<float>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const float value : values) tensor.add_float_data(value);
  return constant(name, tensor);
}

std::string ModelBuilder::add(const std::string& op, const std::string& name,
                              const std::vector<std::string>& inputs,
                              const std::vector<Attribute>& attributes, int results) {
  auto* node = model_.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(name);
  for (const std::string& value : inputs) node->add_input(value);
  node->add_output(name);
  for (int i = 1; i < results; ++i) node->add_output(name + "." + std::to_string(i));
  for (const Attribute& attribute : attributes) set_attribute(node->add_attribute(), attribute);
  return name;
}

std::string ModelBuilder::split(const std::string& name, const std::string& x, int parts) {
  std::vector<Attribute> attributes = {{"axis", int64_t{-1}}};
  if (opset_ >= 18) attributes.push_back({"num_outputs", int64_t{parts}});
  return add("Split", name, {x}, attributes, parts);
}

void ModelBuilder::output(const std::string& value, const std::vector<Dim>& dims) {
  set_value_info(model_.mutable_graph()->add_output(), value, onnx::TensorProto::FLOAT, dims);
}

}  // namespace sgtc::models
