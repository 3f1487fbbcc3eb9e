// What the entries of a schedule mean: their order, their tasks and the memory of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "communication/communicator.h"
#include "communication/groups.h"
#include "plan/format.h"
#include "plan_memory.h"

namespace sgtc::runtime {

/// Indices of the entries in an order in which each comes after the earlier entries of its stream
/// and after those that it waits for. The list's own order is kept where it can be. Dies if there
/// is none.
std::vector<size_t> execution_order(const std::vector<plan::Entry>& entries);

/// Finds tasks and memory for the entries of one position.
class EntryResolver {
 public:
  /// All must outlive this.
  EntryResolver(const plan::Plan& plan, const Coordinates& coordinates, const PlanMemory& memory);

  /// Dies if there is no such task.
  const plan::Task& task(const plan::Entry& entry) const;
  /// The bytes that an argument of the entry's task names. Dies for bytes outside their buffer.
  MemoryRange range(const plan::Argument& argument, const plan::Entry& entry) const;
  /// What the entry's task communicates. Dies for a task of another kind.
  CommunicationRequest request(const plan::Entry& entry) const;
  /// The entry's micro-batch among those of all replicas.
  int64_t global_micro_batch(const plan::Entry& entry) const;

 private:
  const Coordinates coordinates_;
  const int64_t first_micro_batch_;
  const PlanMemory& memory_;
  std::unordered_map<std::string_view, const plan::Task*> tasks_;
};

}  // namespace sgtc::runtime
