// Which block of a matrix product for sm_90a computes what, and in which order; made by the host.
#pragma once

#include <cstdint>
#include <vector>

#include "matmul/sm_90a/launch.h"

namespace sgtc::kernels {

struct MatmulWork {
  int64_t batch, rows, columns, depth;
  /// Resident blocks, a positive multiple of form.cluster.
  int64_t blocks;
  /// Rows of tiles whose tiles follow each other column by column, so that what is computed at the
  /// same time shares rows and columns in the L2 cache.
  int64_t raster_group = 8;
  /// Split the depth of the tiles that do not fill a last round over all clusters. Not in ping-pong
  /// forms.
  bool split_depth = false;
};

struct MatmulSchedule {
  int64_t rounds = 0;
  int64_t slots = 0;              // of partial sums
  std::vector<MatmulItem> items;  // [rounds, clusters]
};

/// Each tile once, or as parts that cover its depth once: the first on a cluster of its own, which
/// waits for the others and adds them in order, and those on clusters that wait for nobody. Tiles
/// and k-blocks in one dimension must be fewer than 65536, slots fewer than 32768.
MatmulSchedule schedule_matmul(const MatmulForm& form, const MatmulWork& work);

}  // namespace sgtc::kernels
