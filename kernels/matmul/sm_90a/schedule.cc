#include "matmul/sm_90a/schedule.h"

#include <algorithm>

namespace sgtc::kernels {
namespace {

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// All tiles with their whole depth, in raster order.
std::vector<MatmulItem> raster(const MatmulForm& form, const MatmulWork& work) {
  const int64_t tile_rows = ceil_divide(work.rows, form.rows * form.cluster);
  const int64_t tile_columns = ceil_divide(work.columns, form.columns);
  MatmulItem item = {};
  item.depth_end = static_cast<uint16_t>(ceil_divide(work.depth, kMatmulDepth));
  std::vector<MatmulItem> tiles;
  for (int64_t batch = 0; batch < work.batch; ++batch) {
    for (int64_t group = 0; group < tile_rows; group += work.raster_group) {
      const int64_t group_end = std::min(tile_rows, group + work.raster_group);
      for (int64_t column = 0; column < tile_columns; ++column) {
        for (int64_t row = group; row < group_end; ++row) {
          item.batch = static_cast<uint32_t>(batch);
          item.row = static_cast<uint16_t>(row);
          item.column = static_cast<uint16_t>(column);
          tiles.push_back(item);
        }
      }
    }
  }
  return tiles;
}

using Lists = std::vector<std::vector<MatmulItem>>;  // of each cluster

/// A part of the depth of tile `tile`, for `cluster`.
struct Part {
  int64_t tile, cluster, begin, end;
};

/// Cuts the depth of fewer tiles than clusters, so that every cluster gets about the same number of
/// k-blocks, and those that work at the same time are near the same k, where they share operands in
/// the L2 cache: as long as each tile can have one, the next cluster takes its next part; whole
/// remainders go to the clusters that are left, in turn, and the last few of those are cut evenly.
std::vector<Part> cut(int64_t tiles, int64_t depth, int64_t clusters) {
  const int64_t share = ceil_divide(tiles * depth, clusters);
  std::vector<Part> parts;
  int64_t begin = 0, cluster = 0;
  for (; begin < depth && clusters - cluster >= tiles; begin += share) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      parts.push_back({tile, cluster++, begin, std::min(depth, begin + share)});
    }
  }
  if (begin >= depth) return parts;
  const int64_t left = clusters - cluster;
  const int64_t whole = tiles / left * left;
  for (int64_t tile = 0; tile < whole; ++tile) {
    parts.push_back({tile, cluster + tile % left, begin, depth});
  }
  if (whole == tiles) return parts;
  const int64_t pieces = left / (tiles - whole);
  const int64_t length = ceil_divide(depth - begin, pieces);
  for (int64_t tile = whole; tile < tiles; ++tile) {
    for (int64_t at = begin; at < depth; at += length) {
      parts.push_back({tile, cluster++, at, std::min(depth, at + length)});
    }
  }
  return parts;
}

/// Each tile's first part belongs to its owner; the others get slots, in the order of the depth.
int64_t split(const std::vector<MatmulItem>& tiles, Lists& lists) {
  const auto count = static_cast<int64_t>(tiles.size());
  const std::vector<Part> parts =
      cut(count, tiles.front().depth_end, static_cast<int64_t>(lists.size()));
  std::vector<int64_t> partials(tiles.size(), -1);
  for (const Part& part : parts) ++partials[static_cast<size_t>(part.tile)];
  std::vector<int64_t> slot(tiles.size(), 0);
  for (size_t tile = 1; tile < tiles.size(); ++tile) {
    slot[tile] = slot[tile - 1] + partials[tile - 1];
  }
  for (const Part& part : parts) {
    const auto tile = static_cast<size_t>(part.tile);
    MatmulItem item = tiles[tile];
    item.depth_begin = static_cast<uint16_t>(part.begin);
    item.depth_end = static_cast<uint16_t>(part.end);
    item.slot = static_cast<uint16_t>(slot[tile]);
    item.partials = static_cast<int16_t>(part.begin == 0 ? partials[tile] : -1);
    if (part.begin > 0) ++slot[tile];
    lists[static_cast<size_t>(part.cluster)].push_back(item);
  }
  return static_cast<int64_t>(parts.size()) - count;
}

}  // namespace

MatmulSchedule schedule_matmul(const MatmulForm& form, const MatmulWork& work) {
  Lists lists(static_cast<size_t>(work.blocks / form.cluster));
  const std::vector<MatmulItem> tiles = raster(form, work);
  const size_t rest = work.split_depth ? tiles.size() % lists.size() : 0;
  const size_t whole = tiles.size() - rest;
  for (size_t i = 0; i < whole; ++i) lists[i % lists.size()].push_back(tiles[i]);
  MatmulSchedule schedule;
  if (rest > 0) {
    schedule.slots = split({tiles.begin() + static_cast<int64_t>(whole), tiles.end()}, lists);
  }
  size_t rounds = 0;
  for (const auto& list : lists) rounds = std::max(rounds, list.size());
  schedule.rounds = static_cast<int64_t>(rounds);
  schedule.items.resize(rounds * lists.size());
  for (size_t cluster = 0; cluster < lists.size(); ++cluster) {
    for (size_t round = 0; round < lists[cluster].size(); ++round) {
      schedule.items[round * lists.size() + cluster] = lists[cluster][round];
    }
  }
  return schedule;
}

}  // namespace sgtc::kernels
