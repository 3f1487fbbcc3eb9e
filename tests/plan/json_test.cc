// The JSON form of plans.
#include "plan/json.h"

#include "plan_files.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("plans survive the way through their text") {
  for (const char* name : {"zb-v.json", "zero3.json", "tp2.json"}) {
    const std::string text = to_json_text(load_plan(name));
    CHECK(to_json_text(parse_plan(text)) == text);
  }
}

TEST_CASE("the text ends with a newline and has no other") {
  const std::string text = to_json_text(plan::Plan{});
  CHECK(text.find('\n') == text.size() - 1);
}

TEST_CASE("affine offsets keep their coefficients") {
  const plan::Plan plan = load_plan("zero3.json");
  for (const plan::Task& task : plan.positions[0].tasks) {
    if (task.name != "reduce_w0") continue;
    CHECK(task.outputs[0].offset == plan::Affine{0, 512, 0});
    CHECK(task.outputs[0].offset.at(1, 0) == 512);
  }
}

TEST_CASE("texts that are no plan are refused") {
  CHECK_THROWS_WITH(parse_plan("{"), ContainsSubstring("not a plan in JSON"));
  CHECK_THROWS_WITH(parse_plan("[]"), ContainsSubstring("a JSON object is expected, found array"));
  CHECK_THROWS_WITH(parse_plan("{\"format\": \"other\"}"), ContainsSubstring("found \"other\""));
  CHECK_THROWS_WITH(parse_plan("{\"format\": \"sgtc-plan\", \"kernels\": 3}"),
                    ContainsSubstring("not a plan in JSON"));
  CHECK_THROWS_AS(parse_plan(""), Error);
}
