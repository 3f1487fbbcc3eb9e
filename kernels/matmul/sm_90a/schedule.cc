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

/// Fewer tiles than clusters: every cluster gets the same number of k-blocks, at most.
int64_t split(const std::vector<MatmulItem>& tiles, Lists& lists) {
  const auto clusters = static_cast<int64_t>(lists.size());
  const auto count = static_cast<int64_t>(tiles.size());
  const int64_t depth = tiles.front().depth_end;
  const int64_t share = ceil_divide(count * depth, clusters);
  int64_t slots = 0;
  int64_t cluster = count;  // the one that the next tail goes to
  int64_t room = share;
  for (int64_t i = 0; i < count; ++i) {
    MatmulItem head = tiles[static_cast<size_t>(i)];
    head.depth_end = static_cast<uint16_t>(share);
    head.slot = static_cast<uint16_t>(slots);
    for (int64_t begin = share; begin < depth;) {
      MatmulItem tail = head;
      const int64_t length = std::min(room, depth - begin);
      tail.depth_begin = static_cast<uint16_t>(begin);
      tail.depth_end = static_cast<uint16_t>(begin + length);
      tail.slot = static_cast<uint16_t>(slots++);
      tail.partials = -1;
      lists[static_cast<size_t>(cluster)].push_back(tail);
      ++head.partials;
      begin += length;
      room -= length;
      if (room == 0) {
        ++cluster;
        room = share;
      }
    }
    lists[static_cast<size_t>(i)].push_back(head);
  }
  return slots;
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
