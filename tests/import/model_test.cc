// What is refused before a graph is looked at.
#include "import/model.h"

#include <filesystem>
#include <fstream>

#include "import/helper.h"
#include "support/catch.h"
#include "support/file.h"

using namespace sgtc;
using namespace sgtc::testing;
namespace fs = std::filesystem;

namespace {

// A folder that disappears with the object.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "sgtc-import-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& contents) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << contents;
    return (path / name).string();
  }
};

std::string load_error(const std::string& path) {
  Diagnostics diagnostics;
  try {
    OnnxModel::load(path, diagnostics);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

onnx::ModelProto identity_model() {
  return parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> "
      "g (float[2] x) => (float[2] y) { y = Add (x, w) }");
}

// Adds the initializer "w" whose four-byte floats lie in `location`.
onnx::ModelProto external_model(const std::string& location, const std::string& offset = "",
                                const std::string& length = "") {
  onnx::ModelProto model = identity_model();
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&tensor](const std::string& key, const std::string& value) {
    if (value.empty()) return;
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
  return model;
}

std::string external_error(const TemporaryFolder& folder, const onnx::ModelProto& proto) {
  Diagnostics diagnostics;
  const OnnxModel model =
      OnnxModel::load(folder.write("m.onnx", proto.SerializeAsString()), diagnostics);
  ImportOptions options;
  options.training = false;
  return import_error(model, options);
}

}  // namespace

TEST_CASE("files that are no models are refused") {
  const TemporaryFolder folder;
  CHECK(has(load_error((folder.path / "absent.onnx").string()), "no such file"));
  CHECK(has(load_error(folder.path.string()), "is a folder"));
  CHECK(has(load_error(folder.write("empty.onnx", "")), "the file is empty"));
  CHECK(has(load_error(folder.write("noise.onnx", "hello, world, this is text")),
            "is not an ONNX model"));
  CHECK(has(load_error(folder.write("lfs.onnx", "version https://git-lfs.github.com/spec/v1\n")),
            "run `git lfs pull`"));
  const std::string whole = external_model("w.bin").SerializeAsString();
  CHECK(has(load_error(folder.write("short.onnx", whole.substr(0, whole.size() - 5))),
            "truncated or damaged"));
  CHECK(has(load_error(folder.write("nograph.onnx", std::string("\x08\x0a", 2))), "has no graph"));
}

TEST_CASE("old IR versions and long names are refused") {
  const TemporaryFolder folder;
  onnx::ModelProto model = identity_model();
  model.set_ir_version(2);
  CHECK(has(load_error(folder.write("ir.onnx", model.SerializeAsString())),
            "IR version 2, expected 3 or newer"));
  model = identity_model();
  model.mutable_graph()->mutable_node(0)->set_name(std::string(5000, 'n'));
  CHECK(has(load_error(folder.write("name.onnx", model.SerializeAsString())),
            "a name has 5000 characters"));
}

TEST_CASE("missing and repeated opsets are said in one line") {
  Diagnostics diagnostics;
  onnx::ModelProto model = identity_model();
  model.clear_opset_import();
  CHECK(OnnxModel::from_proto(model, "m", ".", diagnostics).opsets().at("") == 1);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(has(diagnostics.all()[0].text, "1 is assumed"));
  model = identity_model();
  model.add_opset_import()->set_version(13);
  CHECK(OnnxModel::from_proto(model, "m", ".", diagnostics).opsets().at("") == 21);
  CHECK(has(diagnostics.all().back().text, "given more than once"));
}

TEST_CASE("external data is read from beside the model") {
  const TemporaryFolder folder;
  const float values[] = {0, 10, 20};
  folder.write("w.bin", std::string(reinterpret_cast<const char*>(values), sizeof values));
  Diagnostics diagnostics;
  const std::string path =
      folder.write("m.onnx", external_model("w.bin", "4", "8").SerializeAsString());
  ImportOptions options;
  options.training = false;
  const OnnxModel model = OnnxModel::load(path, diagnostics);
  const Graph graph = import_graph(model, options, diagnostics);
  CHECK(run(graph, {{"x", {1, 2}}}).at("y") == std::vector<double>{11, 22});
}

