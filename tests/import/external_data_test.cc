// Tensors in files beside the model, and what must not be reached by them.
#include <fcntl.h>
#include <sys/inotify.h>

#include <functional>

#include "import/helper.h"
#include "import/model_files.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;
namespace fs = std::filesystem;

namespace {

constexpr const char* kHead = "<ir_version: 10, opset_import: [\"\" : 21, \"own\" : 1]> ";

// "w", whose two four-byte floats lie in `location`.
onnx::TensorProto external_tensor(const std::string& location, const std::string& offset = "",
                                  const std::string& length = "") {
  onnx::TensorProto tensor;
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
  return tensor;
}

onnx::ModelProto external_model(const std::string& location, const std::string& offset = "",
                                const std::string& length = "") {
  onnx::ModelProto model = identity_model();
  *model.mutable_graph()->add_initializer() = external_tensor(location, offset, length);
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

// A Constant node with the tensor, in front of the others.
template <typename Graph>
void add_constant(Graph& graph, const onnx::TensorProto& tensor, const std::string& output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Constant");
  node.add_output(output);
  auto& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  *attribute.mutable_t() = tensor;
  for (int i = graph.node_size() - 1; i > 0; --i) graph.mutable_node()->SwapElements(i, i - 1);
}

onnx::SparseTensorProto sparse_of(const onnx::TensorProto& tensor, bool are_indices) {
  onnx::SparseTensorProto sparse;
  auto& values = *sparse.mutable_values();
  auto& indices = *sparse.mutable_indices();
  values.set_name("w");
  values.set_data_type(onnx::TensorProto::FLOAT);
  values.add_float_data(1);
  values.add_dims(1);
  indices.add_int64_data(0);
  indices.add_dims(1);
  if (are_indices) indices = tensor;
  if (!are_indices) values = tensor, indices.set_dims(0, 2), indices.add_int64_data(1);
  indices.set_data_type(onnx::TensorProto::INT64);
  if (are_indices) indices.set_dims(0, 1);
  sparse.add_dims(2);
  return sparse;
}

onnx::ModelProto branching_model() {
  return parse_onnx(std::string(kHead) +
                    "g (float[2] x) => (float[2] y) <bool c = {1}> { "
                    "y = If (c) <then_branch = t () => (float[2] a) { a = Add (x, w) }, "
                    "else_branch = e () => (float[2] b) { b = Neg (x) }> }");
}

onnx::GraphProto& body_of(onnx::ModelProto& model, const std::string& name) {
  for (auto& attribute : *model.mutable_graph()->mutable_node(0)->mutable_attribute()) {
    if (attribute.name() == name) return *attribute.mutable_g();
  }
  throw std::runtime_error("no body " + name);
}

// Trains w, which starts as {1, 2}, by w2 = w - k.
onnx::ModelProto trained_model() {
  onnx::ModelProto model = parse_onnx(std::string(kHead) +
                                      "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> "
                                      "{ y = Add (x, w) }");
  auto& training = *model.add_training_info();
  *training.mutable_algorithm() =
      parse_onnx(std::string(kHead) + "s () => (float[2] w2) { w2 = Sub (w, k) }").graph();
  auto& binding = *training.add_update_binding();
  binding.set_key("w");
  binding.set_value("w2");
  return model;
}

using Place = std::function<onnx::ModelProto(const onnx::TensorProto&)>;

// Wherever a model may hold a tensor.
const std::map<std::string, Place> kPlaces = {
    {"initializer",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = identity_model();
       *model.mutable_graph()->add_initializer() = tensor;
       return model;
     }},
    {"values of a sparse initializer",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = identity_model();
       *model.mutable_graph()->add_sparse_initializer() = sparse_of(tensor, false);
       return model;
     }},
    {"indices of a sparse initializer",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = identity_model();
       *model.mutable_graph()->add_sparse_initializer() = sparse_of(tensor, true);
       return model;
     }},
    {"Constant",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = identity_model();
       add_constant(*model.mutable_graph(), tensor, "w");
       return model;
     }},
    {"sparse Constant",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = identity_model();
       add_constant(*model.mutable_graph(), tensor, "w");
       auto& attribute = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0);
       attribute.Clear();
       attribute.set_name("sparse_value");
       attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
       *attribute.mutable_sparse_tensor() = sparse_of(tensor, false);
       return model;
     }},
    {"Constant of a branch",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = branching_model();
       add_constant(body_of(model, "then_branch"), tensor, "w");
       return model;
     }},
    {"initializer of a branch",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = branching_model();
       *body_of(model, "then_branch").add_initializer() = tensor;
       return model;
     }},
    {"sparse initializer of a branch",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = branching_model();
       *body_of(model, "then_branch").add_sparse_initializer() = sparse_of(tensor, false);
       return model;
     }},
    {"Constant of a function",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = parse_onnx(
           std::string(kHead) +
           "g (float[2] x) => (float[2] y) { y = own.shift (x) } "
           "<domain: \"own\", opset_import: [\"\" : 21]> shift (v) => (r) { r = Add (v, w) }");
       add_constant(*model.mutable_functions(0), tensor, "w");
       return model;
     }},
    {"Constant of an initialization",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = trained_model();
       auto& training = *model.mutable_training_info(0);
       add_constant(*training.mutable_algorithm(), model.graph().initializer(0), "k");
       add_constant(*training.mutable_initialization(), tensor, "fresh");
       training.mutable_initialization()->set_name("initialization");
       training.mutable_initialization()->add_output()->set_name("fresh");
       auto& binding = *training.add_initialization_binding();
       binding.set_key("w");
       binding.set_value("fresh");
       return model;
     }},
    {"initializer of an algorithm",
     [](const onnx::TensorProto& tensor) {
       onnx::ModelProto model = trained_model();
       auto& algorithm = *model.mutable_training_info(0)->mutable_algorithm();
       *algorithm.add_initializer() = tensor;
       algorithm.mutable_initializer(0)->set_name("k");
       return model;
     }},
};

