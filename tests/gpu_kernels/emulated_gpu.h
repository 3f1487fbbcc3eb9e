// Kernels for GPUs on a CPU: each thread of a block is a coroutine that runs until it meets the
// others, at a barrier of the block or in an instruction of its warp. Blocks run one after the
// other. What the written kernels need from a GPU is all in kernels/gpu/instructions.h, so their
// indices, barriers and order of sums are tested without one.
#pragma once

#include <cstdint>
#include <functional>

namespace sgtc::test {

struct EmulatedLaunch {
  uint32_t blocks = 1;
  uint32_t threads = 1;
  uint32_t shared_bytes = 0;
  bool backwards = false;  // the last block runs first
};

/// Runs `kernel` once per thread. Shared memory holds anything when a block begins. Throws
/// std::runtime_error where threads wait for others that have ended or wait elsewhere, and where a
/// block writes beyond `shared_bytes`.
void run_emulated(const EmulatedLaunch& launch, const std::function<void()>& kernel);

}  // namespace sgtc::test
