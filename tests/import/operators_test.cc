// docs/operators.md says of every operator of ONNX what becomes of it.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "import/definition.h"
#include "import/helper.h"
#include "import/operator_lists.h"
#include "onnx/defs/schema.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::testing;

namespace {

using Names = std::set<std::string>;

constexpr int kOldestOpset = 11, kNewestOpset = 23;

// The names of the default domain's operators that some opset has and whether sgtc has each of
// their definitions there.
std::map<std::string, bool> operators_of_onnx() {
  std::map<std::string, bool> supported;
  for (int opset = kOldestOpset; opset <= kNewestOpset; ++opset) {
    const OnnxModel model = model_of("g (float x) => (float y) { y = Identity (x) }", opset);
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
      const onnx::OpSchema* current =
          onnx::OpSchemaRegistry::Schema(schema.Name(), opset, schema.domain());
      if (!schema.domain().empty() || !current || current->Deprecated()) continue;
      onnx::NodeProto node;
      node.set_op_type(schema.Name());
      const bool has = definition_of(model, node, model.opsets()).supported(true);
      const auto [entry, is_new] = supported.emplace(schema.Name(), has);
      if (!is_new) entry->second = entry->second && has;
    }
  }
  return supported;
}

Names rules_of(const std::string& domain) {
  Names names;
  for (const Rule* rule : all_rules()) {
    if (rule->domain == domain) names.emplace(rule->op);
  }
  return names;
}

Names joined(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

}  // namespace

std::set<std::string> testing::documented_operators(const std::string& section, int block) {
  std::ifstream file(std::string(SGTC_SOURCE_DIR) + "/docs/operators.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string fence = "```text\n";
  size_t at = text.find("## " + section + "\n");
  const size_t end = at == std::string::npos ? at : text.find("\n## ", at);
  for (int i = 0; i <= block && at != std::string::npos; ++i) at = text.find(fence, at + 1);
  if (at >= end) throw std::runtime_error("docs/operators.md has no such list in " + section);
  at += fence.size();
  std::istringstream names(text.substr(at, text.find("```", at) - at));
  return {std::istream_iterator<std::string>(names), {}};
}

TEST_CASE("the lists of operators are those that the import has") {
  const Names trained = documented_operators("With gradients");
  const Names forward = documented_operators("Forward");
  const Names missing = documented_operators("Not supported");
  const std::map<std::string, bool> all = operators_of_onnx();
  CHECK(all.size() > 150);
  for (const auto& [name, supported] : all) {
    INFO(name);
    const bool listed = trained.count(name) + forward.count(name) == 1;
    CHECK(listed == supported);
    CHECK(missing.count(name) == (supported ? 0 : 1));
  }
  for (const std::string& name : joined(joined(trained, forward), missing)) {
    INFO(name);
    CHECK(all.count(name) == 1);
  }
}

TEST_CASE("the lists of operators of other domains are those that there are rules for") {
  const std::string vendor = "Of ONNX Runtime";
  CHECK(joined(documented_operators(vendor, 0), documented_operators(vendor, 1)) ==
        rules_of("com.microsoft"));
  CHECK(documented_operators("Of training information") ==
        joined(rules_of("ai.onnx.preview.training"), {"Gradient"}));
}
