// Finds the values of a graph by their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sgtc {

struct Value;

/// A hash table of the ids of values, which have the names themselves.
class NameTable {
 public:
  /// The id of the value called `name`, or -1.
  int32_t find(const std::vector<Value>& values, std::string_view name) const;
  /// Adds the last of the values, whose name must be new.
  void add_last(const std::vector<Value>& values);

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;  // -1: free
  };
  void insert(Slot slot);

  std::vector<Slot> slots_;  // a power of two, or none; at most half of them are taken
  size_t taken_ = 0;
};

}  // namespace sgtc
