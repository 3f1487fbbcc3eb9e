#include "simulate/explain.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "cost/kernel_time.h"
#include "plan/quantities.h"
#include "simulate/position_explainer.h"
#include "simulate/ranks.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr size_t kSuggestions = 5;

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

[[noreturn]] void refuse(const plan::Plan& plan, const std::string& name) {
  std::set<std::string> names;
  for (const plan::Kernel& kernel : plan.kernels) {
    names.insert(kernel.nodes.begin(), kernel.nodes.end());
  }
  std::vector<std::string> alike;
  for (const std::string& known : names) {
    const bool is_alike = lowered(known).find(lowered(name)) != std::string::npos;
    if (is_alike && alike.size() < kSuggestions) alike.push_back(known);
  }
  throw Error("\"" + name + "\": the plan has no kernel of a node and no tensor of that name" +
              (alike.empty() ? "; --emit-plan prints the names" : "; it has " + list_text(alike)));
}

}  // namespace

std::string stage_text(const plan::Plan& plan, const Simulation& simulation, size_t p) {
  const plan::Position& position = plan.positions[p];
  std::string text = "position " + std::to_string(p) + " of " +
                     std::to_string(plan.positions.size()) + ", peak " +
                     bytes_text(simulation.positions[p].peak_live_bytes) + " live";
  if (plan.positions.size() == 1) return text + ": the pipeline has one stage\n";
  std::vector<std::string> stages;
  for (const int64_t stage : position.stages) stages.push_back(std::to_string(stage));
  text += ", stage " + list_text(stages) + ": computes " +
          seconds_text(simulation.positions[p].computing) + " of a step; all stages:";
  for (const SimulatedPosition& other : simulation.positions) {
    text += " " + seconds_text(other.computing);
  }
  return text + ": the forward phase is cut where the slowest stage is fastest\n";
}

std::string explain(const plan::Plan& plan, const Hardware& hardware, const std::string& name) {
  const KernelClock clock(hardware, hardware.units_of_rank(RankLayout(plan, hardware).size()));
  const Simulation simulation = simulate(plan, hardware);
  std::string text;
  for (size_t p = 0; p < plan.positions.size(); ++p) {
    const std::string found = PositionExplainer(plan, plan.positions[p], clock).name_text(name);
    if (!found.empty()) text += stage_text(plan, simulation, p) + found;
  }
  if (text.empty()) refuse(plan, name);
  return text;
}

}  // namespace sgtc
