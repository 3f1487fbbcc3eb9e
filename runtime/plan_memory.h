// Where the buffers of a position lie in the arena of its rank.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "arena.h"
#include "plan/format.h"

namespace sgtc::runtime {

struct MemoryRange {
  unsigned char* data = nullptr;
  int64_t bytes = 0;
};

class PlanMemory {
 public:
  /// Dies if a buffer does not lie inside the arena. `position` and `arena` must outlive this.
  PlanMemory(const plan::Position& position, const Arena& arena);

  /// Null if there is no buffer of that name.
  const plan::Buffer* find(const std::string& name) const;
  /// Dies if there is no buffer of that name.
  const plan::Buffer& buffer(const std::string& name) const;
  /// The address of one instance; dies if there is no such instance.
  unsigned char* address(const plan::Buffer& buffer, int64_t instance = 0) const;

 private:
  const Arena& arena_;
  std::unordered_map<std::string, const plan::Buffer*> buffers_;
};

/// Dies with the message that the embedded plan contradicts itself.
[[noreturn]] void die_of_bad_plan(const std::string& problem);

}  // namespace sgtc::runtime
