// Feeds, dimensions, losses, trained tensors, functions, branches.
#include "import/import.h"

#include "import/helper.h"
#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Conv, BatchNormalization, Reshape by an integer initializer, Gemm, loss; and an unused tensor.
const char* const kClassifier = R"(
  g (float[2,1,2] x, int64[2] labels) => (float loss)
  <float[1,1,1] conv = {2}, float[1] scale = {1}, float[1] bias = {0}, float[1] mean = {0},
   float[1] var = {1}, int64[2] shape = {2, 2}, float[2,2] fc = {1, 2, 3, 4},
   float[3] spare = {1, 2, 3}>
  {
    c = Conv (x, conv)
    n, next_mean, next_var = BatchNormalization <training_mode = 1> (c, scale, bias, mean, var)
    r = Reshape (n, shape)
    logits = Gemm (r, fc)
    loss = SoftmaxCrossEntropyLoss (logits, labels)
  })";

std::map<std::string, StateRole> roles_of(const Graph& graph) {
  std::map<std::string, StateRole> roles;
  for (ValueId id : graph.states) roles[graph.value(id).name] = graph.value(id).role;
  return roles;
}

Graph import_classifier(const ImportOptions& options, Diagnostics& diagnostics) {
  return import_graph(model_of(kClassifier), options, diagnostics);
}

}  // namespace

TEST_CASE("inputs and outputs named twice are refused") {
  CHECK(import_error("g (float[2] x, float[2] x) => (float[2] y) { y = Neg (x) }") ==
        "input \"x\": the name is given twice");
  CHECK(import_error("g (float[2] x) => (float[2] y, float[2] y) { y = Neg (x) }") ==
        "output \"y\": the name is given twice");
}

TEST_CASE("inputs and outputs without a name are refused") {
  onnx::ModelProto proto = parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> "
      "g (float[2] x, float[2] z) => (float[2] y, float[2] u) { y = Neg (x) u = Neg (z) }");
  proto.mutable_graph()->mutable_input(1)->set_name("");
  proto.mutable_graph()->mutable_output(1)->set_name("");
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "m", ".", diagnostics);
  const std::string error = import_error(model);
  CHECK(has(error, "input \"\": the input has no name; give it one"));
  CHECK(has(error, "output \"\": the output has no name; give it one"));
}

TEST_CASE("float tensors with a path to the loss are trained") {
  Diagnostics diagnostics;
  const Graph graph = import_classifier({}, diagnostics);
  verify(graph, "import");
  const std::map<std::string, StateRole> expected = {
      {"conv", StateRole::kParameter}, {"scale", StateRole::kParameter},
      {"bias", StateRole::kParameter}, {"mean", StateRole::kStatistic},
      {"var", StateRole::kStatistic},  {"fc", StateRole::kParameter}};
  CHECK(roles_of(graph) == expected);
  CHECK(graph.updates.size() == 2);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].object == "initializer \"spare\"");
  CHECK(has(diagnostics.all()[0].text, "no node uses it"));
}

TEST_CASE("patterns choose what is trained") {
  Diagnostics diagnostics;
  ImportOptions options;
  options.train = {"conv", "[bs]*"};
  options.freeze = {"bias"};
  const auto roles = roles_of(import_classifier(options, diagnostics));
  CHECK(roles.at("conv") == StateRole::kParameter);
  CHECK(roles.at("scale") == StateRole::kParameter);
  CHECK(roles.at("bias") == StateRole::kFrozen);
  CHECK(roles.at("fc") == StateRole::kFrozen);
}

TEST_CASE("asking for a tensor that cannot be trained is an error with the reason") {
  const auto error = [](const std::string& pattern) {
    ImportOptions options;
    options.train = {pattern};
    return import_error(model_of(kClassifier), options);
  };
  CHECK(error("mean") ==
        "--train mean: the tensor cannot be trained: it is a running statistic of "
        "BatchNormalization");
  CHECK(error("shape") ==
        "--train shape: the tensor cannot be trained: its elements are i64, not floats");
  CHECK(error("spare") == "--train spare: the tensor cannot be trained: no node uses its values");
  CHECK(error("nothing*") == "--train nothing*: matches no initializer of the model");
}

TEST_CASE("initializers that are inputs too are weights, and constants are not fed") {
  const onnx::ModelProto proto = parse_onnx(
      "<ir_version: 4, opset_import: [\"\" : 12]> "
      "g (float[1,2] x, float[2,1] w) => (float[1,1] loss) <float[2,1] w = {1, 2}> "
      "{ loss = MatMul (x, w) }");
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "m", ".", diagnostics);
  const Graph graph = import_graph(model, {}, diagnostics);
  CHECK(graph.feeds.size() == 1);
  REQUIRE(graph.states.size() == 1);
  CHECK(graph.value(graph.states[0]).role == StateRole::kParameter);
  CHECK(graph.shape(graph.outputs[0].value).empty());
  CHECK(graph.micro_batch_rows == 1);
}

