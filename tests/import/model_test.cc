// What is refused before a graph is looked at.
#include "import/model.h"

#include "import/helper.h"
#include "import/model_files.h"
#include "support/catch.h"
#include "support/file.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

std::string load_error(const std::string& path) {
  Diagnostics diagnostics;
  try {
    OnnxModel::load(path, diagnostics);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
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
  const std::string whole = identity_model().SerializeAsString();
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
