#include "cost/group_time.h"

#include <string>

#include "cost/cost.h"
#include "cost/kernel_time.h"

namespace sgtc {
namespace {

// Of the first argument that is a 16-bit float, else of the first one.
std::string type_of(const Graph& graph, const KernelSpec& kernel) {
  std::string first;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind != KernelArgument::Kind::kValue) continue;
    const DType dtype = graph.dtype(argument.value);
    if (is_float(dtype) && size_of(dtype) == 2) return std::string(name_of(dtype));
    if (first.empty()) first = std::string(name_of(dtype));
  }
  return first;
}

double seconds_of_group(const KernelizedGraph& program, size_t g, const KernelClock& clock) {
  const Group& group = program.groups[g];
  if (!has_code(group)) return 0;
  KernelSpec cost;
  fill_costs(*program.graph, group, cost);
  const KernelSpec& kernel = program.kernels[g];
  const std::string dtype = type_of(*program.graph, kernel);
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
