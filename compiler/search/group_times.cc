#include "search/group_times.h"

#include <algorithm>

#include "cost/cost.h"

namespace sgtc {
namespace {

// Sustained rates of a GPU.
struct GpuModel {
  CpuModel products;  // of 16-bit floats, in tensor cores
  CpuModel others;
};

constexpr GpuModel kHopper = {{600e12, 4.2e12, 2e-6}, {40e12, 4.2e12, 2e-6}};
constexpr GpuModel kAmpere = {{230e12, 1.6e12, 2e-6}, {15e12, 1.6e12, 2e-6}};

const GpuModel& gpu_model(const KernelTarget& target) {
  return target.is_hopper() ? kHopper : kAmpere;
}

bool is_narrow(const Graph& graph, const Group& group) {
  if (group.kind != Group::Kind::kAnchor) return false;
  const DType dtype = graph.dtype(graph.node(group.anchor).operands[0]);
  return is_float(dtype) && size_of(dtype) == 2;
}

double seconds_of_group(const KernelizedGraph& program, const Group& group) {
  if (!has_code(group)) return 0;
  KernelSpec cost;
  fill_costs(*program.graph, group, cost);
  if (!program.target.is_gpu()) return seconds_of(cost.flops, cost.bytes);
  const GpuModel& model = gpu_model(program.target);
  return seconds_of(cost.flops, cost.bytes,
                    is_narrow(*program.graph, group) ? model.products : model.others);
}

}  // namespace

RerunCosts group_times(const KernelizedGraph& program) {
  RerunCosts costs;
  for (const Group& group : program.groups) {
    costs.group_seconds.push_back(seconds_of_group(program, group));
  }
  const CpuModel model = program.target.is_gpu() ? gpu_model(program.target).others : CpuModel{};
  costs.flops_per_second = model.flops_per_second;
  costs.bytes_per_second = model.bytes_per_second;
  return costs;
}

double busy_seconds(const KernelizedGraph& program, const Placement& placement) {
  const RerunCosts costs = group_times(program);
  std::vector<double> busy(static_cast<size_t>(placement.stages), 0);
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const bool is_once = program.groups[g].phase == Phase::kUpdate;
    const auto times = static_cast<double>(is_once ? 1 : program.graph->micro_batches);
    for (const int64_t position : placement.groups[g]) {
      busy[static_cast<size_t>(position)] += times * costs.group_seconds[g];
    }
  }
  return *std::max_element(busy.begin(), busy.end());
}

}  // namespace sgtc
