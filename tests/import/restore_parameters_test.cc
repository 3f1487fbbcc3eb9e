// Files as PyTorch's exporter leaves them: parameters merged, dropped and expanded, and the record
// of the calls they belonged to.
#include "import/restore_parameters.h"

#include "import/export_record.h"
#include "import/exported_file.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

// Two LayerNorms over [2], then the sum of all.
std::string two_norms(const std::string& second_scale) {
  return "g (float[3,2] x) => (float l) <float[2] w1 = {1, 1}, float[2] b1 = {0, 0}> {\n"
         "h = LayerNormalization (x, w1, b1)\n"
         "y = LayerNormalization (h, " +
         second_scale +
         ", b1)\n"
         "l = ReduceSum <keepdims = 0> (y) }";
}

const Names kNormNames = {"w1", "b1", "w2", "b2"};

}  // namespace

TEST_CASE("a recorded call is read") {
  onnx::NodeProto node;
  CHECK(!recorded_call(node));
  set_call(node, "layer_norm.default", "%x, [64, 2], %p_w, None, 1e-05, False");
  const std::optional<RecordedCall> call = recorded_call(node);
  REQUIRE(call);
  CHECK(call->op == "layer_norm");
  CHECK(call->arguments == Names{"%x", "[64, 2]", "%p_w", "None", "1e-05", "False"});
}

TEST_CASE("damaged records of calls are no calls") {
  for (const char* text :
       {"", "%v", "(args = (", "[target=torch.ops.aten.", "[target=other.add]"}) {
    onnx::NodeProto node;
    auto* entry = node.add_metadata_props();
    entry->set_key(kCallKey);
    entry->set_value(text);
    CHECK(!recorded_call(node));
  }
  onnx::NodeProto truncated;
  auto* entry = truncated.add_metadata_props();
  entry->set_key(kCallKey);
  entry->set_value("[target=torch.ops.aten.add](args = (%x, (%y");
  CHECK(recorded_call(truncated)->arguments == Names{"%x"});
}

TEST_CASE("the padding of a recorded embedding") {
  const auto padding = [](const std::string& op, const std::string& arguments) {
    onnx::NodeProto node;
    set_call(node, op, arguments);
    return recorded_padding(node).value_or(-7);
  };
  CHECK(padding("embedding.default", "%p_w, %ids, 3") == 3);
  CHECK(padding("embedding.default", "%p_w, %ids, 0") == 0);
  CHECK(padding("embedding.default", "%p_w, %ids") == -7);
  CHECK(padding("embedding.default", "%p_w, %ids, -1") == -7);
  CHECK(padding("embedding.default", "%p_w, %ids, %n") == -7);
  CHECK(padding("gather.default", "%p_w, 0, 3") == -7);
}

TEST_CASE("merged scales and biases are parameters of their own again") {
  Exported file(two_norms("w1"), kNormNames,
                {"layer_norm.default: %x, [2], %p_w1, %p_b1, 1e-05",
                 "layer_norm.default: %h, [2], %p_w2, %p_b2, 1e-05", ""});
  const Graph graph = file.import();
  CHECK(parameters_of(graph) == Names{"b1", "b2", "w1", "w2"});
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0].text.find("2 tensors that the exporter had merged") == 0);
  CHECK(graph.value(graph.find("w2")).initial.literal->as_double(1) == 1);
}

TEST_CASE("merged tensors whose sizes overflow are refused") {
  Exported file(two_norms("w1"), kNormNames,
                {"layer_norm.default: %x, [2], %p_w1, %p_b1, 1e-05",
                 "layer_norm.default: %h, [2], %p_w2, %p_b2, 1e-05", ""});
  onnx::TensorProto* scale = file.proto.mutable_graph()->mutable_initializer(0);
  REQUIRE(scale->name() == "w1");
  scale->set_dims(0, INT64_MAX);
  scale->add_dims(2);
  CHECK_THROWS_WITH(file.import(), Catch::Matchers::ContainsSubstring("w1"));
}

TEST_CASE("a parameter that the record names at both uses stays tied") {
  Exported file(two_norms("w1"), kNormNames,
                {"layer_norm.default: %x, [2], %p_w1, %p_b1, 1e-05",
                 "layer_norm.default: %h, [2], %p_w1, %p_b1, 1e-05", ""});
  CHECK(parameters_of(file.import()) == Names{"b1", "w1"});
  CHECK(file.warnings.empty());
}

TEST_CASE("merged tensors stay as they are where the record tells nothing") {
  Exported file(two_norms("w1"), kNormNames,
                {"layer_norm.default: %x, [2], %p_w1, %p_b1, 1e-05", "", ""});
  CHECK(parameters_of(file.import()) == Names{"b1", "w1"});
}

TEST_CASE("a file without the exporter's record stays as it is") {
  Exported file(two_norms("w1"), {}, {});
  file.proto.mutable_graph()->clear_metadata_props();
  CHECK(parameters_of(file.import()) == Names{"b1", "w1"});
}