TEST_CASE("external data outside the folder or of the wrong size is refused") {
  const TemporaryFolder folder;
  folder.write("w.bin", "12345678");
  folder.write("sub/inner.bin", "12345678");
  CHECK(has(external_error(folder, external_model("/etc/passwd")), "outside the model's folder"));
  CHECK(has(external_error(folder, external_model("../w.bin")), "outside the model's folder"));
  fs::create_symlink("/etc/passwd", folder.path / "link.bin");
  CHECK(has(external_error(folder, external_model("link.bin")), "outside the model's folder"));
  CHECK(has(external_error(folder, external_model("absent.bin")), "absent.bin"));
  CHECK(has(external_error(folder, external_model("w.bin", "4")),
            "too short: expected 8 bytes at offset 4, the file has 8"));
  CHECK(has(external_error(folder, external_model("w.bin", "", "7")),
            "expected 8 bytes for its shape, found length 7"));
  CHECK(has(external_error(folder, external_model("w.bin", "-1")), "expected a number of bytes"));
  CHECK(external_error(folder, external_model("sub/inner.bin")).empty());
}

TEST_CASE("external data with another name is refused") {
  const TemporaryFolder folder;
  folder.write("w.bin", "12345678");
  CHECK(external_error(folder, external_model("w.bin")).empty());
  const TemporaryFolder elsewhere;
  fs::create_hard_link(folder.path / "w.bin", elsewhere.path / "other.bin");
  CHECK(has(external_error(folder, external_model("w.bin")), "has 2 names (hard links)"));
}

TEST_CASE("external data outside the folder is refused wherever a model may name it") {
  const TemporaryFolder folder;
  folder.write("secret.bin", "12345678");
  const onnx::TensorProto outside =
      external_model("../" + folder.path.filename().string() + "/secret.bin")
          .graph()
          .initializer(0);
  const auto constant = [&](onnx::NodeProto& node, const std::string& output) {
    node.set_op_type("Constant");
    node.add_output(output);
    auto& attribute = *node.add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = outside;
  };
  const auto refused = [&](const onnx::ModelProto& model) {
    return has(external_error(folder, model), "outside the model's folder");
  };
  onnx::ModelProto sparse = identity_model();
  auto& tensor = *sparse.mutable_graph()->add_sparse_initializer();
  *tensor.mutable_values() = outside;
  tensor.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  tensor.mutable_indices()->add_dims(2);
  tensor.mutable_indices()->add_int64_data(0);
  tensor.mutable_indices()->add_int64_data(1);
  tensor.add_dims(2);
  CHECK(refused(sparse));

  onnx::ModelProto node = identity_model();
  constant(*node.mutable_graph()->add_node(), "w");
  CHECK(refused(node));

  onnx::ModelProto branch = parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (float[2] x) => (float[2] y) <bool c = {1}> { "
      "y = If (c) <then_branch = t () => (float[2] a) { a = Add (x, w) }, "
      "else_branch = e () => (float[2] b) { b = Neg (x) }> }");
  auto& body = *branch.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  onnx::ModelProto in_branch = branch;
  constant(*body.add_node(), "w");
  CHECK(refused(branch));
  *in_branch.mutable_graph()
       ->mutable_node(0)
       ->mutable_attribute(0)
       ->mutable_g()
       ->add_initializer() = outside;
  CHECK(refused(in_branch));

  onnx::ModelProto function = parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21, \"own\" : 1]> "
      "g (float[2] x) => (float[2] y) { y = own.shift (x) } "
      "<domain: \"own\", opset_import: [\"\" : 21]> shift (v) => (r) { r = Add (v, w) }");
  constant(*function.mutable_functions(0)->add_node(), "w");
  CHECK(refused(function));

  onnx::ModelProto trained = external_model("w.bin");
  folder.write("w.bin", "12345678");
  auto& training = *trained.add_training_info();
  constant(*training.mutable_initialization()->add_node(), "fresh");
  training.mutable_initialization()->set_name("initialization");
  training.mutable_initialization()->add_output()->set_name("fresh");
  auto& binding = *training.add_initialization_binding();
  binding.set_key("w");
  binding.set_value("fresh");
  CHECK(refused(trained));
}

TEST_CASE("a sparse tensor that would not fit in memory is refused") {
  onnx::ModelProto model = identity_model();
  auto& sparse = *model.mutable_graph()->add_sparse_initializer();
  sparse.mutable_values()->set_name("w");
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(1);
  sparse.mutable_values()->add_float_data(1);
  sparse.add_dims(int64_t{1} << 32);
  Diagnostics diagnostics;
  const OnnxModel loaded = OnnxModel::from_proto(model, "m", ".", diagnostics);
  CHECK(has(import_error(loaded), "initializer \"w\": the sparse tensor of shape"));
}

TEST_CASE("tensors whose bytes do not fit their shape are named") {
  onnx::ModelProto model = identity_model();
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.set_raw_data("1234567");
  Diagnostics diagnostics;
  const OnnxModel loaded = OnnxModel::from_proto(model, "m", ".", diagnostics);
  CHECK(has(import_error(loaded), "initializer \"w\": expected 8 bytes for its shape, found 7"));
}
