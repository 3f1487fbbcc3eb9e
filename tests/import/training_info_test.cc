#include "import/training_info.h"

#include <algorithm>

#include "autodiff/differentiate.h"
#include "import/helper.h"
#include "import/import_update.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;
using namespace sgtc::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kHeader =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n";
constexpr const char* kGradient =
    "dw = ai.onnx.preview.training.Gradient <xs = [\"w\"], zs = [\"x\"], y = \"loss\"> (w, x) ";

// loss = sum(x w) in the algorithm; `nodes` follow.
onnx::ModelProto model_with(const std::string& nodes,
                            const std::vector<std::pair<std::string, std::string>>& bindings,
                            const std::string& inputs = "float R") {
  onnx::ModelProto proto =
      parse_onnx(std::string(kHeader) +
                 "g (float[2] x) => (float[2] p) <float[2] w = {3, 4}> { p = Mul (x, w) }");
  auto& info = *proto.add_training_info();
  *info.mutable_algorithm() =
      parse_onnx(std::string(kHeader) + "step (" + inputs + ") => (float loss) " +
                 "<float[2] m = {0, 0}, int64 t = {0}, int64 one = {1}> "
                 "{ loss = ReduceSum <keepdims = 0> (p) " +
                 nodes + "}")
          .graph();
  for (const auto& [key, value] : bindings) {
    auto& binding = *info.add_update_binding();
    binding.set_key(key);
    binding.set_value(value);
  }
  return proto;
}

const std::string kSgd = std::string(kGradient) + "s = Mul (R, dw) w2 = Sub (w, s) ";

std::vector<std::string> names(
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list) {
  std::vector<std::string> result;
  for (const auto& info : list) result.push_back(info.name());
  return result;
}

}  // namespace

TEST_CASE("an algorithm becomes part of the graph, without its Gradient nodes") {
  onnx::ModelProto proto = model_with(kSgd + "t2 = Add (t, one) ", {{"w", "w2"}, {"t", "t2"}});
  const TrainingAlgorithm algorithm = merge_algorithm(proto);
  CHECK(algorithm.loss == "loss");
  REQUIRE(algorithm.gradients.size() == 1);
  CHECK(algorithm.gradients[0].parameter == "w");
  CHECK(algorithm.gradients[0].gradient == "dw");
  REQUIRE(algorithm.updates.size() == 2);
  CHECK(algorithm.updates_state("t"));
  REQUIRE(algorithm.learning_rate);
  CHECK(algorithm.learning_rate->name() == "R");
  CHECK(algorithm.forward_values.empty());
  CHECK(names(proto.graph().input()) == std::vector<std::string>{"x"});
  CHECK(names(proto.graph().output()) == std::vector<std::string>{"p", "loss"});
  CHECK(proto.graph().node_size() == 5);
}

TEST_CASE("a file without an algorithm stays as it is") {
  onnx::ModelProto proto = model_with("", {});
  proto.mutable_training_info(0)->clear_algorithm();
  CHECK_FALSE(merge_algorithm(proto).present());
  CHECK(proto.graph().node_size() == 1);
}

TEST_CASE("values that cross from forward to update are found") {
  onnx::ModelProto proto = model_with("h = Mul (x, R) w2 = Sub (p, h) ", {{"w", "w2"}});
  const TrainingAlgorithm algorithm = merge_algorithm(proto);
  CHECK(algorithm.gradients.empty());
  CHECK(algorithm.forward_values == std::vector<std::string>{"p", "x"});
}

