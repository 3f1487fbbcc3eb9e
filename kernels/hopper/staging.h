// From accumulators to the tile visitor.
//
// Accumulators are scattered over the threads of a warp (hopper/tensor_core.h). They pass through
// shared memory, eight rows of 64 columns at a time and in single precision, and reach
// sgtc_tile_store as eight consecutive columns per thread: whole sectors of 32 bytes of bfloat16.
// Left out: bulk tensor stores of the result. They would save instructions, but the tile visitor
// would then have to hand back what it stores.
#pragma once

#include "gpu/tile_visitor.h"
#include "hopper/host.h"
#include "hopper/instructions.h"

namespace sgtc::hopper {

/// Puts 8 rows of 64 accumulators of a warp into its staging: element i of pair p is sums[4 * p +
/// i].
//
// Units of 16 bytes in the right half of a row swap places with their neighbours: that and the
// padding of rows keep both writes and reads free of bank conflicts.
SGTC_DEVICE void stage_sums(uint32_t buffer, const float* sums) {
  const uint32_t lane = thread_index_again() % kWarpThreads;
  const uint32_t row = buffer + lane / 4 * kStagingRowBytes;
  const uint32_t quarter = lane % 4;
  synchronize_warp();
#pragma clang loop unroll(full)
  for (uint32_t pair = 0; pair < 8; ++pair) {
    const uint32_t place = pair < 4 ? quarter : quarter ^ 2;
    store_shared(row + 32 * pair + 8 * place, sums[4 * pair], sums[4 * pair + 1]);
  }
  synchronize_warp();
}

SGTC_DEVICE V8f staged_columns(uint32_t row, uint32_t eighth) {
  V8f values;
#pragma clang loop unroll(full)
  for (uint32_t unit = 0; unit < 2; ++unit) {
    float x, y, z, w;
    load_shared(row + 32 * eighth + 16 * (unit ^ eighth / 4), x, y, z, w);
    values[4 * unit] = x;
    values[4 * unit + 1] = y;
    values[4 * unit + 2] = z;
    values[4 * unit + 3] = w;
  }
  return values;
}

/// What storing a thread's share of 8 rows of 64 columns reads.
struct StagedOperands {
  uint32_t words[2][gpu::kTileWords];
};

/// Reads it for the rows from `row` on and the columns from `column` on, all in the result.
SGTC_DEVICE void load_operands(void* const* args, uint32_t batch, uint32_t row, uint32_t column,
                               StagedOperands& operands) {
  const uint32_t lane = thread_index_again() % kWarpThreads;
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < 2; ++i) {
    sgtc_tile_load(args, batch, row + lane / 8 + 4 * i, column + lane % 8 * 8, operands.words[i]);
  }
}

/// Calls store(i, row, column, values) for each part of eight columns that a thread has of the 8
/// rows from `row` on and 64 columns from `column` on that stage_sums has put into `buffer`.
template <typename Store>
SGTC_DEVICE void visit_staged_columns(uint32_t row, uint32_t column, uint32_t buffer, Store store) {
  const uint32_t lane = thread_index_again() % kWarpThreads;
  V8f values[2];
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < 2; ++i) {
    values[i] = staged_columns(buffer + (lane / 8 + 4 * i) * kStagingRowBytes, lane % 8);
  }
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < 2; ++i) {
    store(i, row + lane / 8 + 4 * i, column + lane % 8 * 8, values[i]);
  }
}

/// Calls the visitor `store` for them; lanes_at(row, column) says how many of eight columns are in
/// the result.
template <typename LanesAt>
SGTC_DEVICE void visit_staged(TileStore store, void* const* args, uint32_t batch, uint32_t row,
                              uint32_t column, uint32_t buffer, LanesAt lanes_at) {
  visit_staged_columns(row, column, buffer,
                       [&](uint32_t, uint32_t at_row, uint32_t at_column, V8f values) SGTC_LAMBDA {
                         store(args, batch, at_row, at_column, values, lanes_at(at_row, at_column));
                       });
}

/// Calls sgtc_tile_store_loaded for them: all are in the result, and `operands` loaded.
SGTC_DEVICE void visit_loaded(void* const* args, uint32_t batch, uint32_t row, uint32_t column,
                              uint32_t buffer, const StagedOperands& operands) {
  visit_staged_columns(
      row, column, buffer,
      [&](uint32_t i, uint32_t at_row, uint32_t at_column, V8f values) SGTC_LAMBDA {
        sgtc_tile_store_loaded(args, batch, at_row, at_column, values, operands.words[i]);
      });
}

}  // namespace sgtc::hopper