TEST_CASE("the bias of a matrix product is separated from a normalization's") {
  Exported file(
      "g (float[3,2] x) => (float l) <float[2] w1 = {1, 1}, float[2] b1 = {0, 0},\n"
      "float[2,2] m = {1, 2, 3, 4}> {\n"
      "h = LayerNormalization (x, w1, b1)\nu = MatMul (h, m)\ny = Add (u, b1)\n"
      "l = ReduceSum <keepdims = 0> (y) }",
      {"w1", "b1", "m", "b2"},
      {"layer_norm.default: %x, [2], %p_w1, %p_b1, 1e-05", "linear.default: %h, %p_m, %p_b2",
       "linear.default: %h, %p_m, %p_b2", ""});
  CHECK(parameters_of(file.import()) == Names{"b1", "b2", "m", "w1"});
}

TEST_CASE("a normalization that took the place of a product holds the product's scale") {
  Exported file(
      "g (float[3,2] x) => (float l) <float[2] w1 = {1, 1}> {\n"
      "h = RMSNormalization (x, w1)\ny = RMSNormalization (h, w1)\n"
      "l = ReduceSum <keepdims = 0> (y) }",
      {"w1", "w2"}, {"mul.Tensor: %p_w1, %mul_1", "mul.Tensor: %p_w2, %mul_2", ""});
  file.proto.mutable_opset_import(0)->set_version(23);
  CHECK(parameters_of(file.import()) == Names{"w1", "w2"});
}

TEST_CASE("a constant that was merged with a parameter stays a constant") {
  Exported file(
      "g (float[3,2] x) => (float l) <float[2] k = {2, 2}> {\n"
      "h = Mul (x, k)\ny = Mul (h, k)\nl = ReduceSum <keepdims = 0> (y) }",
      {"s"}, {"mul.Tensor: %x, 2.0", "mul.Tensor: %p_s, %h", ""});
  const Graph graph = file.import();
  CHECK(parameters_of(graph) == Names{"s"});
  CHECK(graph.value(graph.find("k")).kind == ValueKind::kConstant);
}

TEST_CASE("merged tensors that were computed from parameters keep that record") {
  Exported file(
      "g (float[3,2] x) => (float l) <float[2,1] v1 = {1, 1}, float[2,2] w = {1, 2, 3, 4}> {\n"
      "h = MatMul (x, v1)\nu = MatMul (x, v1)\ny = Add (h, u)\nl = ReduceSum <keepdims = 0> (y) }",
      {"a", "b"}, {"linear.default: %x, %p_a", "linear.default: %x, %p_b", "", ""});
  CHECK(parameters_of(file.folded("v1", "['a']").import()) == Names{"b_v1", "v1"});
}

namespace {

// Two products with one initializer, which the record derives from a parameter of module "m.a".
Exported merged_scales(const std::string& second_module) {
  Exported file(
      "g (float[3,2] x) => (float l) <float[2] v = {2, 2}> {\n"
      "h = Mul (x, v)\ny = Mul (h, v)\nl = ReduceSum <keepdims = 0> (y) }",
      {"m.a.scale", "m.b.scale"}, {"mul.Tensor: %x, %add", "mul.Tensor: %h, %add_1", ""});
  file.folded("v", "['m.a.scale', 'val_1']");
  set_module(*file.proto.mutable_graph()->mutable_node(0), "m.a");
  set_module(*file.proto.mutable_graph()->mutable_node(1), second_module);
  return file;
}

}  // namespace

TEST_CASE("the module of a call tells which parameter a computed tensor stands for") {
  const Graph graph = merged_scales("m.b").import();
  CHECK(parameters_of(graph) == Names{"m.b.scale_v", "v"});
  CHECK(graph.value(graph.find("m.b.scale_v")).initial.literal->as_double(0) == 2);
}

TEST_CASE("a computed tensor stays shared where its module has no other parameter") {
  CHECK(parameters_of(merged_scales("m.a").import()) == Names{"v"});
  CHECK(parameters_of(merged_scales("m.c").import()) == Names{"v"});
  CHECK(parameters_of(merged_scales("").import()) == Names{"v"});
}

TEST_CASE("the module of a recorded call") {
  onnx::NodeProto node;
  CHECK(recorded_module(node).empty());
  set_module(node, "m.a");
  CHECK(recorded_module(node) == "m.a");
  for (const char* text : {"", "[]", "['", "['mul']"}) {
    node.mutable_metadata_props(0)->set_value(text);
    CHECK(recorded_module(node).empty());
  }
}

