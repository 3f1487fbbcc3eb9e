// A schedule of a plan, resolved for one rank.
//
// Everything that the plan says symbolically is resolved once: an entry becomes a range of calls, a
// call a function with final addresses, a communication a prepared operation.
//
// A rank computes in one thread (with helpers that share blocks) and communicates in another, each
// in list order. The checker of plans has proved that list order cannot deadlock even if every
// communication lasts until all its ends are issued; what two threads do is less strict than one
// list, so it cannot either. All that streams and waits demand beyond these two orders is that an
// entry comes after some entries of the other thread, and since that thread keeps its order, their
// last one stands for all: one number per entry.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communication/groups.h"
#include "communication/rank_communicators.h"
#include "plan/format.h"
#include "plan_memory.h"
#include "program.h"

namespace sgtc::runtime {

struct PreparedSchedule {
  struct Call {
    const plan::Kernel* kernel = nullptr;
    decltype(SgtcKernel::function) function = nullptr;
    size_t first_argument = 0;  // in `arguments` and `argument_bytes`
    int64_t blocks = 0;
    int64_t micro_batch = 0;  // global
  };
  struct Entry {
    const std::string* task = nullptr;
    int64_t stage = 0;
    int64_t stream = 0;
    int64_t micro_batch = 0;
  };
  struct Computation {
    Entry entry;
    size_t first_call = 0;
    size_t call_count = 0;
    uint32_t after = 0;  // issues that come first
  };
  /// Communications that are issued as one: a group of the plan, or a single entry.
  struct Issue {
    size_t first = 0;  // in `communications` and `operations`
    size_t count = 0;
    uint32_t after = 0;  // computations that come first
  };

  std::vector<void*> arguments;
  std::vector<int64_t> argument_bytes;
  std::vector<Call> calls;
  std::vector<Computation> computations;  // in the order of execution
  std::vector<Entry> communications;      // likewise
  std::vector<Issue> issues;
  std::vector<std::unique_ptr<Operation>> owned_operations;
  std::vector<Operation*> operations;  // of `communications`

  bool empty() const { return computations.empty() && issues.empty(); }
};

/// Resolves the schedule `name` of the rank at `coordinates`; an empty one if the plan has none of
/// that name. The plan must outlive it. `communicators` may be null for a rank without peers; it
/// must outlive the result. Dies for a plan that contradicts itself.
PreparedSchedule prepare_schedule(const plan::Plan& plan, const Coordinates& coordinates,
                                  const std::string& name, const Program& program,
                                  const PlanMemory& memory,
                                  const RankCommunicators* communicators = nullptr);

}  // namespace sgtc::runtime
