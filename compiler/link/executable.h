// The output file: kernels, plans and weights linked with the prelinked runtime.
//
// lld runs inside sgtc, so a user needs neither a compiler nor a linker. The result depends on
// libc alone. Equal input gives an equal file: no path, time or build id enters it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/weights_blob.h"

namespace sgtc {

/// Code for GPUs, loaded by the driver when the program starts: at least one of the two.
struct GpuImage {
  std::string cubin;  // empty: none
  std::string ptx;    // empty: none
};

/// One kernel of an image; plan/format.h says how it is called.
struct GpuKernel {
  std::string symbol;
  size_t image = 0;  // in ExecutableInput::gpu_images
};

struct ExecutableInput {
  std::string plans_json;  // an array of plans
  WeightsBlob weights;
  std::vector<std::string> objects;  // ELF relocatable objects
  std::vector<std::string> symbols;  // kernels that they define, in the plan's order
  std::vector<GpuImage> gpu_images;
  std::vector<GpuKernel> gpu_kernels;  // in the plan's order
  /// Everything that makes two programs differ: compared between ranks at start.
  std::string fingerprint;  // 64 hexadecimal digits
  /// A larger blob goes to the side file PATH.weights, which the program maps.
  int64_t embedded_weights_limit = int64_t{512} << 20;
};

/// Writes the executable at `path` (mode 0755), and the side file if one is needed, each whole or
/// not at all. Throws Error for an unwritable path or a C library that is not found.
void write_executable(const ExecutableInput& input, const std::string& path);

}  // namespace sgtc
