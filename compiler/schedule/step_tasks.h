// The calls of a step as tasks of the plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/storage.h"

namespace sgtc {

/// Calls that run as one entry of a schedule: kernels of one phase in a row, or one communication.
struct StepTask {
  std::string name;
  StepCall::Kind kind = StepCall::Kind::kKernel;
  Phase phase = Phase::kForward;
  int64_t round = 0;          // of the update phase
  std::vector<size_t> calls;  // numbers of calls
  std::string dtype;          // communications: of all their values
  /// Collectives of gradients: the number of the backward task after which all of its operands are
  /// complete; else -1.
  int64_t after_backward = -1;
};

/// The tasks in the order of the calls. Gradients that are reduced over replicas are collected into
/// buckets of about `bucket_bytes` in the order in which the backward phase completes them, the
/// last ones smaller. That phase is cut into tasks behind the call that completes a bucket, so that
/// its reduction can be issued while the rest is computed.
std::vector<StepTask> form_tasks(const StepCalls& step, bool is_evaluation, int64_t bucket_bytes);

/// The size of a bucket for gradients of so many bytes in total: large enough to be worth a
/// message, small enough that the first is under way early.
int64_t default_bucket_bytes(int64_t gradient_bytes);

/// Bytes of the gradients that are reduced over replicas in the update phase.
int64_t reduced_bytes(const StepCalls& step);

}  // namespace sgtc
