// Operands whose rows have an odd length.
#include "passes/gpu/align_products.h"

#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

std::string aligned(const std::string& text) {
  const Graph graph = gpu::align_products(parse_graph(text));
  verify(graph, "align-products");
  return to_text(graph);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether the pass leaves a product of these operands as it is.
bool stays(const std::string& operands_and_product) {
  return !contains(aligned(operands_and_product + "\noutput \"y\" %y"), "pad(");
}

}  // namespace

TEST_CASE("an odd depth is padded in both operands") {
  const std::string text = aligned(
      "feed %g: bf16[4096,50257]\nfeed %w: bf16[50257,768]\n%y = matmul(%g, %w)\noutput \"y\" %y");
  CHECK(contains(text, "bf16[4096,50264] = pad(%g"));
  CHECK(contains(text, "bf16[50264,768] = pad(%w"));
  CHECK(contains(text, "bf16[4096,768] = matmul("));
  CHECK_FALSE(contains(text, "slice"));
}

TEST_CASE("odd rows and columns are padded where they are contiguous, and cut from the result") {
  const std::string text = aligned(
      "feed %g: bf16[4096,50257]\nfeed %x: bf16[4096,77]\n%y = matmul(%g, %x) {transpose_a=1}\n"
      "output \"y\" %y");
  CHECK(contains(text, "bf16[4096,50264] = pad(%g"));
  CHECK(contains(text, "bf16[4096,80] = pad(%x"));
  CHECK(contains(text, "bf16[50264,80] = matmul("));
  CHECK(contains(text, "bf16[50257,77] = slice("));
}

TEST_CASE("what the copy engine reads, small products and other types stay") {
  CHECK(
      stays("feed %x: bf16[4096,768]\nfeed %w: bf16[50257,768]\n"
            "%y = matmul(%x, %w) {transpose_b=1}"));
  CHECK(stays("feed %x: bf16[5,7]\nfeed %w: bf16[7,3]\n%y = matmul(%x, %w)"));
  CHECK(stays("feed %x: f32[4096,767]\nfeed %w: f32[767,768]\n%y = matmul(%x, %w)"));
}

TEST_CASE("values stay the same") {
  const Graph before = parse_graph(
      "feed %x: bf16[2,301,77]\nfeed %w: bf16[2,77,3001]\n%y = matmul(%x, %w)\noutput \"y\" %y");
  const Graph after = gpu::align_products(before);
  REQUIRE(contains(to_text(after), "pad("));
  std::vector<double> results[2];
  for (const Graph* graph : {&before, &after}) {
    Interpreter interpreter(*graph);
    for (const char* name : {"x", "w"}) {
      std::vector<double> values;
      const int64_t count = element_count(graph->shape(graph->find(name)));
      for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i % 13) - 6);
      interpreter.set(name, values);
    }
    interpreter.run();
    const Tensor& y = interpreter.value(graph->outputs[0].value);
    for (int64_t i = 0; i < y.count(); ++i) results[graph == &after].push_back(y.at(i));
  }
  CHECK(results[0] == results[1]);
}
