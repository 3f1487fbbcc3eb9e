// What a program consists of beside the runtime: kernels, plans and weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" {

/// One entry of the kernel table that the linker writes. plan/format.h describes the call.
struct SgtcKernel {
  const char* symbol;
  void (*function)(void* const* arguments, int64_t block_begin, int64_t block_end,
                   int64_t micro_batch);
};

/// Code for GPUs, for the driver to load: for one architecture, as PTX for newer ones, or both.
struct SgtcGpuImage {
  const unsigned char* cubin;  // null: none
  const char* ptx;             // with a zero at its end; null: none
};

/// One kernel of an image. plan/format.h describes the call, the plan's kernel how it is launched.
struct SgtcGpuKernel {
  const char* symbol;
  const SgtcGpuImage* image;
};

}  // extern "C"

namespace sgtc::runtime {

/// The embedded parts of one executable. Everything lives as long as the process.
struct Program {
  std::string_view plans;  // JSON array of plans
  const unsigned char* weights = nullptr;
  int64_t weights_bytes = 0;
  const SgtcKernel* kernels = nullptr;
  int64_t kernel_count = 0;
  const SgtcGpuKernel* gpu_kernels = nullptr;
  int64_t gpu_kernel_count = 0;
  std::string_view fingerprint;  // 64 hexadecimal digits
  std::string_view side_file;    // weights beside the executable, or empty
  std::string_view version;
};

/// The whole of `main`: parses the command line, trains and returns the exit code.
int run_program(const Program& program, int argument_count, const char* const* arguments);

}  // namespace sgtc::runtime
