// Which block of an attention for sm_90a computes what, and in which order; made by the host.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/sm_90a/launch.h"

namespace sgtc::kernels {

struct AttentionWork {
  int64_t batch, heads, key_heads;  // heads is a multiple of key_heads
  int64_t queries, keys;
  bool causal;
  int64_t blocks;  // at most what is resident
};

struct AttentionSchedule {
  int64_t rounds = 0;
  std::vector<AttentionItem> items;  // [rounds, blocks], each list ends where is_work is 0
};

/// Each group of 64 * consumers queries of each head once. Heads come in groups whose keys and
/// values stay in the L2 cache, within them long items first, each to the block with the least
/// work. Heads must be fewer than 65536.
AttentionSchedule schedule_queries(int64_t consumers, const AttentionWork& work);

/// The same for groups of keys of the key heads, for the second kernel of the gradient.
AttentionSchedule schedule_keys(int64_t consumers, const AttentionWork& work);

}  // namespace sgtc::kernels