TEST_CASE("faulty algorithms name what is wrong") {
  const auto fault = [](onnx::ModelProto proto) -> std::string {
    try {
      merge_algorithm(proto);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(fault(model_with(kSgd, {{"v", "w2"}})),
             ContainsSubstring("\"v\": there is no initializer"));
  CHECK_THAT(fault(model_with(kSgd, {{"w", "q"}})), ContainsSubstring("nothing computes \"q\""));
  CHECK_THAT(fault(model_with(kSgd, {{"w", "w2"}, {"w", "s"}})), ContainsSubstring("given twice"));
  CHECK_THAT(fault(model_with(kSgd, {})), ContainsSubstring("update_binding is empty"));
  CHECK_THAT(
      fault(model_with(kSgd, {{"w", "w2"}}, "float[3] R")),
      ContainsSubstring("input \"R\"") && ContainsSubstring("a float scalar, the learning rate"));
  onnx::ModelProto broken = model_with(kSgd, {{"w", "w2"}});
  broken.mutable_training_info(0)->mutable_algorithm()->mutable_node(1)->clear_attribute();
  CHECK_THAT(fault(broken),
             ContainsSubstring("node \"dw\" (Gradient): attributes \"y\" and \"xs\""));
}

TEST_CASE("statistics that a BatchNormalization updates itself are left to it") {
  onnx::ModelProto proto = parse_onnx(
      std::string(kHeader) +
      "g (float[2, 1] x) => (float[2, 1] y) <float[1] s = {1}, float[1] b = {0}, "
      "float[1] mean = {0}, float[1] var = {1}> "
      "{ y, mean2, var2 = BatchNormalization <training_mode = 1> (x, s, b, mean, var) }");
  auto& info = *proto.add_training_info();
  *info.mutable_algorithm() =
      parse_onnx(std::string(kHeader) + "step () => (float[1] s2) { s2 = Identity (s) }").graph();
  for (const auto& [key, value] :
       {std::pair("s", "s2"), std::pair("mean", "mean2"), std::pair("var", "var2")}) {
    auto& binding = *info.add_update_binding();
    binding.set_key(key);
    binding.set_value(value);
  }
  const TrainingAlgorithm algorithm = merge_algorithm(proto);
  REQUIRE(algorithm.updates.size() == 1);
  CHECK(algorithm.updates[0].state == "s");
}

TEST_CASE("the update is imported behind the gradients, with states for what it updates") {
  Diagnostics diagnostics;
  const OnnxModel model =
      OnnxModel::from_proto(model_with(kSgd + "m2 = Add (m, dw) t2 = Add (t, one) ",
                                       {{"w", "w2"}, {"m", "m2"}, {"t", "t2"}}),
                            "m", ".", diagnostics);
  ImportOptions options;
  Differentiated result = differentiate(import_graph(model, options, diagnostics), diagnostics);
  const std::map<std::string, ValueId> gradients = {{"w", result.gradients.at(0).uses.at(0)}};
  const Graph graph = import_update(model, result.graph, gradients, diagnostics);
  verify(graph, "import_update");
  CHECK(graph.updates.size() == 3);
  CHECK(graph.value(graph.find("w")).role == StateRole::kParameter);
  CHECK(graph.value(graph.find("m")).role == StateRole::kMoment);
  CHECK(graph.value(graph.find("t")).role == StateRole::kMoment);
  CHECK(graph.value(graph.find("one")).kind == ValueKind::kConstant);
  CHECK(graph.find("learning_rate") != kNone);
  CHECK(graph.nodes.back().phase == Phase::kUpdate);
  CHECK(diagnostics.all().empty());
}

TEST_CASE("the initialization graph may compute") {
  onnx::ModelProto proto = model_with(kSgd, {{"w", "w2"}});
  auto& info = *proto.mutable_training_info(0);
  const auto initialize = [&info](const std::string& nodes) {
    *info.mutable_initialization() =
        parse_onnx(std::string(kHeader) + "start () => (float[2] w0) <float[2] c = {1, 2}> {" +
                   nodes + "}")
            .graph();
  };
  auto& binding = *info.add_initialization_binding();
  binding.set_key("w");
  binding.set_value("w0");
  const auto imported = [&proto] {
    Diagnostics diagnostics;
    const OnnxModel model = OnnxModel::from_proto(proto, "m", ".", diagnostics);
    return import_graph(model, {}, diagnostics);
  };
  initialize("d = Add (c, c) w0 = Mul (d, c)");
  const Graph graph = imported();
  const Initializer& initial = graph.value(graph.find("w")).initial;
  REQUIRE(initial.literal);
  CHECK(initial.literal->as_double(1) == 8);
  initialize("w0 = Concat <axis = 0> (c, c)");
  CHECK_THROWS_WITH(imported(),
                    ContainsSubstring("initial value of \"w\"") && ContainsSubstring("[4]"));
  initialize("w0 = Det (c)");
  CHECK_THROWS_WITH(imported(), ContainsSubstring("not supported") && ContainsSubstring("Det"));
  initialize("v = Neg (c)");
  CHECK_THROWS_WITH(imported(), ContainsSubstring("nothing computes \"w0\""));
}
