// The arguments of indirect launches: the addresses of each, one after the other, in one block of
// device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "cuda/device_arena.h"
#include "cuda/driver.h"
#include "cuda/launches.h"

namespace sgtc::runtime::cuda {

class ArgumentTables {
 public:
  /// Writes the tables of all launches; launches with the same arguments share one.
  ArgumentTables(const Driver& driver, const DeviceArena& arena, Stream stream,
                 const std::vector<const std::vector<Launch>*>& launches);

  /// The table of an indirect launch with these arguments, one of the launches.
  DeviceAddress address(const std::vector<uint64_t>& arguments) const;

 private:
  std::map<std::vector<uint64_t>, size_t> places_;  // in bytes
  DeviceAddress base_ = 0;
};

}  // namespace sgtc::runtime::cuda
