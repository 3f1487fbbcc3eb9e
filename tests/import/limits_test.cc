// What a file may ask for: numbers, sizes and nesting beyond the limits are errors that name them.
#include "ir/limits.h"

#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

// A model of functions in which each calls the next twice; the last is the identity.
onnx::ModelProto doubling_functions(int depth) {
  std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21, \"own\" : 1]> "
      "g (float[2] x) => (float[2] y) { y = own.f0 (x) }";
  for (int i = 0; i + 1 < depth; ++i) {
    const std::string next = "own.f" + std::to_string(i + 1);
    text += " <domain: \"own\", opset_import: [\"\" : 21, \"own\" : 1]> f" + std::to_string(i) +
            " (a) => (c) { b = " + next + " (a) c = " + next + " (b) }";
  }
  text += " <domain: \"own\", opset_import: [\"\" : 21]> f" + std::to_string(depth - 1) +
          " (a) => (b) { b = Identity (a) }";
  return parse_onnx(text);
}

std::string error_with_limit(const std::string& graph, int64_t most) {
  ImportOptions options;
  options.training = false;
  options.max_tensors = most;
  return import_error(model_of(graph), options);
}

std::string looping(const std::string& trips) {
  return "g (float[2] x) => (float[2] y) <int64 n = {" + trips + R"(}> {
      y = Loop <body =
        body (int64 i, bool before, float[2] v) => (bool after, float[2] next) {
          after = Identity (before)
          next = Neg (v)
        }> (n, "", x)
    })";
}

}  // namespace

TEST_CASE("loops are unrolled up to the limit on tensors") {
  CHECK(error_with_limit(looping("100"), 1000).empty());
  const std::string error = error_with_limit(looping("1000"), 1000);
  CHECK_THAT(error, ContainsSubstring("more than 1000 tensors") &&
                        ContainsSubstring("fewer iterations") &&
                        ContainsSubstring("node \"y\" (Loop)"));
  CHECK(error.find('\n') == std::string::npos);
}

TEST_CASE("a loop that never ends is unrolled in time that grows with the limit") {
  const std::string text = R"(
    g (float[2] x) => (float[2] y) {
      y = Loop <body =
        body (int64 i, bool before, float[2] v) => (bool after, float[2] next) {
          after = Identity (before)
          next = Neg (v)
        }> ("", "", x)
    })";
  // With a search for free names from the first on it would be ten minutes.
  CHECK_THAT(error_with_limit(text, 150'000), ContainsSubstring("more than 150000 tensors"));
}

TEST_CASE("texts of attributes that are too long are named by their length") {
  const std::string error =
      import_error("g (float[2] x) => (float[2] y) { y = Einsum <equation = \"" +
                   std::string(5000, 'a') + "\"> (x) }");
  CHECK_THAT(error, ContainsSubstring("attribute \"equation\": expected at most 4096 characters, "
                                      "found 5000"));
}

TEST_CASE("recurrences are unrolled up to the limit on tensors") {
  const std::string text = R"(
    g (float[2000, 1, 2] x, float[1, 2, 2] w, float[1, 2, 2] r) => (float[2000, 1, 1, 2] y) {
      y = RNN <hidden_size = 2> (x, w, r)
    })";
  CHECK_THAT(error_with_limit(text, 1000), ContainsSubstring("more than 1000 tensors"));
}

TEST_CASE("functions that call others twice are opened up to the limit on nodes") {
  Diagnostics diagnostics;
  ImportOptions options;
  options.training = false;
  options.max_tensors = 10'000;
  const OnnxModel shallow = OnnxModel::from_proto(doubling_functions(10), "m", ".", diagnostics);
  CHECK(import_error(shallow, options).empty());
  const OnnxModel deep = OnnxModel::from_proto(doubling_functions(60), "m", ".", diagnostics);
  CHECK_THAT(import_error(deep, options), ContainsSubstring("more than 10000 nodes"));
}

TEST_CASE("functions are nested up to the limit on depth") {
  Diagnostics diagnostics;
  ImportOptions options;
  options.training = false;
  onnx::ModelProto model = doubling_functions(70);
  for (auto& function : *model.mutable_functions()) {
    if (function.node_size() == 2) function.mutable_node()->RemoveLast();
    function.mutable_node(0)->set_output(0, function.output(0));
  }
  CHECK_THAT(import_error(OnnxModel::from_proto(model, "m", ".", diagnostics), options),
             ContainsSubstring("nested more than 64 deep"));
}

