#include "autodiff/differentiate.h"
#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kArtifact = R"(<ir_version: 8, opset_import: ["" : 14, "com.microsoft" : 1]>
g (float[2] x, float[2] buffer, bool[1] reset) => (float loss, bool[1] done) <float[2] w = {3, 4}> {
  p = Mul (x, w)
  loss = ReduceSum <keepdims = 0> (p)
  w_grad = Identity (x)
  done = com.microsoft.InPlaceAccumulatorV2 (buffer, w_grad, reset)
})";

OnnxModel artifact(onnx::ModelProto proto) {
  Diagnostics diagnostics;
  return OnnxModel::from_proto(std::move(proto), "m", ".", diagnostics);
}

Graph imported(const OnnxModel& model, bool training) {
  ImportOptions options;
  options.training = training;
  Diagnostics diagnostics;
  Graph graph = import_graph(model, options, diagnostics);
  verify(graph, "import");
  return graph;
}

}  // namespace

TEST_CASE("accumulation leaves a training artifact, its gradients stay") {
  const OnnxModel model = artifact(parse_onnx(kArtifact));
  REQUIRE(model.given_gradients().size() == 1);
  CHECK(model.given_gradients()[0].parameter == "w");
  CHECK(model.given_gradients()[0].gradient == "w_grad");
  CHECK(model.proto().graph().input_size() == 1);
  CHECK(model.proto().graph().output_size() == 1);
  CHECK(model.proto().graph().node_size() == 3);
}

TEST_CASE("given gradients are the last outputs of a training graph, and of no other") {
  const OnnxModel model = artifact(parse_onnx(kArtifact));
  const Graph training = imported(model, true);
  REQUIRE(training.outputs.size() == 2);
  CHECK(training.outputs[1].name == "w_grad");
  CHECK(imported(model, false).outputs.size() == 1);
}

TEST_CASE("nodes that only gradients need are of the backward phase") {
  onnx::ModelProto proto = parse_onnx(kArtifact);
  proto.mutable_graph()->mutable_node(2)->set_op_type("Neg");
  const Graph graph = imported(artifact(proto), true);
  REQUIRE(graph.producer(graph.outputs[1].value) != nullptr);
  CHECK(graph.producer(graph.outputs[1].value)->phase == Phase::kBackward);
  CHECK(graph.producer(graph.outputs[0].value)->phase == Phase::kForward);
}

TEST_CASE("a gradient of what is no initializer is refused") {
  onnx::ModelProto proto = parse_onnx(kArtifact);
  proto.mutable_graph()->mutable_initializer(0)->set_name("v");
  CHECK_THROWS_WITH(artifact(proto), ContainsSubstring("the gradient of no initializer") &&
                                         ContainsSubstring("--ort-checkpoint"));
}
