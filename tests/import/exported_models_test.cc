// Models that exporters wrote: the interpreter's loss of the imported graph is PyTorch's loss
// before any update. Skipped without the folder ../shared/data.
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autodiff/differentiate.h"
#include "import/helper.h"
#include "import/import.h"
#include "ir/interpret.h"
#include "support/catch.h"
#include "support/file.h"

using namespace sgtc;
namespace fs = std::filesystem;

namespace {

const fs::path kData = fs::path(SGTC_SOURCE_DIR).parent_path() / "shared" / "data";

Graph import_file(const fs::path& path, const ImportOptions& options = {}) {
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::load(path.string(), diagnostics);
  Graph graph = import_graph(model, options, diagnostics);
  verify(graph, "import");
  return graph;
}

// Dropout and other random nodes make PyTorch's loss differ from ours.
bool is_random(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (info(node.op).kind == OpKind::kRandom) return true;
  }
  return false;
}

// The array of a .npy file (version 1), whose dtype and shape are known to be `type`.
Tensor read_npy(const TensorType& type, const std::string& path) {
  const std::string file = read_file(path);
  uint16_t header = 0;
  std::memcpy(&header, file.data() + 8, sizeof header);
  const size_t begin = 10 + header;
  REQUIRE(file.size() - begin ==
          static_cast<size_t>(element_count(type.shape) * size_of(type.dtype)));
  return Tensor(
      Literal(type.dtype, type.shape, std::as_bytes(std::span(file)).subspan(begin), nullptr));
}

double first_loss(const fs::path& folder, const Graph& graph) {
  Interpreter interpreter(graph);
  for (ValueId feed : graph.feeds) {
    const std::string& name = graph.value(feed).name;
    interpreter.set(name, read_npy(graph.type(feed), (folder / (name + ".npy")).string()));
  }
  interpreter.run();
  return interpreter.output(graph.outputs[0].name).at(0);
}

}  // namespace

TEST_CASE("exported models give PyTorch's first loss", "[data]") {
  if (!fs::exists(kData)) return;
  for (const auto& folder : fs::directory_iterator(kData / "exported")) {
    const std::string text = read_file((folder.path() / "expected.json").string());
    const auto expected = nlohmann::json::parse(text).at("sgd").at("losses").at(0).get<double>();
    for (const char* name : {"ts17.onnx", "dynamo18.onnx", "dynamo23.onnx"}) {
      const fs::path path = folder.path() / name;
      if (!fs::exists(path)) continue;
      INFO(path.string());
      const Graph graph = import_file(path);
      const double found = first_loss(folder.path(), graph);
      // The torch.export exporter freezes BatchNormalization.
      const bool frozen = folder.path().filename() == "tv_resnet_small" && name[0] == 'd';
      if (!frozen && !is_random(graph)) CHECK(found == Approx(expected).epsilon(2e-6));
    }
  }
}

TEST_CASE("numbers and masks that PyTorch's exporter writes as initializers are not trained",
          "[data]") {
  if (!fs::exists(kData)) return;
  const Graph physics = import_file(kData / "exported/torch_pinn_like/dynamo23.onnx");
  CHECK(physics.states.size() == 7);
  CHECK(physics.find("k") != kNone);
  const Graph llama = import_file(kData / "exported/hf_llama_gqa/dynamo18.onnx");
  for (ValueId state : llama.states) CHECK(llama.value(state).role == StateRole::kParameter);
  CHECK(llama.value(llama.find("unsqueeze_16")).kind == ValueKind::kConstant);
  CHECK(llama.value(llama.find("val_93")).kind == ValueKind::kState);
}

TEST_CASE("what the exporter's optimizer lost is said", "[data]") {
  if (!fs::exists(kData)) return;
  Diagnostics diagnostics;
  const std::string path = (kData / "exported/tv_resnet_small/dynamo18.onnx").string();
  import_graph(OnnxModel::load(path, diagnostics), {}, diagnostics);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].text.find("12 of the exporter's parameters, such as "
                                       "\"m.bn1.weight\", are not in the file") == 0);
}

TEST_CASE("inference models of ONNX Runtime's tests import", "[data]") {
  if (!fs::exists(kData)) return;
  ImportOptions options;
  options.training = false;
  options.dims = {{"batch_size", 2}, {"sequence_length", 8}};
  CHECK(import_file(kData / "gather_roberta_e2e.onnx", options).outputs.size() == 1);
  options.dims = {{"batch_size", 2}, {"seq_len", 8}};
  CHECK(import_file(kData / "gpt2_one_layer.onnx", options).outputs.size() == 1);
  options.dims = {};
  const Graph mlp = import_file(kData / "mlp_weights_as_inputs.onnx", options);
  CHECK(mlp.feeds.size() == 1);
  CHECK(mlp.states.size() == 6);
}

TEST_CASE("training models of ONNX Runtime's tests import", "[data]") {
  if (!fs::exists(kData)) return;
  ImportOptions options;
  options.dims = {{"batch_size", 2}, {"sequence_length", 8}, {"batch_size*sequence_length", 16}};
  const Graph bert = import_file(kData / "mlm_bert_e2e.onnx", options);
  CHECK(bert.shape(bert.outputs[0].value).empty());
  options.dims = {{"input-0_dim0", 2}, {"input-0_dim1", 784}, {"output-0_dim0", 2}};
  options.gradients = append_gradients;
  const fs::path folder = kData / "ort_training_api";
  const OrtCheckpoint checkpoint = read_ort_checkpoint((folder / "checkpoint.ckpt").string());
  for (const std::string name : {"eval_model.onnx", "training_model.onnx"}) {
    Diagnostics diagnostics;
    const OnnxModel model = OnnxModel::load((folder / name).string(), diagnostics, &checkpoint);
    const Graph graph = import_graph(model, options, diagnostics);
    verify(graph, "import");
    CHECK(graph.outputs[0].name == "onnx::loss::21273");
    CHECK(graph.outputs.size() == (name == "training_model.onnx" ? 5 : 1));
    CHECK(graph.feeds.size() == 2);
    CHECK(graph.states.size() == 4);
  }
}
