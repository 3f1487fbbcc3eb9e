// Which values of a step share one buffer.
//
// A *storage* is a set of values that live in the same bytes: a value and its reshaped views, an
// accumulator and its sum, a state and the new value that is computed in its place, a dead operand
// and the result that overwrites it. Calls are in execution order of one micro-batch: the prologue,
// forward, backward and update, each once.
//
// In place is always preferred: it saves a buffer and a pass over memory, and bits do not depend on
// it. It needs the word of the kernel (KernelArgument::may_alias) that an element is read before it
// is overwritten, and that nobody reads the old contents later. Updates are bound to their states
// before other results are put in place, so that a chain never blocks an update.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "passes/kernelized_graph.h"

namespace sgtc {

using StorageId = int32_t;

struct Storage {
  enum class Kind : uint8_t { kResult, kFeed, kState, kConstant, kControl, kStatus, kWorkspace };
  Kind kind = Kind::kResult;
  std::string name;  // of its leaf, else of the first value written into it
  TensorType type;   // of that value
  int64_t bytes = 0;
  bool stacked = false;  // holds a row of every micro-batch
  bool output = false;   // read after the step, or at the end of each micro-batch
};

/// One kernel call: a storage per argument of the kernel.
struct StepCall {
  Phase phase = Phase::kForward;
  const KernelSpec* kernel = nullptr;
  const Group* group = nullptr;  // null for a copy
  std::vector<StorageId> arguments;
};

/// The calls of one step and the storages that they use.
struct StepCalls {
  std::vector<Storage> storages;
  std::vector<StorageId> storage_of;  // of each value of the graph
  std::vector<StepCall> calls;
  std::deque<KernelSpec> copies;  // kernels made here; calls point into it
};

/// Orders the kernels of `input` by phase and assigns storages. A state whose new value cannot be
/// computed in place gets a copy at the end of the update.
StepCalls assign_storage(const KernelizedGraph& input);

}  // namespace sgtc
