// What tests tell the stubs of the CUDA driver and of NCCL, stub_driver.cc and stub_nccl.cc.
//
// The stub is a library of its own that programs load in place of the driver. Its GPU's memory is
// the host's and its kernels are functions of the test program. Work in streams is done as late as
// the driver's rules allow, when somebody waits for it: whoever reads a result too early, or
// overwrites a value that is still to be copied, is found out. Ranks are processes; communication
// works, and a rank waits in it until all others have come.
//
// It is controlled by variables of the environment:
//
//   SGTC_STUB_LOG      a file that gets a line per call; of a rank, FILE.RANK
//   SGTC_STUB_FAIL     "cuMemAlloc_v2=2": that function gives result 2; "@3" at the end: from its
//                      third call on. "async" is what a communicator is found to have met
//   SGTC_STUB_GPUS     number of GPUs; 1 by default
//   SGTC_STUB_CAPABILITY  compute capability; 90 by default
//   SGTC_STUB_KERNELS  "none": images are those of a real program, whose kernels do nothing
//   SGTC_STUB_MEMORY   bytes of the GPU
//   SGTC_STUB_FOLDER   where ranks leave messages for each other
//   SGTC_STUB_NCCL_VERSION  22809 by default
//   SGTC_STUB_POLLS    how often what NCCL has begun is found to be in progress; 1 by default
//   SGTC_STUB_SKIP     the how many-th of its communications a rank leaves out; none by default
//   SGTC_STUB_FLUSHES  1: its waits can flush remote writes; 0 by default
//   SGTC_STUB_MULTIPROCESSORS  132 by default; each has room for one block
#pragma once

#include <cstdint>

namespace sgtc::runtime::cuda {

/// One kernel of an image for the stub: it runs all blocks at once. Pointers to its tensor maps,
/// whose first word is the address of the tensor, follow its arguments.
struct StubKernel {
  const char* symbol;
  void (*function)(void* const* arguments, int64_t block_begin, int64_t block_end,
                   int64_t micro_batch);
  int64_t arguments;
  int64_t tensor_maps = 0;
  double milliseconds = 1;  // that it takes
};

/// What the "cubin" of an image for the stub is.
struct StubImage {
  const StubKernel* kernels;
  int64_t count;
};

}  // namespace sgtc::runtime::cuda
