// ONNX's own node tests and random ones: forward of each operator through the import and the
// interpreter.
#include <algorithm>

#include "import/node_cases.h"
#include "support/catch.h"

using namespace sgtc::testing;

namespace {

// How many cases are right; checks that all are.
int64_t count_right(const std::vector<NodeCase>& cases) {
  int64_t right = 0;
  for (const NodeCase& node_case : cases) {
    const std::string failure = forward_failure(node_case);
    INFO(node_case.name() << ": " << failure);
    CHECK(failure.empty());
    right += failure.empty() ? 1 : 0;
  }
  return right;
}

}  // namespace

TEST_CASE("ONNX's node tests", "[node-data]") {
  const std::vector<NodeCase> cases = node_cases("SGTC_ONNX_NODE_DATA", "node_data_skips.txt");
  if (cases.empty()) return;
  CHECK(count_right(cases) > 1500);
  for (const char* name : {"test_adam", "test_momentum", "test_nesterov_momentum", "test_adagrad",
                           "test_gradient_of_add", "test_gradient_of_add_and_mul"}) {
    CHECK(std::any_of(cases.begin(), cases.end(),
                      [name](const NodeCase& node_case) { return node_case.name() == name; }));
  }
}

TEST_CASE("random models of one operator", "[node-data]") {
  count_right(node_cases("SGTC_RANDOM_NODE_DATA", "random_data_skips.txt"));
}
