// The entry point of every program that sgtc writes. The symbols come from compiler/link.
#include "program.h"

extern "C" {
extern const char sgtc_plans_begin[];
extern const char sgtc_plans_end[];
extern const unsigned char sgtc_weights_begin[];
extern const unsigned char sgtc_weights_end[];
extern const SgtcKernel sgtc_kernels[];
extern const int64_t sgtc_kernel_count;
extern const SgtcGpuKernel sgtc_gpu_kernels[];
extern const int64_t sgtc_gpu_kernel_count;
extern const char sgtc_fingerprint[];
extern const char sgtc_side_file[];
extern const char sgtc_version[];
}

int main(int argument_count, char** arguments) {
  sgtc::runtime::Program program;
  program.plans = {sgtc_plans_begin, static_cast<size_t>(sgtc_plans_end - sgtc_plans_begin)};
  program.weights = sgtc_weights_begin;
  program.weights_bytes = sgtc_weights_end - sgtc_weights_begin;
  program.kernels = sgtc_kernels;
  program.kernel_count = sgtc_kernel_count;
  program.gpu_kernels = sgtc_gpu_kernels;
  program.gpu_kernel_count = sgtc_gpu_kernel_count;
  program.fingerprint = sgtc_fingerprint;
  program.side_file = sgtc_side_file;
  program.version = sgtc_version;
  return sgtc::runtime::run_program(program, argument_count, arguments);
}
