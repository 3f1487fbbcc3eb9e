// How the written kernels (kernels/) cut their work, as a function of operator and shapes alone:
// the same on every CPU, so that a plan does not depend on the machine that made it.
//
// Blocks are independent: any split of them over threads gives the same bits. Kernels use no
// workspace argument; what a call packs lies on its thread's stack, at most 4 MiB.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/ops.h"

namespace sgtc {

/// Whether `op` is computed by a written kernel.
bool has_anchor_kernel(Op op);

/// Whether the kernel passes its results, in groups of 16 along the last dimension, to the
/// function sgtc_tile_store, which an epilogue can replace: contractions whose results are f32,
/// f16 or bf16. All other kernels store their results themselves, without epilogue.
/// Coordinates: matmul (batch, row, column) of [batch, M, N]; conv and its input gradient
/// (n, channel, flattened position); the weight gradient (0, output channel, flattened rest).
bool anchor_visits_tiles(Op op, DType result);

/// The cut of one kernel.
struct AnchorGeometry {
  int64_t blocks = 1;         // at least 1, also for empty results
  int64_t block_rows = 1;     // contractions: rows of a result tile; attention: queries; its
                              // gradient: more than 48 where a block has all queries and keys
  int64_t block_columns = 1;  // contractions: columns of a tile; others: units of work of a block
  /// Convolutions with channels last: samples and positions of a box, else zeros. The weight
  /// gradient's block_columns then are channels.
  std::array<int64_t, 4> box{};
};

/// The geometry of the kernel for `op`, for which has_anchor_kernel holds.
AnchorGeometry anchor_geometry(Op op, const Attributes& attributes,
                               const std::vector<TensorType>& operands,
                               const std::vector<TensorType>& results);

}  // namespace sgtc
