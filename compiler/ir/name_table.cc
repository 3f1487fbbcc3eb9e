#include "ir/name_table.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ir/graph.h"

namespace sgtc {
namespace {

constexpr size_t kFirstSlots = 32;

uint32_t hash_of(std::string_view name) {
  return static_cast<uint32_t>(std::hash<std::string_view>{}(name));
}

}  // namespace

int32_t NameTable::find(const std::vector<Value>& values, std::string_view name) const {
  if (slots_.empty()) return kNone;
  const size_t mask = slots_.size() - 1;
  const uint32_t hash = hash_of(name);
  for (size_t at = hash & mask; slots_[at].id != kNone; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && values[static_cast<size_t>(slot.id)].name == name) return slot.id;
  }
  return kNone;
}

void NameTable::add_last(const std::vector<Value>& values) {
  if (2 * (taken_ + 1) > slots_.size()) {
    const std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(std::max(kFirstSlots, 2 * old.size()));
    for (const Slot& slot : old) {
      if (slot.id != kNone) insert(slot);
    }
  }
  insert({hash_of(values.back().name), static_cast<int32_t>(values.size()) - 1});
  ++taken_;
}

void NameTable::insert(Slot slot) {
  const size_t mask = slots_.size() - 1;
  size_t at = slot.hash & mask;
  while (slots_[at].id != kNone) at = (at + 1) & mask;
  slots_[at] = slot;
}

}  // namespace sgtc
