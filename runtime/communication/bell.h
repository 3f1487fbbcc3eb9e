// How ranks that share memory wake each other up.
#pragma once

#include <atomic>
#include <cstdint>

namespace sgtc::runtime {

/// Lies in memory that a rank and its peers share. The rank sleeps on it; a peer rings it after
/// each thing that it did for the rank. Ringing costs a system call only if the rank sleeps.
///
/// No ring is missed: the rank says that it is about to sleep, looks once more whether it can go
/// on, and only then sleeps; a peer that publishes later finds the rank asleep.
class alignas(64) Bell {
 public:
  /// By a peer, after what it published.
  void ring();
  /// By the rank, before it looks for the last time.
  void prepare_to_sleep();
  /// Returns when the bell was rung since `prepare_to_sleep`, or after `nanoseconds`.
  void sleep(int64_t nanoseconds);
  /// Instead of `sleep`, when there was something to do.
  void stay_awake();

 private:
  std::atomic<uint32_t> sleeping_{0};
};

}  // namespace sgtc::runtime
