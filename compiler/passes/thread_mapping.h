// How the loops of a nest are dealt out to the threads of a GPU.
#pragma once

#include <cstdint>

#include "passes/loop_nest.h"

namespace sgtc::gpu {

/// What the pointers of a kernel's arguments are multiples of, in bytes.
inline constexpr int64_t kArgumentAlignment = 16;
inline constexpr int64_t kWarp = 32;
/// Steps of one thread up to which a row may stay in registers.
inline constexpr int64_t kMostKeptTurns = 4;

/// The geometry of a loop kernel. The order of its sums follows from the shapes of the reductions
/// alone: not from the grid, and not from what is fused with them.
///
/// An *item* is a row of a nest whose reductions have the order kLanes, else `lanes` neighbouring
/// columns of a row. `slices` threads share an item: thread s of them takes steps s, s + slices …
/// of every sweep, and their results are joined in a fixed order. Items are dealt out to blocks by
/// `items_per_block`; a grid of any size computes all of them.
struct ThreadMapping {
  int64_t lanes = 1;    // positions of the vector axis that a thread computes at once
  int64_t vectors = 1;  // of the vector axis
  int64_t items = 1;
  int64_t steps = 1;  // of an item in a sweep: vectors or elements of the reduced atoms
  int64_t slices = 1;
  int64_t threads = 256;  // of a block
  int64_t together = 1;
  /// What a thread has loaded and computed of a row stays in registers from sweep to sweep.
  bool is_kept = false;

  /// Of a thread in a sweep; the last one may be for some of the threads alone.
  int64_t turns() const { return (steps + slices - 1) / slices; }
  int64_t items_per_block() const { return threads / slices; }
  /// The largest grid that has work for every block; 0 for a nest without elements.
  int64_t blocks() const { return (items + items_per_block() - 1) / items_per_block(); }
};

/// All sizes but items, steps, vectors and, in kept rows, `together` are powers of two.
ThreadMapping map_threads(const LoopNest& nest);

}  // namespace sgtc::gpu
