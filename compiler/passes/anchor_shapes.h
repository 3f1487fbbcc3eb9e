// The constants of the written kernels, from operators and their types.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "include/shapes.h"
#include "passes/kernel.h"

namespace sgtc {

/// The entry of the written kernel for `op` on elements of type `dtype`, such as "sgtc_matmul_f32";
/// empty if there is none. The same for CPUs and for the kernels that run on any GPU.
std::string anchor_entry(Op op, DType dtype);

// The structures of kernels/include/shapes.h for spec.anchor, with the geometry of CPUs
// (passes/anchor_geometry.h). They throw Error for sizes beyond what the structures hold (more than
// 8 dimensions that cannot be merged, more than 3 spatial dimensions).

kernels::MatmulShape matmul_shape(const KernelSpec& spec);
kernels::ConvShape convolution_shape(const KernelSpec& spec);
kernels::PoolShape pool_shape(const KernelSpec& spec);
kernels::AxisShape axis_shape(const KernelSpec& spec);
kernels::ScatterAddShape scatter_add_shape(const KernelSpec& spec);
kernels::ScatterElementsShape scatter_elements_shape(const KernelSpec& spec);
kernels::ScatterNdShape scatter_nd_shape(const KernelSpec& spec);
kernels::AttentionShape attention_shape(const KernelSpec& spec);

/// A structure as words of 64 bits.
template <typename T>
std::vector<int64_t> words_of(const T& shape) {
  static_assert(sizeof(T) % sizeof(int64_t) == 0);
  std::vector<int64_t> words(sizeof(T) / sizeof(int64_t));
  std::memcpy(words.data(), &shape, sizeof(T));
  return words;
}

/// The words of the structure for spec.anchor on a CPU.
std::vector<int64_t> anchor_shape_words(const KernelSpec& spec, bool wide_vectors);

}  // namespace sgtc
