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

  /// The whole tile. Tiles inside the result take a path of their own, without conditions, which
  /// reads for one part while it stores the one before: a warp has its scheduler to itself, so
  /// nothing else would hide how long that takes.
  SGTC_METHOD void visit(const float (&sums)[hopper::kAccumulators]) const {
    if (row_ + kRows <= shape_.rows && column_ + Form.columns <= shape_.columns) {
      visit_whole(sums);
    } else {
      visit_cut(sums);
    }
  }

 private:
  static constexpr uint32_t kParts = hopper::kAccumulators / 16;

  SGTC_METHOD void visit_whole(const float (&sums)[hopper::kAccumulators]) const {
    hopper::StagedOperands operands[2];
    hopper::load_operands(args_, batch_, row_of(0), column_of(0), operands[0]);
#pragma clang loop unroll(full)
    for (uint32_t part = 0; part < kParts; ++part) {
      if (part + 1 < kParts) {
        hopper::load_operands(args_, batch_, row_of(part + 1), column_of(part + 1),
                              operands[(part + 1) % 2]);
      }
      stage(sums, part);
      hopper::visit_loaded(args_, batch_, row_of(part), column_of(part), buffer(),
                           operands[part % 2]);
    }
  }

  SGTC_METHOD void visit_cut(const float (&sums)[hopper::kAccumulators]) const {
#pragma clang loop unroll(full)
    for (uint32_t part = 0; part < kParts; ++part) {
      stage(sums, part);
      hopper::visit_staged(
          hopper::sgtc_tile_store, args_, batch_, row_of(part), column_of(part), buffer(),
          [&](uint32_t row, uint32_t column) SGTC_LAMBDA { return lanes_at(row, column); });
    }
  }

  // A part is 8 rows of 64 columns per warp.
  SGTC_METHOD uint32_t warp() const { return hopper::thread_index() / hopper::kWarpThreads % 4; }
  SGTC_METHOD uint32_t buffer() const { return staging_ + warp() * hopper::kStagingBytes; }
  SGTC_METHOD uint32_t row_of(uint32_t part) const {
    return row_ + 64 * (part / 2 / kColumnBlocks) + 16 * warp() + 8 * (part % 2);
  }
  SGTC_METHOD uint32_t column_of(uint32_t part) const {
    return column_ + 64 * (part / 2 % kColumnBlocks);
  }
  SGTC_METHOD void stage(const float (&sums)[hopper::kAccumulators], uint32_t part) const {
    hopper::stage_sums(buffer(), sums + 32 * (part / 2) + 2 * (part % 2));
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
