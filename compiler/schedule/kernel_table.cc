#include "schedule/kernel_table.h"

#include <algorithm>

#include "cost/cost.h"

namespace sgtc {
namespace {

const char* access_text(AccessMode mode) {
  switch (mode) {
    case AccessMode::kRead:
      return "read";
    case AccessMode::kWrite:
      return "write";
    case AccessMode::kUpdate:
      return "update";
  }
  return "read";
}

plan::Launch plan_launch(const GpuLaunch& launch) {
  plan::Launch result{launch.threads, launch.shared_bytes, launch.cluster, launch.resident, {},
                      launch.indirect};
  for (const TensorMap& map : launch.tensor_maps) {
    result.tensor_maps.push_back({map.argument, map.offset, std::string(name_of(map.dtype)),
                                  map.sizes, map.strides, map.box});
  }
  return result;
}

}  // namespace

void KernelTable::add(const Graph& graph, const StepCall& call) {
  const auto [place, is_new] = index_.try_emplace(call.kernel->symbol, kernels_.size());
  if (is_new) {
    specs_.push_back(*call.kernel);
    KernelSpec& spec = specs_.back();
    if (call.group != nullptr) fill_costs(graph, *call.group, spec);
    plan::Kernel kernel{spec.symbol, spec.kind,  spec.blocks, {},
                        spec.flops,  spec.bytes, {},          plan_launch(spec.launch)};
    for (const KernelArgument& argument : spec.arguments) {
      kernel.access.push_back(access_text(argument.mode));
    }
    kernels_.push_back(std::move(kernel));
  }
  std::vector<std::string>& nodes = kernels_[place->second].nodes;
  for (const std::string& source : call.kernel->sources) {
    if (std::find(nodes.begin(), nodes.end(), source) == nodes.end()) nodes.push_back(source);
  }
}

}  // namespace sgtc
