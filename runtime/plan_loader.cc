#include "plan_loader.h"

#include <nlohmann/json.hpp>
#include <string>

#include "failure.h"

namespace sgtc::runtime {
namespace {

int64_t ranks_of(const plan::Plan& plan) {
  int64_t ranks = 1;
  for (const plan::Axis& axis : plan.mesh) ranks *= axis.size;
  return ranks;
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

// The plans that the options allow; dies if there is none.
std::vector<const plan::Plan*> allowed_plans(const std::vector<plan::Plan>& plans,
                                             const Options& options) {
  const int64_t ranks = options.ranks > 0 ? options.ranks : 1;
  std::vector<const plan::Plan*> allowed;
  std::string meshes;
  std::string sizes;
  for (const plan::Plan& plan : plans) {
    meshes += (meshes.empty() ? "" : ", ") + std::to_string(ranks_of(plan));
    sizes += (sizes.empty() ? "" : "; ") + sizes_text(plan);
    if (ranks_of(plan) == ranks && has_sizes(plan, options.dims)) allowed.push_back(&plan);
  }
  if (!allowed.empty()) return allowed;
  if (!options.dims.empty()) die("--dim", "no plan has this size", "compiled are: " + sizes);
  die("number of ranks",
      "the plans of this program are for " + meshes + ", found " + std::to_string(ranks),
      "start as many ranks, or compile it with another --mesh");
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
  int64_t replicas = 1;
  for (const plan::Axis& axis : plan.mesh) {
    if (axis.name == "dp") replicas = axis.size;
  }
  return plan.micro_batch_rows * plan.micro_batches * replicas;
}

const plan::Plan& choose_plan(const std::vector<plan::Plan>& plans, const Options& options,
                              const std::vector<DataFile>& files, DataSet& data) {
  const plan::Plan* best = nullptr;
  MaybeFailure last;
  for (const plan::Plan* plan : allowed_plans(plans, options)) {
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
