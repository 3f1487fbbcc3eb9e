// Where contractions put their results.
#pragma once

#include <stdint.h>

namespace sgtc::gpu {

typedef float V8f __attribute__((vector_size(32)));

/// Of what a thread reads for eight columns; the rest is read when they are stored.
inline constexpr int kTileWords = 16;

// The tile visitor, defined anew for each kernel by the code generator.
extern "C" {
/// Stores elements (batch, row, column … column + lanes - 1) of the kernel's results, after
/// whatever elementwise operators were fused. All threads of a warp call it together, eight
/// neighbouring threads with neighbouring columns of one row; those outside the result with lanes
/// == 0.
void sgtc_tile_store(void* const* args, int64_t batch, int64_t row, int64_t column, V8f values,
                     int64_t lanes);
/// The same for a kernel's second result.
void sgtc_tile_store_second(void* const* args, int64_t batch, int64_t row, int64_t column,
                            V8f values, int64_t lanes);
/// The two halves of sgtc_tile_store for eight whole columns: the first reads what the second needs
/// into `words`, kTileWords of them, so that one part of a tile is read while another is stored.
void sgtc_tile_load(void* const* args, int64_t batch, int64_t row, int64_t column, uint32_t* words);
void sgtc_tile_store_loaded(void* const* args, int64_t batch, int64_t row, int64_t column,
                            V8f values, const uint32_t* words);
/// Called long before the elements (batch, row, column … column + 63) are stored, for all of them
/// that are in the result: may prefetch what storing them reads. Each thread has another row.
void sgtc_tile_prefetch(void* const* args, int64_t batch, int64_t row, int64_t column);
}

using TileStore = decltype(&sgtc_tile_store);

}  // namespace sgtc::gpu
