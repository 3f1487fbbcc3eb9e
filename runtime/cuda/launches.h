// A schedule as the launches of one rank, kernels and communications, with the order that they
// need.
//
// Streams and waits of the plan become edges between launches: what the plan leaves unordered may
// run at once, so communication runs beside kernels. Communications follow each other in list order
// as well, whatever their communicator: that is what the plan's certificate against deadlock takes
// for granted. It also lets kernels whose blocks wait for each other run beside a communication
// that holds a part of the GPU, since no communication that was issued needs a later kernel of this
// rank. All parameters are constants, since what differs between steps is in the control buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "communication/communicator.h"
#include "communication/groups.h"
#include "plan/format.h"
#include "schedule_entries.h"

namespace sgtc::runtime::cuda {

/// A kernel, or communications that are issued as one.
struct Launch {
  struct Communication {
    const plan::Entry* entry = nullptr;  // of the plan
    const std::string* communicator = nullptr;
    CommunicationRequest request;  // parts in the host's arena
  };

  const plan::Kernel* kernel = nullptr;  // null: communications
  const std::string* task = nullptr;     // of communications, the first one's
  int64_t stream = 0;                    // of the plan
  int64_t micro_batch = 0;
  std::vector<MemoryRange> arguments;  // of a kernel, in the host's arena
  int64_t global_micro_batch = 0;
  std::vector<Communication> communications;
  std::vector<size_t> after;  // launches, by index; all of them come earlier in the list
};

/// The launches of the schedule `name`; none if the plan has no such schedule. Dies for a plan that
/// contradicts itself.
std::vector<Launch> list_launches(const plan::Plan& plan, const Coordinates& coordinates,
                                  const std::string& name, const PlanMemory& memory);

}  // namespace sgtc::runtime::cuda
