// The arena of one rank in the memory of its GPU, laid out as the one on the host.
#pragma once

#include <vector>

#include "access_check.h"
#include "arena.h"
#include "cuda/driver.h"
#include "cuda/nccl.h"
#include "plan_memory.h"

namespace sgtc::runtime::cuda {

/// Allocates device memory for as long as the process lives. Dies, with what is needed and free, if
/// there is too little. `purpose` is for the message.
DeviceAddress allocate(const Driver& driver, int64_t bytes, const char* purpose);

/// The same for the program's own memory, which GPUs of peers may use in place.
DeviceAddress allocate_shared(const Driver& driver, const Nccl& nccl, int64_t bytes);

class DeviceArena final : public CheckedMemory {
 public:
  /// Copies go through `stream`. All must outlive this. With `nccl` it is memory that peers may use
  /// in place; null: a rank without peers.
  DeviceArena(const Driver& driver, const Nccl* nccl, const Arena& host, Stream stream);

  int64_t bytes() const { return host_.bytes(); }
  DeviceAddress base() const { return base_; }
  /// Of the same byte as in the host's arena.
  DeviceAddress address(const unsigned char* host) const {
    return base_ + static_cast<DeviceAddress>(host - host_.data());
  }

  /// Pins pages of the host's arena, in ascending order and apart from each other, so that copies
  /// from them run beside the host. The driver refuses copies of memory that is pinned in part.
  void pin(std::vector<MemoryRange> pages);
  /// Fills everything with 0xFF bytes: NaN for floats, -1 for integers.
  void poison() const;
  /// After `poison`.
  Touched touched() const;
  /// These return when the bytes are there.
  void upload(MemoryRange range) const;
  void download(MemoryRange range) const;
  void read(unsigned char* to) const override;
  void write(const unsigned char* from) const override;

 private:
  const Driver& driver_;
  const Arena& host_;
  const Stream stream_;
  const DeviceAddress base_;
  std::vector<MemoryRange> pinned_;
};

}  // namespace sgtc::runtime::cuda
