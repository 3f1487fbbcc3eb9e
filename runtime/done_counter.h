// How threads of a rank wait for each other.
#pragma once

#include <atomic>
#include <cstdint>

namespace sgtc::runtime {

/// How many things some threads have done, modulo 2^32; others wait for numbers. Counting costs a
/// system call only if one of them sleeps.
class DoneCounter {
 public:
  /// While nobody counts or waits.
  void reset() { done_.store(0, std::memory_order_relaxed); }
  void count(uint32_t number = 1);
  /// Returns when at least `number` things are done, and less than 2^31 more: after `spins` looks
  /// it sleeps.
  void wait_for(uint32_t number, int spins);
  /// True while somebody sleeps in `wait_for`.
  bool is_waited_for() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  bool has_reached(uint32_t number, std::memory_order order) const {
    return static_cast<int32_t>(done_.load(order) - number) >= 0;
  }

  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<uint32_t> waiting_{0};
};

}  // namespace sgtc::runtime
