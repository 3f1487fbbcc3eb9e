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

AttentionItem item_of(int64_t batch, int64_t head, int64_t key_head, int64_t group) {
  AttentionItem item = {};
  item.batch = static_cast<uint32_t>(batch);
  item.head = static_cast<uint16_t>(head);
  item.key_head = static_cast<uint16_t>(key_head);
  item.group = static_cast<uint32_t>(group);
  item.is_work = 1;
  return item;
}

/// Hands out items, each to the block with the least work so far.
class Dealer {
 public:
  explicit Dealer(int64_t blocks) : lists_(static_cast<size_t>(blocks)) {
    for (size_t block = 0; block < lists_.size(); ++block) loads_.emplace(0, block);
  }

  void deal(const AttentionItem& item, int64_t cost) {
    const auto [load, block] = loads_.top();
    loads_.pop();
    lists_[block].push_back(item);
    loads_.emplace(load + cost, block);
  }

  AttentionSchedule schedule() const {
    size_t rounds = 0;
    for (const auto& list : lists_) rounds = std::max(rounds, list.size());
    AttentionSchedule schedule = {static_cast<int64_t>(rounds), {}};
    schedule.items.resize(rounds * lists_.size());
    for (size_t block = 0; block < lists_.size(); ++block) {
      for (size_t round = 0; round < lists_[block].size(); ++round) {
        schedule.items[round * lists_.size() + block] = lists_[block][round];
      }
    }
    return schedule;
  }

 private:
  using Load = std::pair<int64_t, size_t>;  // of a block
  std::vector<std::vector<AttentionItem>> lists_;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads_;
};

/// Starting and ending an item costs about as much as this many keys or queries.
constexpr int64_t kItemCost = 128;

}  // namespace

AttentionSchedule schedule_queries(int64_t consumers, const AttentionWork& work) {
  Dealer dealer(work.blocks);
  const int64_t rows = consumers * kAttentionRows;
  const int64_t heads = work.batch * work.heads;
  for (int64_t first = 0; first < heads; first += kHeadsTogether) {
    for (int64_t group = ceil_divide(work.queries, rows); group-- > 0;) {
      const int64_t keys = work.causal ? std::min(work.keys, (group + 1) * rows) : work.keys;
      for (int64_t i = first; i < std::min(heads, first + kHeadsTogether); ++i) {
        const int64_t head = i % work.heads;
        const int64_t key_head = head / (work.heads / work.key_heads);
        dealer.deal(item_of(i / work.heads, head, key_head, group), keys + kItemCost);
      }
    }
  }
  return dealer.schedule();
}

AttentionSchedule schedule_keys(int64_t consumers, const AttentionWork& work) {
  Dealer dealer(work.blocks);
  const int64_t rows = consumers * kAttentionRows;
  const int64_t heads = work.batch * work.key_heads;
  const int64_t shared = work.heads / work.key_heads;
  for (int64_t first = 0; first < heads; first += kHeadsTogether) {
    for (int64_t group = 0; group < ceil_divide(work.keys, rows); ++group) {
      const int64_t before = work.causal ? std::min(work.queries, group * rows) : 0;
      for (int64_t i = first; i < std::min(heads, first + kHeadsTogether); ++i) {
        const int64_t key_head = i % work.key_heads;
        dealer.deal(item_of(i / work.key_heads, key_head * shared, key_head, group),
                    shared * (work.queries - before) + kItemCost);
      }
    }
  }
  return dealer.schedule();
}

}  // namespace sgtc::kernels
