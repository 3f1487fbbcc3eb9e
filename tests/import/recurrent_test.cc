// What ONNX's node tests leave open: sequences of unequal lengths, layouts, refusals.
#include <cmath>

#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

using Reals = std::vector<double>;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// An RNN of one unit that adds the input to the state: sums without activation.
std::string summing(const std::string& attributes, const std::string& x,
                    const std::string& lengths) {
  const std::string inputs = lengths.empty() ? "x, w, r" : "x, w, r, \"\", lengths";
  return "g (float" + x +
         " x) => (float[N] y, float[M] last) <float[1,1,1] w = {1}, "
         "float[1,1,1] r = {1}, int32[2] lengths = {" +
         (lengths.empty() ? "0, 0" : lengths) +
         "}> { y, last = RNN <activations = [\"Affine\"], activation_alpha = [1.0]" + attributes +
         "> (" + inputs + ") }";
}

}  // namespace

TEST_CASE("a sequence that is over keeps its state and gives zeros") {
  // Steps of two samples: 1, 2, 3 and 10, 20, 30; the second has two steps.
  const Values inputs = {{"x", {1, 10, 2, 20, 3, 30}}};
  const Values forward = run(import_text(summing("", "[3,2,1]", "3, 2")), inputs);
  CHECK(forward.at("y") == Reals{1, 10, 3, 30, 6, 0});
  CHECK(forward.at("last") == Reals{6, 30});
  const Values backward =
      run(import_text(summing(", direction = \"reverse\"", "[3,2,1]", "3, 2")), inputs);
  CHECK(backward.at("y") == Reals{6, 30, 5, 20, 3, 0});
  CHECK(backward.at("last") == Reals{6, 30});
}

TEST_CASE("both layouts give the same numbers") {
  const Graph time_first = import_text(summing("", "[3,2,1]", ""));
  const Graph batch_first = import_text(summing(", layout = 1", "[2,3,1]", ""));
  CHECK(time_first.shape(time_first.outputs[0].value) == Shape{3, 1, 2, 1});
  CHECK(batch_first.shape(batch_first.outputs[0].value) == Shape{2, 3, 1, 1});
  CHECK(run(time_first, {{"x", {1, 10, 2, 20, 3, 30}}}).at("y") == Reals{1, 10, 3, 30, 6, 60});
  CHECK(run(batch_first, {{"x", {1, 2, 3, 10, 20, 30}}}).at("y") == Reals{1, 3, 6, 10, 30, 60});
}

TEST_CASE("an LSTM clips what its activations see and couples its gates") {
  const auto lstm = [](const std::string& attributes) {
    return output_of(
        "g (float[1,1,1] x) => (float[1,1,1,1] y) <float[1,4,1] w = {5, 5, 5, 5}, "
        "float[1,4,1] r = {0, 0, 0, 0}> { y = LSTM <hidden_size = 1" +
            attributes + "> (x, w, r) }",
        {{"x", {1}}});
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  CHECK(close(lstm(""), {sigmoid(5) * std::tanh(sigmoid(5) * std::tanh(5))}));
  CHECK(close(lstm(", clip = 2.0"), {sigmoid(2) * std::tanh(sigmoid(2) * std::tanh(2))}));
  CHECK(close(lstm(", input_forget = 1"), lstm("")));
}

TEST_CASE("recurrent operators that do not fit are refused with expected and found") {
  CHECK(has(import_error(summing(", direction = \"sideways\"", "[3,2,1]", "")),
            "expected forward, reverse or bidirectional, found \"sideways\""));
  CHECK(has(import_error(summing("", "[3,2,5]", "")),
            "input 1: expected shape [1,1,5], found [1,1,1]"));
  CHECK(has(import_error(summing(", hidden_size = 4", "[3,2,1]", "")),
            "\"hidden_size\": expected 1, the last dimension of R, found 4"));
  CHECK(has(import_error("g (float[1,1,1] x, float[1,1,1] w) => (float[N] y) "
                         "{ y = RNN <activations = [\"Cube\"]> (x, w, w) }"),
            "\"Cube\" is none of Affine, Elu"));
}
