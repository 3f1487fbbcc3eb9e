// Which values of a step share one buffer on one pipeline position.
//
// A *storage* is a set of values that live in the same bytes: a value and its reshaped views, an
// accumulator and its sum, a state and the new value that is computed in its place, a dead operand
// and the result that overwrites it. A shard of a state is a storage of its own, though its bytes
// are the state's: which of them, depends on the replica. Calls are in execution order of one
// micro-batch: the prologue, forward, backward and update, each once.
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

#include "ir/literal.h"
#include "partition/placement.h"
#include "schedule/transfers.h"

namespace sgtc {

using StorageId = int32_t;
inline constexpr StorageId kNoStorage = -1;

struct Storage {
  enum class Kind : uint8_t {
    kResult,
    kFeed,
    kState,
    kConstant,
    kControl,
    kStatus,
    kWorkspace,
    kFlags,
    kTable,
    kShard,
  };
  Kind kind = Kind::kResult;
  std::string name;  // of its leaf, else of the first value written into it
  TensorType type;   // of that value
  int64_t bytes = 0;
  bool stacked = false;          // holds a row of every micro-batch
  bool output = false;           // read after the step, or at the end of each micro-batch
  bool transferred = false;      // by a send or receive of the forward or backward phase
  LiteralPtr table = nullptr;    // kTable: its contents
  StorageId whole = kNoStorage;  // kShard: the state within whose bytes it lies
};

/// One kernel call or communication.
struct StepCall {
  enum class Kind : uint8_t { kKernel, kSend, kReceive, kAllReduce, kReduceScatter, kAllGather };
  Kind kind = Kind::kKernel;
  Phase phase = Phase::kForward;
  int64_t round = 0;                   // of the update phase
  const KernelSpec* kernel = nullptr;  // kKernel
  const Group* group = nullptr;        // null for kernels made here and for transfers
  int64_t peer = -1;                   // kSend, kReceive: the other position
  /// Communications: of all their values. A storage may have held another type before.
  DType dtype = DType::kFloat32;
  /// One per argument of the kernel; what is sent or received; operand and result of a collective,
  /// which may be one storage.
  std::vector<StorageId> arguments;
};

/// How `call` uses its argument number `index`.
AccessMode access_of(const StepCall& call, size_t index);

bool is_collective(StepCall::Kind kind);

/// The calls of one step and the storages that they use.
struct StepCalls {
  std::vector<Storage> storages;
  std::vector<StorageId> storage_of;  // of each value of the graph
  std::vector<StepCall> calls;
  std::deque<KernelSpec> own_kernels;  // made here; calls point into it
};

/// What one position runs.
struct PositionInput {
  const KernelizedGraph* program = nullptr;
  const Placement* placement = nullptr;
  const Exchange* exchange = nullptr;
  int64_t position = 0;
};

/// Orders the kernels of one position by phase and assigns storages. Transfers of the forward and
/// backward phases stand at the two ends of their phase, collectives at the end of the prologue and
/// at the start of their round of the update, transfers of the update behind them. A state whose
/// new value cannot be computed in place gets a copy at the end of the update; a collective works
/// in place unless somebody else reads its operand. Shards of a state are updated in place
/// likewise.
StepCalls assign_storage(const PositionInput& input);

}  // namespace sgtc
