// The end of a tile of a matrix product for sm_90a: its sums on the way to the tile visitor.
//
// Accumulators are scattered over the threads of a warp (hopper/tensor_core.h). They pass through
// shared memory, eight rows of 64 columns at a time and in single precision, and reach
// sgtc_tile_store as eight consecutive columns per thread: whole sectors of 32 bytes of bfloat16.
// Left out: bulk tensor stores of the result. They would save instructions, but the tile visitor
// would then have to hand back what it stores.
#pragma once

#include "hopper/tensor_core.h"
#include "matmul/sm_90a/launch.h"

namespace sgtc::kernels {

typedef float V8f __attribute__((vector_size(32)));

// The tile visitor, defined anew for each kernel by the code generator.
extern "C" {
/// Stores elements (batch, row, column … column + lanes - 1) of the kernel's results, after
/// whatever elementwise operators were fused. All threads of a warp call it together, eight
/// neighbouring threads with neighbouring columns of one row; those outside the result with lanes
/// == 0.
void sgtc_tile_store(void* const* args, int64_t batch, int64_t row, int64_t column, V8f values,
                     int64_t lanes);
/// Called long before the elements (batch, row, column … column + 63) are stored, for all of them
/// that are in the result: may prefetch what storing them reads. Each thread has another row.
void sgtc_tile_prefetch(void* const* args, int64_t batch, int64_t row, int64_t column);
}

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
      if (column < shape_.columns) sgtc_tile_prefetch(args_, batch_, row, column);
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
    const uint32_t buffer = staging_ + warp * kMatmulStaging;
#pragma clang loop unroll(full)
    for (uint32_t part = 0; part < hopper::kAccumulators / 16; ++part) {
      const uint32_t half = part % 2;
      const uint32_t block = part / 2;
      const uint32_t row = row_ + 64 * (block / kColumnBlocks) + 16 * warp + 8 * half;
      stage_sums(buffer, sums + 32 * block + 2 * half);
      visit_staged<Whole>(row, column_ + 64 * (block % kColumnBlocks), buffer);
    }
  }

  // Units of 16 bytes in the right half of a row swap places with their neighbours: that and the
  // padding of rows keep both writes and reads free of bank conflicts.
  SGTC_DEVICE void stage_sums(uint32_t buffer, const float* sums) {
    const uint32_t lane = hopper::thread_index() % hopper::kWarpThreads;
    const uint32_t row = buffer + lane / 4 * kMatmulStagingRow;
    const uint32_t quarter = lane % 4;
    hopper::synchronize_warp();
#pragma clang loop unroll(full)
    for (uint32_t pair = 0; pair < 8; ++pair) {
      const uint32_t place = pair < 4 ? quarter : quarter ^ 2;
      hopper::store_shared(row + 32 * pair + 8 * place, sums[4 * pair], sums[4 * pair + 1]);
    }
    hopper::synchronize_warp();
  }

  template <bool Whole>
  SGTC_METHOD void visit_staged(uint32_t first_row, uint32_t first_column, uint32_t buffer) const {
    const uint32_t lane = hopper::thread_index() % hopper::kWarpThreads;
    const uint32_t column = first_column + lane % 8 * 8;
    V8f values[2];
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < 2; ++i) {
      values[i] = staged_columns(buffer + (lane / 8 + 4 * i) * kMatmulStagingRow, lane % 8);
    }
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t row = first_row + lane / 8 + 4 * i;
      sgtc_tile_store(args_, batch_, row, column, values[i], Whole ? 8 : lanes_at(row, column));
    }
  }

  SGTC_DEVICE V8f staged_columns(uint32_t row, uint32_t eighth) {
    V8f values;
#pragma clang loop unroll(full)
    for (uint32_t unit = 0; unit < 2; ++unit) {
      float x, y, z, w;
      hopper::load_shared(row + 32 * eighth + 16 * (unit ^ eighth / 4), x, y, z, w);
      values[4 * unit] = x;
      values[4 * unit + 1] = y;
      values[4 * unit + 2] = z;
      values[4 * unit + 3] = w;
    }
    return values;
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
