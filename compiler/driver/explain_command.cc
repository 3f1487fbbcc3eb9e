#include "driver/explain_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "cost/hardware_file.h"
#include "plan/json.h"
#include "plan/verify.h"
#include "simulate/explain.h"
#include "support/diagnostics.h"
#include "support/file.h"

namespace sgtc {
namespace {

std::vector<plan::Plan> read_plans(const std::string& file) {
  const nlohmann::json json = nlohmann::json::parse(read_file(file), nullptr, false);
  std::vector<plan::Plan> plans;
  if (!json.is_array()) {
    throw Error(file + ": a list of plans in JSON is expected; --emit=plan-json=FILE writes one");
  }
  for (const nlohmann::json& each : json) {
    plans.push_back(parse_plan(each.dump()));
    const std::vector<PlanFault> faults = verify_plan(plans.back());
    if (!faults.empty()) throw Error(file + ": the plan is wrong: " + to_string(faults.front()));
  }
  return plans;
}

}  // namespace

std::optional<ExplainOptions> parse_explain_options(int argc, const char* const* argv,
                                                    int* exit_code) {
  ExplainOptions options;
  CLI::App app("Says why a plan computes a node where, how and how often it does.", "sgtc explain");
  app.add_option("PLAN", options.plan, "A file of --emit=plan-json, or of ./train --print-plan")
      ->required();
  app.add_option("NODE", options.node, "A node or tensor of the model")->required();
  app.add_option("--hardware", options.hardware,
                 "What predictions are for (default: cpu, a100 or h200, by the plan's target)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
    return std::nullopt;
  }
  return options;
}

std::string explain_node(const ExplainOptions& options) {
  std::string text;
  for (const plan::Plan& plan : read_plans(options.plan)) {
    const Hardware hardware =
        options.hardware.empty() ? default_hardware(plan.target) : read_hardware(options.hardware);
    text += "plan \"" + plan.model + "\" for " + plan.target + ":";
    for (const plan::Axis& axis : plan.mesh)
      text += " " + axis.name + "=" + std::to_string(axis.size);
    text += "\n" + explain(plan, hardware, options.node);
  }
  return text;
}

}  // namespace sgtc
