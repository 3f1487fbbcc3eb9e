// Device memory of other ranks of this host, mapped into this process, so that the copy engines of
// GPUs reach it. Ranks that cannot map each other's are not connected: those on other hosts or in
// other containers, GPUs without access to each other, memory that cannot be shared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "communication/peers.h"
#include "cuda/driver.h"
#include "launch/socket.h"

namespace sgtc::runtime::cuda {

class PeerMemory {
 public:
  /// Shares the blocks of device memory that begin at `own`, made by NCCL, with the ranks `wanted`,
  /// each of which wants this one and shares as many. A collective of all ranks of the job. `gpu`
  /// is the driver's number of this rank's. All must outlive this.
  PeerMemory(const Driver& driver, const Peers& peers, int gpu,
             const std::vector<DeviceAddress>& own, const std::vector<int64_t>& wanted);

  /// Whether two ranks have mapped each other's memory. All ranks know it of all.
  bool connects(int64_t rank, int64_t other) const;
  /// Where block `index` of a rank begins in this process. This rank is connected to it.
  DeviceAddress address(int64_t rank, size_t index) const { return mapped_.at(rank)[index]; }

 private:
  bool map(const Socket& descriptor, size_t bytes, DeviceAddress& address) const;

  const Driver& driver_;
  const int gpu_;
  std::map<int64_t, std::vector<DeviceAddress>> mapped_;  // by rank
  std::vector<std::string> reached_;  // by rank: '1' for each rank whose memory it has mapped
};

}  // namespace sgtc::runtime::cuda