TEST_CASE("a tied weight is one state") {
  const Graph graph = import_text(R"(
    g (float[2,2] x) => (float loss) <float[2,2] w = {1, 2, 3, 4}> {
      a = MatMul (x, w)
      t = Transpose (w)
      same = Identity (t)
      b = MatMul (a, same)
      loss = ReduceSum <keepdims = 0> (b)
    })",
                                  21, true);
  CHECK(graph.states.size() == 1);
}

TEST_CASE("symbolic dimensions are bound or asked for") {
  const OnnxModel model = model_of(
      "g (float[B,3] x, float[?] z) => (float loss) "
      "{ s = Shape (x) t = Size (x) f = Cast <to = 1> (t) a = ReduceSum <keepdims = 0> (z) "
      "loss = Add (f, a) }");
  CHECK(import_error(model) ==
        "input \"x\": dimension 0 (\"B\") has no size; give it with --dim B=N\n"
        "input \"z\": dimension 0 (\"z_dim0\") has no size; give it with --dim z_dim0=N");
  ImportOptions options;
  options.dims = {{"B", 4}, {"z_dim0", 2}};
  Diagnostics diagnostics;
  const Graph graph = import_graph(model, options, diagnostics);
  CHECK(graph.micro_batch_rows == 4);
  CHECK(run(graph, {{"z", {1, 2}}}).at("loss") == std::vector<double>{15});
  options.dims["C"] = 1;
  CHECK(import_error(model, options) ==
        "--dim C=1: the model has no symbolic dimension of that name; it has B, z_dim0");
}

TEST_CASE("the loss is the only scalar float output or the named one") {
  const OnnxModel two = model_of(
      "g (float[2] x) => (float[2] y, float a, float b) "
      "{ y = Exp (x) a = ReduceSum <keepdims = 0> (x) b = ReduceMax <keepdims = 0> (x) }");
  CHECK(has(import_error(two), "several outputs are scalar floats; name the loss with --loss"));
  ImportOptions options;
  options.loss = "b";
  Diagnostics diagnostics;
  const Graph graph = import_graph(two, options, diagnostics);
  REQUIRE(graph.outputs.size() == 3);
  CHECK(graph.outputs[0].name == "b");
  CHECK(graph.outputs[1].name == "y");
  options.loss = "y";
  CHECK(
      has(import_error(two, options), "--loss y: expected a scalar float, found f32 of shape [2]"));
  options.loss = "q";
  CHECK(has(import_error(two, options), "no output of that name; its outputs are \"y\", \"a\""));
}

TEST_CASE("all unsupported nodes are listed at once") {
  const std::string error = import_error(
      "g (float[2,2] x) => (float loss) { d = Det (x) e = org.acme.Foo (d) f = Det (x) "
      "loss = Add (e, f) }");
  CHECK(has(error, "3 nodes have operators that are not supported:"));
  CHECK(has(error,
            "node \"d\" (Det), domain ai.onnx, version 21; --on-unsupported=fallback computes it "
            "slowly"));
  CHECK(has(error, "node \"e\" (Foo), domain org.acme, version 1"));
}

TEST_CASE("an operator without kernel runs slowly where that is accepted, and its cost is named") {
  const OnnxModel model = model_of("g (float[2,2] x) => (float d) { d = Det (x) }");
  ImportOptions options;
  options.training = false;
  options.accepts_slow = true;
  Diagnostics diagnostics;
  const Graph graph = import_graph(model, options, diagnostics);
  CHECK(run(graph, {{"x", {1, 2, 3, 5}}}).at("d") == std::vector<double>{-1});
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].object == "node \"d\" (Det)");
  CHECK(has(diagnostics.all()[0].text, "per micro-batch, where a kernel would write 1"));
}

TEST_CASE("an output that is not the loss may need unsupported nodes") {
  Diagnostics diagnostics;
  ImportOptions options;
  options.loss = "loss";
  const Graph graph =
      import_graph(model_of("g (float[2,2] x) => (float[1] d, float loss) "
                            "{ loss = ReduceSum <keepdims = 0> (x) d = org.acme.Foo (x) }"),
                   options, diagnostics);
  CHECK(graph.outputs.size() == 1);
  REQUIRE(!diagnostics.all().empty());
  CHECK(diagnostics.all()[0].object == "output \"d\"");
}

TEST_CASE("errors of several nodes are collected and dependents are not reported") {
  const std::string error = import_error(
      "g (float[2] x, float[3] z) => (float loss) { a = Add (x, z) b = Exp (a) c = MatMul (x, z) "
      "d = Add (b, c) loss = ReduceSum <keepdims = 0> (d) }");
  CHECK(has(error, "node \"a\" (Add): "));
  CHECK(has(error, "node \"c\" (MatMul): "));
  CHECK(!has(error, "node \"b\""));
}

