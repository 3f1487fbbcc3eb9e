#include "plan_loader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "communication/groups.h"
#include "failure.h"

namespace sgtc::runtime {
namespace {

// "2x4": pipeline times data parallelism, and tensor parallelism if there is any.
std::string mesh_text(const plan::Plan& plan) {
  std::string text =
      std::to_string(axis_size(plan, "pp")) + "x" + std::to_string(axis_size(plan, "dp"));
  if (axis_size(plan, "tp") > 1) text += "x" + std::to_string(axis_size(plan, "tp"));
  return text;
}

std::string sizes_text(const plan::Plan& plan) {
  std::string text;
  for (const auto& [name, size] : plan.dims) {
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  }
  return text;
}

bool has_sizes(const plan::Plan& plan, const std::map<std::string, int64_t>& wanted) {
  for (const auto& [name, size] : wanted) {
    const auto found = plan.dims.find(name);
    if (found == plan.dims.end() || found->second != size) return false;
  }
  return true;
}

// Texts without repetitions, joined.
std::string list_of(const std::vector<plan::Plan>& plans, std::string (*text)(const plan::Plan&),
                    const char* separator) {
  std::vector<std::string> texts;
  for (const plan::Plan& plan : plans) {
    if (std::find(texts.begin(), texts.end(), text(plan)) == texts.end()) {
      texts.push_back(text(plan));
    }
  }
  std::string list;
  for (const std::string& each : texts) list += (list.empty() ? "" : separator) + each;
  return list;
}

std::string mesh_with_ranks(const plan::Plan& plan) {
  const int64_t ranks = world_size(plan);
  return mesh_text(plan) + " (" + std::to_string(ranks) + (ranks == 1 ? " rank)" : " ranks)");
}

// The plans of the --mesh and --dim sizes asked for, at least one.
std::vector<const plan::Plan*> wanted_plans(const std::vector<plan::Plan>& plans,
                                            const Options& options) {
  std::vector<const plan::Plan*> meshed;
  for (const plan::Plan& plan : plans) {
    if (options.mesh.empty() || options.mesh == mesh_text(plan)) meshed.push_back(&plan);
  }
  if (meshed.empty()) {
    die("--mesh " + options.mesh, "no plan is for this mesh",
        "compiled are: " + list_of(plans, mesh_text, ", "));
  }
  std::vector<const plan::Plan*> sized;
  for (const plan::Plan* plan : meshed) {
    if (has_sizes(*plan, options.dims)) sized.push_back(plan);
  }
  if (sized.empty()) {
    die("--dim", "no plan has this size", "compiled are: " + list_of(plans, sizes_text, "; "));
  }
  return sized;
}

// Of those the ones for the first mesh of so many ranks, at least one.
std::vector<const plan::Plan*> allowed_plans(const std::vector<plan::Plan>& plans, int64_t ranks,
                                             const Options& options) {
  std::vector<const plan::Plan*> allowed;
  for (const plan::Plan* plan : wanted_plans(plans, options)) {
    const bool fits = world_size(*plan) == ranks &&
                      (allowed.empty() || mesh_text(*plan) == mesh_text(*allowed.front()));
    if (fits) allowed.push_back(plan);
  }
  if (allowed.empty()) {
    die("number of ranks",
        "the program was compiled for " + meshes_text(plans) + ", found " + std::to_string(ranks),
        "start that many, or compile it with another --mesh");
  }
  return allowed;
}

bool leaves_no_rows(const plan::Plan& plan, const DataSet& data) {
  const int64_t rows = rows_per_step(plan);
  return rows > 0 && data.samples() % rows == 0;
}

// True if `a` is the better plan for its data.
bool is_better(const plan::Plan& a, const DataSet& data_a, const plan::Plan& b,
               const DataSet& data_b) {
  const bool whole_a = leaves_no_rows(a, data_a);
  const bool whole_b = leaves_no_rows(b, data_b);
  if (whole_a != whole_b) return whole_a;
  const bool enough_a = rows_per_step(a) <= data_a.samples();
  const bool enough_b = rows_per_step(b) <= data_b.samples();
  if (enough_a != enough_b) return enough_a;
  return rows_per_step(a) > rows_per_step(b);
}

}  // namespace

std::vector<plan::Plan> parse_plans(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_array() || json.empty()) die_of_bad_plan("it is not a list of plans");
  std::vector<plan::Plan> plans;
  for (const nlohmann::json& item : json) {
    plans.push_back(item.get<plan::Plan>());
    const plan::Plan& plan = plans.back();
    if (plan.format != "sgtc-plan" || plan.version != plan::kFormatVersion) {
      die_of_bad_plan("it has format " + plan.format + " version " + std::to_string(plan.version) +
                      ", expected sgtc-plan version " + std::to_string(plan::kFormatVersion));
    }
    if (plan.positions.empty()) die_of_bad_plan("it has no position");
  }
  return plans;
}

int64_t rows_per_step(const plan::Plan& plan) {
  return plan.micro_batch_rows * plan.micro_batches * axis_size(plan, "dp");
}

std::vector<int64_t> plan_ranks(const std::vector<plan::Plan>& plans, const Options& options) {
  std::vector<int64_t> ranks;
  for (const plan::Plan* plan : wanted_plans(plans, options)) ranks.push_back(world_size(*plan));
  return ranks;
}

std::string meshes_text(const std::vector<plan::Plan>& plans) {
  return list_of(plans, mesh_with_ranks, " or ");
}

const plan::Plan& choose_plan(const std::vector<plan::Plan>& plans, int64_t ranks,
                              const Options& options, const std::vector<DataFile>& files,
                              DataSet& data) {
  const plan::Plan* best = nullptr;
  MaybeFailure last;
  for (const plan::Plan* plan : allowed_plans(plans, ranks, options)) {
    DataSet candidate;
    if (MaybeFailure failure = candidate.bind(*plan, files)) {
      last = failure;
    } else if (!best || is_better(*plan, candidate, *best, data)) {
      best = plan;
      data = candidate;
    }
  }
  if (!best) die(*last);
  return *best;
}

}  // namespace sgtc::runtime
