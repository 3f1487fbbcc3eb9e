// The end of a tile of a matrix product for sm_90a: its sums on the way to the tile visitor.
#pragma once

#include "hopper/staging.h"
#include "hopper/tensor_core.h"
#include "matmul/sm_90a/launch.h"

namespace sgtc::kernels {

/// What a consumer warpgroup does with its tile besides multiplying.
template <MatmulForm Form>
class Epilogue {
 public:
  /// The tile begins at (batch, row, column) of the result; `staging` is the shared memory of the
  /// consumer's four warps.
  SGTC_METHOD Epilogue(const MatmulSm90aShape& shape, void* const* args, uint32_t batch,
                       uint32_t row, uint32_t column, uint32_t staging)
      : shape_(shape), args_(args), batch_(batch), row_(row), column_(column), staging_(staging) {}

  /// Lets the visitor prefetch: before the products, so that memory has their time.
  SGTC_METHOD void prefetch() const {
    constexpr uint32_t kThreadsOfRow = hopper::kWarpgroupThreads / kRows;
    const uint32_t thread = hopper::thread_index() % hopper::kWarpgroupThreads;
    const uint32_t row = row_ + thread / kThreadsOfRow;
    if (row >= shape_.rows) return;
#pragma clang loop unroll(full)
    for (uint32_t block = 0; block < kColumnBlocks; block += kThreadsOfRow) {
      const uint32_t column = column_ + 64 * (block + thread % kThreadsOfRow);
      if (column < shape_.columns) hopper::sgtc_tile_prefetch(args_, batch_, row, column);
    }
  }

  /// The whole tile. Tiles inside the result take a path of their own, without conditions.
  SGTC_METHOD void visit(const float (&sums)[hopper::kAccumulators]) const {
    if (row_ + kRows <= shape_.rows && column_ + Form.columns <= shape_.columns) {
      visit_parts<true>(sums);
    } else {
      visit_parts<false>(sums);
    }
  }

 private:
  template <bool Whole>
  SGTC_METHOD void visit_parts(const float (&sums)[hopper::kAccumulators]) const {
    const uint32_t warp = hopper::thread_index() / hopper::kWarpThreads % 4;
    const uint32_t buffer = staging_ + warp * hopper::kStagingBytes;
#pragma clang loop unroll(full)
    for (uint32_t part = 0; part < hopper::kAccumulators / 16; ++part) {
      const uint32_t half = part % 2;
      const uint32_t block = part / 2;
      const uint32_t row = row_ + 64 * (block / kColumnBlocks) + 16 * warp + 8 * half;
      const uint32_t column = column_ + 64 * (block % kColumnBlocks);
      hopper::stage_sums(buffer, sums + 32 * block + 2 * half);
      hopper::visit_staged(hopper::sgtc_tile_store, args_, batch_, row, column, buffer,
                           [&](uint32_t at_row, uint32_t at_column)
                               SGTC_LAMBDA { return Whole ? 8 : lanes_at(at_row, at_column); });
    }
  }

  SGTC_METHOD int64_t lanes_at(uint32_t row, uint32_t column) const {
    const auto columns = static_cast<uint32_t>(shape_.columns);
    if (row >= shape_.rows || column >= columns) return 0;
    return columns - column < 8 ? columns - column : 8;
  }

  // Of the consumer's tile.
  static constexpr uint32_t kRows =
      hopper::kAccumulators * hopper::kWarpgroupThreads / Form.columns;
  static constexpr uint32_t kColumnBlocks = Form.columns / 64;

  const MatmulSm90aShape& shape_;
  void* const* args_;
  const uint32_t batch_, row_, column_, staging_;
};

}  // namespace sgtc::kernels