TEST_CASE("nodes need not be sorted, cycles are refused") {
  CHECK(output_of("g (float[1] x) => (float[1] y) { y = Exp (z) z = Neg (x) }", {{"x", {0}}}) ==
        std::vector<double>{1});
  CHECK(has(import_error("g (float[1] x) => (float[1] y) { y = Exp (z) z = Neg (y) }"),
            "needs its own result"));
}

TEST_CASE("functions of the model and of ONNX are opened") {
  const onnx::ModelProto proto = parse_onnx(R"(
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[2] x) => (float[2] y) { y = local.scaled <factor = 3.0> (x) }
    <domain: "local", opset_import: ["" : 21]>
    scaled <factor> (a) => (b)
    { f = Constant <value_float : float = @factor> () b = Mul (a, f) })");
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "m", ".", diagnostics);
  ImportOptions options;
  options.training = false;
  const Graph graph = import_graph(model, options, diagnostics);
  CHECK(run(graph, {{"x", {1, 2}}}).at("y") == std::vector<double>{3, 6});
  CHECK(graph.nodes.at(0).sources == std::vector<std::string>{"y/b"});
  const Graph normalized = import_text(
      "g (float[2,1,1,1] x) => (float[2,1,1,1] y) { y = MeanVarianceNormalization (x) }");
  CHECK(close(run(normalized, {{"x", {1, 3}}}).at("y"), {-1, 1}));
}

TEST_CASE("a branch on a constant condition takes its branch") {
  const std::string text = R"(
    g (float[1] x) => (float y) {
      s = Shape (x)
      n = Size (s)
      one = Constant <value_int = 1> ()
      c = Equal (n, one)
      y = If (c) <then_branch = g1 () => (float a) { a = Squeeze (x) },
                  else_branch = g2 () => (float b) { b = Identity (x) }>
    })";
  const Graph graph = import_text(text);
  REQUIRE(graph.nodes.size() == 1);
  CHECK(graph.nodes[0].op == Op::kReshape);
  CHECK(has(import_error("g (bool c, float x) => (float y) { y = If (c) <then_branch = g1 () => "
                         "(float a) { a = Neg (x) }, else_branch = g2 () => (float b) "
                         "{ b = Exp (x) }> }"),
            "the condition of an If (input 0) must be known"));
}

TEST_CASE("training information chooses and fills the parameters") {
  onnx::ModelProto proto = parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> "
      "g (float[2] x) => (float loss) <float[2] b = {1, 2}> "
      "{ a = Mul (x, w) c = Add (a, b) loss = ReduceSum <keepdims = 0> (c) }");
  auto& sparse = *proto.mutable_graph()->add_sparse_initializer();
  sparse.mutable_values()->set_name("w");
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(0);
  sparse.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  sparse.mutable_indices()->add_dims(0);
  sparse.add_dims(2);
  auto& info = *proto.add_training_info();
  const onnx::ModelProto fill = parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> init () => (float[2] w0) "
      "{ w0 = RandomNormal <shape = [2], mean = 1.0, scale = 0.5, seed = 3.0> () }");
  *info.mutable_initialization() = fill.graph();
  auto& binding = *info.add_initialization_binding();
  binding.set_key("w");
  binding.set_value("w0");
  auto& update = *info.add_update_binding();
  update.set_key("w");
  update.set_value("w_new");
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "m", ".", diagnostics);
  const Graph graph = import_graph(model, {}, diagnostics);
  const Value& w = graph.value(graph.find("w"));
  CHECK(w.role == StateRole::kParameter);
  CHECK(w.initial.kind == Initializer::Kind::kRandomNormal);
  CHECK(w.initial.a == 1);
  CHECK(w.initial.b == 0.5);
  CHECK(w.initial.seed == 3);
  CHECK(graph.value(graph.find("b")).role == StateRole::kFrozen);
}

TEST_CASE("intermediate values never take the name of a state") {
  onnx::ModelProto proto = parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> "
      "g (float[1] x) => (float loss) <float[1] w = {2}> "
      "{ loss = Gelu (x) last = Mul (loss, w) }");
  proto.mutable_graph()->mutable_initializer(0)->set_name("loss.1");
  proto.mutable_graph()->mutable_node(1)->set_input(1, "loss.1");
  proto.mutable_graph()->mutable_output(0)->set_name("last");
  Diagnostics diagnostics;
  const OnnxModel model = OnnxModel::from_proto(proto, "m", ".", diagnostics);
  const Graph graph = import_graph(model, {}, diagnostics);
  REQUIRE(graph.states.size() == 1);
  CHECK(graph.value(graph.states[0]).name == "loss.1");
  const OnnxModel reserved = model_of(
      "g (float[1] step) => (float loss) "
      "{ loss = ReduceSum <keepdims = 0> (step) }");
  CHECK(has(import_error(reserved), "must not be called learning_rate, seed or step"));
}
