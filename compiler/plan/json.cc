#include "plan/json.h"

#include "support/diagnostics.h"

namespace sgtc {

std::string to_json_text(const plan::Plan& plan) { return nlohmann::json(plan).dump() + "\n"; }

plan::Plan parse_plan(const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (!json.is_object())
      throw Error("plan: a JSON object is expected, found " + std::string(json.type_name()));
    const std::string format = json.value("format", std::string());
    if (format != "sgtc-plan") {
      throw Error("plan: \"format\": \"sgtc-plan\" is expected, found \"" + format + "\"");
    }
    return json.get<plan::Plan>();
  } catch (const nlohmann::json::exception& error) {
    throw Error("plan: the text is not a plan in JSON: " + std::string(error.what()));
  }
}

}  // namespace sgtc
