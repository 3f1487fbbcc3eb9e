#include "attention/sm_90a/schedule.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace sgtc::kernels {
namespace {

/// Heads whose keys and values are in use at the same time, half as many as blocks: a head of 1024
/// keys of 64 elements has 256 KiB.
constexpr int64_t kHeadsTogether = 66;

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

AttentionItem item_of(const AttentionWork& work, int64_t head_index, int64_t group) {
  const int64_t head = head_index % work.heads;
  AttentionItem item = {};
  item.batch = static_cast<uint32_t>(head_index / work.heads);
  item.head = static_cast<uint16_t>(head);
  item.key_head = static_cast<uint16_t>(head / (work.heads / work.key_heads));
  item.group = static_cast<uint32_t>(group);
  item.is_work = 1;
  return item;
}

/// In keys, with what starting and ending an item costs.
int64_t cost_of(const AttentionForm& form, const AttentionWork& work, int64_t group) {
  const int64_t queries = (group + 1) * form.consumers * kAttentionQueries;
  const int64_t keys = work.causal ? std::min(queries, work.keys) : work.keys;
  return ceil_divide(keys, form.keys) * form.keys + 128;
}

}  // namespace

AttentionSchedule schedule_attention(const AttentionForm& form, const AttentionWork& work) {
  std::vector<std::vector<AttentionItem>> lists(static_cast<size_t>(work.blocks));
  using Load = std::pair<int64_t, size_t>;  // of a block
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (size_t block = 0; block < lists.size(); ++block) loads.emplace(0, block);
  const int64_t heads = work.batch * work.heads;
  const int64_t groups = ceil_divide(work.queries, form.consumers * kAttentionQueries);
  for (int64_t first = 0; first < heads; first += kHeadsTogether) {
    for (int64_t group = groups - 1; group >= 0; --group) {
      for (int64_t head = first; head < std::min(heads, first + kHeadsTogether); ++head) {
        const auto [load, block] = loads.top();
        loads.pop();
        lists[block].push_back(item_of(work, head, group));
        loads.emplace(load + cost_of(form, work, group), block);
      }
    }
  }
  size_t rounds = 0;
  for (const auto& list : lists) rounds = std::max(rounds, list.size());
  AttentionSchedule schedule = {static_cast<int64_t>(rounds), {}};
  schedule.items.resize(rounds * lists.size());
  for (size_t block = 0; block < lists.size(); ++block) {
    for (size_t round = 0; round < lists[block].size(); ++round) {
      schedule.items[round * lists.size() + block] = lists[block][round];
    }
  }
  return schedule;
}

}  // namespace sgtc::kernels
