// A schedule as the kernel launches of one rank, with the order that they need.
//
// Streams and waits of the plan become edges between launches, and nothing else does: what the plan
// leaves unordered may run at once. All parameters are constants, since what differs between steps
// is in the control buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "communication/groups.h"
#include "plan/format.h"
#include "schedule_entries.h"

namespace sgtc::runtime::cuda {

struct Launch {
  const plan::Kernel* kernel = nullptr;
  const std::string* task = nullptr;
  int64_t micro_batch = 0;
  std::vector<MemoryRange> arguments;  // in the host's arena
  int64_t global_micro_batch = 0;
  std::vector<size_t> after;  // launches, by index; all of them come earlier in the list
};

/// The launches of the schedule `name`; none if the plan has no such schedule. Dies for a plan that
/// contradicts itself or communicates.
std::vector<Launch> list_launches(const plan::Plan& plan, const Coordinates& coordinates,
                                  const std::string& name, const PlanMemory& memory);

}  // namespace sgtc::runtime::cuda