TEST_CASE("names of nested functions are limited together") {
  Diagnostics diagnostics;
  ImportOptions options;
  options.training = false;
  onnx::ModelProto model = doubling_functions(4);
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node()) node.set_name(std::string(4000, 'n'));
  }
  CHECK_THAT(import_error(OnnxModel::from_proto(model, "m", ".", diagnostics), options),
             ContainsSubstring("more than 4096 characters"));
}

TEST_CASE("inputs and initializers that are too large are named") {
  CHECK_THAT(import_error("g (float[1099511627776] x) => (float[1] y) { y = Neg (x) }"),
             ContainsSubstring("input \"x\": a tensor") && ContainsSubstring("bytes, the limit"));
  Diagnostics diagnostics;
  onnx::ModelProto model = parse_onnx(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (float[2] x) => (float[2] y) { y = Add (x, w) "
      "}");
  auto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(INT64_MAX);
  CHECK_THAT(
      import_error(OnnxModel::from_proto(model, "m", ".", diagnostics)),
      ContainsSubstring("initializer \"w\": a tensor") && ContainsSubstring("bytes, the limit"));
}

TEST_CASE("a node whose result is too large is named") {
  CHECK_THAT(import_error("g (float[16777216, 1] x) => (float[1] y) { t = Transpose (x) "
                          "m = MatMul (x, t) y = ReduceSum (m) }"),
             ContainsSubstring("\"m\" (MatMul): matmul: a tensor") &&
                 ContainsSubstring("bytes, the limit"));
}

TEST_CASE("numbers that nothing could have are refused before anything is computed from them") {
  const auto error = [](const std::string& body, int opset = 21) {
    return import_error("g (float[2, 3] x) => (float[N] y) " + body, opset);
  };
  CHECK_THAT(error("<int64[2] r = {9223372036854775807, 2}> { y = Tile (x, r) }"),
             ContainsSubstring("a repeat: expected 0 to 1048576"));
  CHECK_THAT(error("<int64[4] p = {0, 0, 9223372036854775807, 0}> { y = Pad (x, p) }"),
             ContainsSubstring("a pad: expected -1048576 to 1048576"));
  CHECK_THAT(error("{ y = Split <axis = 1, num_outputs = 9223372036854775807> (x) }"),
             ContainsSubstring("the number of parts"));
  CHECK_THAT(error("<int64[2] s = {3037000500, 3037000500}> { y = Reshape (x, s) }"),
             ContainsSubstring("more than 2^63 elements"));
  CHECK_THAT(error("<int64[3] s = {9223372036854775807, 9223372036854775807, 2}> "
                   "{ y = Reshape (x, s) }"),
             ContainsSubstring("2^63"));
  CHECK_THAT(error("<int64 a = {0}, int64 b = {9223372036854775807}, int64 c = {-1}> "
                   "{ r = Range (b, a, c) y = Cast <to = 1> (r) }"),
             ContainsSubstring("bytes, the limit"));
  CHECK_THAT(error("<int64 a = {-9223372036854775807}, int64 b = {9223372036854775807}, "
                   "int64 c = {1}> { r = Range (a, b, c) y = Cast <to = 1> (r) }"),
             ContainsSubstring("is too long"));
  CHECK_THAT(error("<float a = {0}, float b = {1e30}, float c = {0.001}> { y = Range (a, b, c) }"),
             ContainsSubstring("is too long"));
}

TEST_CASE("resizing to nothing gives nothing and resizing to too much is refused") {
  const std::string head = "g (float[1, 1, 3, 3] x) => (float[N] y) ";
  CHECK(import_error(head + "<float[4] s = {1, 1, 0.1, 1}> { y = Resize <mode = \"linear\"> (x, , "
                            "s) }")
            .empty());
  CHECK_THAT(import_error(head + "<float[4] s = {1, 1, 1e20, 1}> { y = Resize (x, , s) }"),
             ContainsSubstring("a resized axis: expected 0 to"));
  CHECK_THAT(import_error(head + "<float[4] s = {1, 1, 1e-9, 1}> "
                                 "{ y = Resize <mode = \"linear\", antialias = 1> (x, , s) }"),
             !ContainsSubstring("internal"));
}