TEST_CASE("biases that were dropped as zero are parameters again") {
  Exported file(
      "g (float[3,2] x, float[1,2,4,4] i) => (float l)\n"
      "<float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[3,2,1,1] c = {1, 2, 3, 4, 5, 6}> {\n"
      "y = Gemm <transB = 1> (x, w)\nz = Conv (i, c)\n"
      "s = ReduceSum <keepdims = 0> (y)\nt = ReduceSum <keepdims = 0> (z)\nl = Add (s, t) }",
      {"w", "wb", "c", "cb"},
      {"addmm.default: %p_wb, %x, %t", "conv2d.default: %i, %p_c, %p_cb, [1, 1]", "", "", ""});
  const Graph graph = file.import();
  CHECK(parameters_of(graph) == Names{"c", "cb", "w", "wb"});
  CHECK(graph.shape(graph.find("wb")) == Shape{4});
  CHECK(graph.shape(graph.find("cb")) == Shape{3});
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0].text.find("2 tensors") == 0);
}

TEST_CASE("a convolution without bias gets none") {
  Exported file(
      "g (float[1,2,4,4] i) => (float l) <float[3,2,1,1] c = {1, 2, 3, 4, 5, 6}> {\n"
      "z = Conv (i, c)\nl = ReduceSum <keepdims = 0> (z) }",
      {"c"}, {"conv2d.default: %i, %p_c, None, [1, 1]", ""});
  CHECK(parameters_of(file.import()) == Names{"c"});
}

TEST_CASE("an expanded parameter is trained as one row") {
  Exported file(
      "g (float[2,3] x) => (float l) <float[2,3] expand = {1, 2, 3, 1, 2, 3}> {\n"
      "y = Mul (x, expand)\nl = ReduceSum <keepdims = 0> (y) }",
      {"token"}, {});
  const Graph graph = file.folded("expand", "['token', 'val_1']").import();
  REQUIRE(parameters_of(graph) == Names{"token_expand"});
  CHECK(graph.shape(graph.find("token_expand")) == Shape{1, 3});
  CHECK(run(graph, {{"x", {1, 1, 1, 2, 2, 2}}}).at("l") == std::vector<double>{18});
}

TEST_CASE("looked-up rows that differ stay as they are") {
  Exported file(
      "g (float[2,3] x) => (float l) <float[2,3] embedding = {1, 2, 3, 1, 2, 4}> {\n"
      "y = Mul (x, embedding)\nl = ReduceSum <keepdims = 0> (y) }",
      {"table"}, {});
  const Graph graph = file.folded("embedding", "['table']").import();
  CHECK(parameters_of(graph) == Names{"embedding"});
}

TEST_CASE("of an expanded parameter of equal elements the first dimension is the repeated one") {
  Exported file(
      "g (float[2,3] x) => (float l) <float[2,3] expand_4 = {0, 0, 0, 0, 0, 0}> {\n"
      "y = Mul (x, expand_4)\nl = ReduceSum <keepdims = 0> (y) }",
      {"token"}, {});
  const Graph graph = file.folded("expand_4", "['token']").import();
  CHECK(graph.shape(graph.find("token_expand_4")) == Shape{1, 3});
}

TEST_CASE("a norm's scale of ones is no expanded copy") {
  Exported file(
      "g (float[2,3] x) => (float l) <float[2,1] val_2 = {1, 1}> {\n"
      "y = Mul (x, val_2)\nl = ReduceSum <keepdims = 0> (y) }",
      {"scale"}, {});
  const Graph graph = file.folded("val_2", "['scale', 'val_1']").import();
  CHECK(graph.shape(graph.find("val_2")) == Shape{2, 1});
}

namespace {

const char* kLookup =
    "g (int64[3] ids) => (float l) <float[4,2] table = {1, 2, 3, 4, 5, 6, 7, 8}> {\n"
    "y = Gather (table, ids)\nl = ReduceSum <keepdims = 0> (y) }";

int64_t padding_in(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kGather) return node.attributes.integer_or("padding", -1);
  }
  return -1;
}

}  // namespace

TEST_CASE("a recorded padding row becomes the gather's") {
  CHECK(padding_in(
            Exported(kLookup, {"table"}, {"embedding.default: %p_table, %ids, 2", ""}).import()) ==
        2);
  CHECK(padding_in(
            Exported(kLookup, {"table"}, {"embedding.default: %p_table, %ids", ""}).import()) ==
        -1);
}

TEST_CASE("a padding row can be given for a tensor") {
  ImportOptions options;
  options.padding_index = {{"table", 1}};
  Diagnostics diagnostics;
  CHECK(padding_in(import_graph(model_of(kLookup), options, diagnostics)) == 1);
  options.padding_index = {{"table", 4}};
  CHECK(import_error(model_of(kLookup), options).find("expected attribute padding from 0 to 3") !=
        std::string::npos);
  options.padding_index = {{"tabel", 1}};
  CHECK(import_error(model_of(kLookup), options)
            .find("--padding-index tabel=1: no Gather looks up "
                  "rows of an initializer of that name") != std::string::npos);
}
