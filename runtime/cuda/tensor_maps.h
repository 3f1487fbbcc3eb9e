// The tensor maps of all launches, by which the copy engine finds its way through tensors.
//
// A map holds the address of its tensor, so maps are encoded when the arena has one: once per
// tensor map of a kernel and tensor that it is called with. They lie in one block of device memory.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "cuda/device_arena.h"
#include "cuda/driver.h"
#include "cuda/launches.h"

namespace sgtc::runtime::cuda {

class TensorMaps {
 public:
  /// Encodes the maps of all launches. Dies for one that the driver does not take.
  TensorMaps(const Driver& driver, const DeviceArena& arena, Stream stream,
             const std::vector<const std::vector<Launch>*>& launches);

  /// The address of `map` for an argument at this address, both of one of the launches.
  DeviceAddress address(const plan::TensorMap& map, DeviceAddress argument) const;
  int64_t bytes() const;

 private:
  using Key = std::pair<const plan::TensorMap*, DeviceAddress>;

  std::map<Key, size_t> numbers_;
  DeviceAddress base_ = 0;
};

}  // namespace sgtc::runtime::cuda
