#include <cmath>

#include "import/helper.h"
#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

const Values kBatch = {{"x", {std::log(3), 0, 0, 0, 5, -5}}, {"labels", {0, 1, -100}}};

std::string weighted(const std::string& reduction, const std::string& type) {
  return "g (float[3,2] x, int64[3] labels) => (" + type +
         " loss) <float[2] w = {1, 3}> "
         "{ loss = SoftmaxCrossEntropyLoss <ignore_index = -100, reduction = \"" +
         reduction + "\"> (x, labels, w) }";
}

}  // namespace

TEST_CASE("cross-entropy divides by the weights of the labels that count") {
  CHECK(close(output_of(weighted("mean", "float"), kBatch),
              {(std::log(4.0 / 3) + 3 * std::log(2)) / 4}));
  CHECK(close(output_of(weighted("sum", "float"), kBatch), {2.367124}, 1e-6));
  CHECK(close(output_of(weighted("none", "float[3]"), kBatch),
              {std::log(4.0 / 3), 3 * std::log(2), 0}));
}

TEST_CASE("negative log-likelihood of log-probabilities") {
  const std::string text =
      "g (float[3,2] x, int64[3] labels) => (float loss) <float[2] w = {1, 3}> "
      "{ p = LogSoftmax <axis = 1> (x) "
      "loss = NegativeLogLikelihoodLoss <ignore_index = -100> (p, labels, w) }";
  CHECK(close(output_of(text, kBatch), {(std::log(4.0 / 3) + 3 * std::log(2)) / 4}));
}

TEST_CASE("cross-entropy over positions and its log-probabilities") {
  const Values batch = {{"x", {0, 0, 0, 0}}, {"labels", {1, 0}}};
  const Graph graph = import_text(
      "g (float[1,2,2] x, int64[1,2] labels) => (float loss, float[1,2,2] p) "
      "{ loss, p = SoftmaxCrossEntropyLoss (x, labels) }");
  const Values outputs = run(graph, batch);
  CHECK(close(outputs.at("loss"), {std::log(2)}));
  CHECK(close(outputs.at("p"), {-std::log(2), -std::log(2), -std::log(2), -std::log(2)}));
}

TEST_CASE("the mean is one scalar division of two sums") {
  const Graph graph = import_text(weighted("mean", "float"));
  const Node* loss = graph.producer(graph.outputs[0].value);
  REQUIRE(loss != nullptr);
  CHECK(loss->op == Op::kDiv);
  CHECK(graph.shape(loss->operands[0]).empty());
  CHECK(graph.shape(loss->operands[1]).empty());
}

TEST_CASE("a mean without weights divides by a constant count") {
  const Graph graph = import_text(
      "g (float[4,2] x, int64[4] labels) => (float loss) "
      "{ loss = SoftmaxCrossEntropyLoss (x, labels) }");
  const Node* loss = graph.producer(graph.outputs[0].value);
  REQUIRE(loss->op == Op::kDiv);
  const Value& count = graph.value(loss->operands[1]);
  REQUIRE(count.kind == ValueKind::kConstant);
  CHECK(count.literal->as_double(0) == 4);
}

TEST_CASE("ONNX Runtime's internal loss takes the ignored label as an input") {
  const std::string text =
      "g (float[3,2] x, int64[3] labels) => (float loss) <float[2] w = {1, 3}, int64 skip = {-100}>"
      "{ loss, p = com.microsoft.SoftmaxCrossEntropyLossInternal (x, labels, w, skip) }";
  CHECK(close(output_of(text, kBatch), {(std::log(4.0 / 3) + 3 * std::log(2)) / 4}));
}

TEST_CASE("labels of the wrong shape or type are refused") {
  const std::string error = import_error(
      "g (float[3,2] x, int64[4] labels) => (float loss) "
      "{ loss = SoftmaxCrossEntropyLoss (x, labels) }");
  CHECK(error == "node \"loss\" (SoftmaxCrossEntropyLoss): labels: expected shape [3], found [4]");
}
