// Runs schedules of a plan on the CPU.
//
// Everything that the plan says symbolically is resolved once: an entry becomes a range of calls, a
// call a function with final addresses. A step is then a walk over arrays, in an order that
// respects streams and waits; one device executes all streams of a position one entry at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/format.h"
#include "plan_memory.h"
#include "program.h"
#include "thread_pool.h"
#include "trace.h"

namespace sgtc::runtime {

/// A schedule, resolved.
struct PreparedSchedule {
  struct Call {
    decltype(SgtcKernel::function) function = nullptr;
    size_t first_argument = 0;  // in `arguments`
    int64_t blocks = 0;
    int64_t micro_batch = 0;  // global
  };
  struct Entry {
    const std::string* task = nullptr;
    int64_t stage = 0;
    int64_t stream = 0;
    int64_t micro_batch = 0;
    size_t first_call = 0;
    size_t call_count = 0;
  };
  std::vector<void*> arguments;
  std::vector<Call> calls;
  std::vector<Entry> entries;  // in the order of execution
};

/// Resolves the schedule `name` of a position; one without entries if the plan has none of that
/// name. Dies for a plan that contradicts itself and for communication, which needs several ranks.
PreparedSchedule prepare_schedule(const plan::Plan& plan, const plan::Position& position,
                                  const std::string& name, const Program& program,
                                  const PlanMemory& memory);

/// Runs every call. `trace` may be null.
void run_schedule(const PreparedSchedule& schedule, ThreadPool& threads, Trace* trace);

}  // namespace sgtc::runtime