// Whether a file is opened while the object lives, by whatever name.
class Watch {
 public:
  explicit Watch(const fs::path& path) : events_(inotify_init1(IN_NONBLOCK)) {
    REQUIRE(inotify_add_watch(events_, path.c_str(), IN_OPEN) >= 0);
  }
  ~Watch() { close(events_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool opened() const {
    alignas(inotify_event) char event[4096];
    return read(events_, event, sizeof event) > 0;
  }

 private:
  int events_;
};

}  // namespace

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

TEST_CASE("a tensor is found wherever a model may hold it") {
  const TemporaryFolder folder;
  folder.write("inner.bin", std::string(8, '\0'));
  for (const auto& [place, make] : kPlaces) {
    INFO(place);
    CHECK(external_error(folder, make(external_tensor("inner.bin"))).empty());
  }
}

TEST_CASE("no tensor reaches out of the model's folder, wherever the model holds it") {
  const TemporaryFolder folder, elsewhere;
  const std::string secret = elsewhere.write("secret.bin", std::string(8, '\0'));
  fs::create_symlink(secret, folder.path / "link.bin");
  fs::create_directory_symlink(elsewhere.path, folder.path / "linked");
  fs::create_hard_link(secret, folder.path / "second.bin");
  fs::create_directory(folder.path / "inner");
  const Watch watch(secret);
  std::ifstream(secret).get();
  REQUIRE(watch.opened());
  const std::string outside = "outside the model's folder";
  const std::string neighbour = elsewhere.path.filename().string() + "/secret.bin";
  const std::map<std::string, std::string> ways = {
      {"../" + neighbour, outside},
      {"inner/../../" + neighbour, outside},
      {secret, outside},
      {"link.bin", outside},
      {"linked/secret.bin", outside},
      {"second.bin", "has 2 names (hard links)"},
  };
  for (const auto& [place, make] : kPlaces) {
    for (const auto& [location, reason] : ways) {
      INFO(place << ": " << location);
      CHECK_THAT(external_error(folder, make(external_tensor(location))),
                 Catch::Matchers::ContainsSubstring(reason));
      CHECK(!watch.opened());
    }
  }
}
