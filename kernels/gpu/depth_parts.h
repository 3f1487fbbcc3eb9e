// Tiles of products whose depth several blocks share, because there are too few tiles for the card.
// Each block leaves its sums in memory, and the last one to come adds them in the order of the
// parts, so the bits do not depend on who comes last. No block waits for another.
#pragma once

#include "gpu/instructions.h"

namespace sgtc::gpu {

/// A block's share of the depth of a tile.
struct DepthPart {
  uint32_t tile, count, own;
  void* partial_sums;  // of all tiles: [tiles, count, sums of a thread, threads]
  uint32_t* arrived;   // [tiles], zeros before and after

  SGTC_METHOD uint32_t begin(uint32_t depth) const { return bounded(own, depth); }
  SGTC_METHOD uint32_t end(uint32_t depth) const { return bounded(own + 1, depth); }

 private:
  // Parts are multiples of 64, which is what k-blocks divide.
  SGTC_METHOD uint32_t bounded(uint32_t part, uint32_t depth) const {
    const uint32_t size = (depth + 64 * count - 1) / (64 * count) * 64;
    return part * size < depth ? part * size : depth;
  }
};

/// Adds the sums of all parts of a tile, on blocks of `Threads`. False for all blocks but the last
/// one to come, which alone has the whole sums. Uses the first bytes of shared memory.
template <uint32_t Threads, typename E, uint32_t Rows, uint32_t Columns>
SGTC_DEVICE bool join_parts(E (&sums)[Rows][Columns], const DepthPart& parts) {
  constexpr uint32_t kSums = Rows * Columns * Threads;
  auto* first = static_cast<volatile E*>(parts.partial_sums) +
                static_cast<uint64_t>(parts.tile) * parts.count * kSums + thread_index();
  const auto place = [](uint32_t part, uint32_t i, uint32_t j) SGTC_LAMBDA {
    return static_cast<uint64_t>(part) * kSums + (i * Columns + j) * Threads;
  };
#pragma clang loop unroll(full)
  for (uint32_t i = 0; i < Rows; ++i) {
#pragma clang loop unroll(full)
    for (uint32_t j = 0; j < Columns; ++j) first[place(parts.own, i, j)] = sums[i][j];
  }
  fence_device();
  synchronize_block();
  SGTC_SHARED uint32_t* before = shared_memory<uint32_t>();
  if (thread_index() == 0) *before = count_up(parts.arrived + parts.tile);
  synchronize_block();
  if (*before != parts.count - 1) return false;
  fence_device();
  if (thread_index() == 0) parts.arrived[parts.tile] = 0;
#pragma clang loop unroll(disable)
  for (uint32_t part = 0; part < parts.count; ++part) {
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < Rows; ++i) {
#pragma clang loop unroll(full)
      for (uint32_t j = 0; j < Columns; ++j) {
        const E sum = first[place(part, i, j)];
        sums[i][j] = part == 0 ? sum : sums[i][j] + sum;
      }
    }
  }
  synchronize_block();
  return true;
}

}  // namespace sgtc::gpu
