#include "search/group_times.h"

#include "cost/group_time.h"
#include "cost/kernel_time.h"

namespace sgtc {

RerunCosts group_times(const KernelizedGraph& program, const Hardware& hardware, int64_t units) {
  const KernelRate loops = KernelClock(hardware, units).rate("loop");
  return {group_seconds(program, hardware, units), loops.flops_per_second, loops.bytes_per_second};
}

}  // namespace sgtc
