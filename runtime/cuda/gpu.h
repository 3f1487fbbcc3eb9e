// The GPU of one rank.
#pragma once

#include <cstdint>
#include <string>

#include "cuda/driver.h"

namespace sgtc::runtime::cuda {

struct Gpu {
  int ordinal = 0;  // among the visible ones
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  Context context = nullptr;
};

/// The visible GPU that a rank takes: the one of its local rank; the only one if the launcher gave
/// each rank one of its own in CUDA_VISIBLE_DEVICES. Dies if there is none for this rank or its
/// architecture is not that of `target`, such as "sm_90a". Its context is current in this thread.
Gpu choose_gpu(Driver& driver, const std::string& target, int64_t local_rank, int64_t local_size);

}  // namespace sgtc::runtime::cuda
