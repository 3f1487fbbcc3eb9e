#include "plan_memory.h"

#include "failure.h"

namespace sgtc::runtime {

void die_of_bad_plan(const std::string& problem) {
  die("embedded plan", problem, "the program is damaged: compile it again");
}

PlanMemory::PlanMemory(const plan::Position& position, const Arena& arena) : arena_(arena) {
  for (const plan::Buffer& buffer : position.buffers) {
    const int64_t last = buffer.offset + (buffer.count - 1) * buffer.stride;
    if (buffer.offset < 0 || buffer.bytes < 0 || buffer.count < 1 || buffer.stride < 0 ||
        last + buffer.bytes > arena.bytes()) {
      die_of_bad_plan("buffer " + buffer.name + " lies outside the arena");
    }
    if (!buffers_.emplace(buffer.name, &buffer).second) {
      die_of_bad_plan("two buffers are called " + buffer.name);
    }
  }
}

const plan::Buffer* PlanMemory::find(const std::string& name) const {
  const auto found = buffers_.find(name);
  return found == buffers_.end() ? nullptr : found->second;
}

const plan::Buffer& PlanMemory::buffer(const std::string& name) const {
  const plan::Buffer* found = find(name);
  if (!found) die_of_bad_plan("there is no buffer " + name);
  return *found;
}

unsigned char* PlanMemory::address(const plan::Buffer& buffer, int64_t instance) const {
  if (instance < 0 || instance >= buffer.count) {
    die_of_bad_plan("buffer " + buffer.name + " has no instance " + std::to_string(instance));
  }
  return arena_.data() + buffer.offset + instance * buffer.stride;
}

}  // namespace sgtc::runtime
