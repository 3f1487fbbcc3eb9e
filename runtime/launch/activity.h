// What a rank is doing, for messages about ranks that were lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace sgtc::runtime {

struct Activity {
  int64_t step = 0;  // 0: no step yet
  int64_t micro_batch = 0;
  char entry[64] = "";  // a communication; empty: computing
  int64_t turns = 0;    // of the device to work, twice their number; odd: it works

  /// Whether the rank does nothing but run its device.
  bool on_device() const { return turns % 2 == 1; }
};

/// "step 12, all_reduce_3 of micro-batch 0"; "step 12"; "start-up".
std::string describe(const Activity& activity);

/// One Activity that any thread writes and reads, without locks. What two threads write at the same
/// moment may be mixed.
class CurrentActivity {
 public:
  /// `entry` must live as long as this, and may be null.
  void set(int64_t step, const char* entry, int64_t micro_batch);
  /// The device begins to work, or the rank no longer waits for it.
  void turn() { turns_.fetch_add(1); }
  Activity get() const;

 private:
  // A sequence lock: odd while a writer is at work.
  std::atomic<uint64_t> version_{0};
  std::atomic<int64_t> step_{0};
  std::atomic<int64_t> micro_batch_{0};
  std::atomic<const char*> entry_{nullptr};
  std::atomic<int64_t> turns_{0};
};

}  // namespace sgtc::runtime
