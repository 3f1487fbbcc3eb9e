// How two threads of a rank wait for each other.
#pragma once

#include <atomic>
#include <cstdint>

namespace sgtc::runtime {

/// How many things one thread has done; another waits for numbers. Counting costs a system call
/// only if the other sleeps.
class DoneCounter {
 public:
  /// While nobody counts or waits.
  void reset() { done_.store(0, std::memory_order_relaxed); }
  void count();
  /// Returns when at least `number` things are done: after `spins` looks it sleeps.
  void wait_for(uint32_t number, int spins);
  /// True while somebody sleeps in `wait_for`.
  bool is_waited_for() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<uint32_t> waiting_{0};
};

}  // namespace sgtc::runtime
