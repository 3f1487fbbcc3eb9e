#include "cost/group_time.h"

#include <string>

#include "cost/cost.h"
#include "cost/kernel_time.h"

namespace sgtc {
namespace {

std::string dtype_of(const Graph& graph, const KernelSpec& kernel) {
  std::vector<std::string> dtypes;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind != KernelArgument::Kind::kValue) continue;
    dtypes.emplace_back(name_of(graph.dtype(argument.value)));
  }
  return rated_dtype(dtypes);
}

double seconds_of_group(const KernelizedGraph& program, size_t g, const KernelClock& clock) {
  const Group& group = program.groups[g];
  if (!has_code(group)) return 0;
  KernelSpec cost;
  fill_costs(*program.graph, group, cost);
  const KernelSpec& kernel = program.kernels[g];
  const std::string dtype = dtype_of(*program.graph, kernel);
  return clock.time({kernel.symbol, kernel.kind, dtype, cost.flops, cost.bytes, kernel.blocks})
      .seconds;
}

}  // namespace

std::vector<double> group_seconds(const KernelizedGraph& program, const Hardware& hardware,
                                  int64_t units) {
  const KernelClock clock(hardware, units);
  std::vector<double> seconds;
  for (size_t g = 0; g < program.groups.size(); ++g) {
    seconds.push_back(seconds_of_group(program, g, clock));
  }
  return seconds;
}

}  // namespace sgtc
