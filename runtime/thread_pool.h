// Threads that share the blocks of kernel calls.
//
// The problem: cores are not equally fast. Some are made so, and any of them shares its execution
// units with a hardware thread of another process or is taken away for a while; a call that waits
// for the slowest of equal parts runs as slowly as that core. One queue of blocks for all would
// even that out, but its threads would find none of their last call's data in their caches.
// So a call of n blocks is cut into one contiguous range per thread, by a rule of n and the number
// of threads alone, and who is done with its own takes half of what is left of the longest other
// range. Results do not depend on it: blocks are independent.
//
// Between calls threads spin for a short time and then sleep: the next call of a step comes within
// microseconds, while a loader or a checkpoint may take longer. Where there are more threads than
// CPUs, nobody spins. A call ends when its blocks are done, not when all threads have noticed it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "block_range.h"
#include "done_counter.h"
#include "program.h"

namespace sgtc::runtime {

class ThreadPool {
 public:
  /// `threads` ranges per call, the caller's among them. If the pool may bind them, each thread
  /// stays on one CPU of the process's affinity mask, provided that there are enough of them and
  /// OMP_PROC_BIND is not "false".
  explicit ThreadPool(int64_t threads, bool may_bind = true);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int64_t size() const { return threads_; }
  /// The process's CPUs before threads were bound to some of them: thread i to the i-th.
  const std::vector<int>& cpus() const { return allowed_cpus_; }

  /// Runs all blocks of a kernel, fewer than 2^31, and returns when they are done.
  void run(decltype(SgtcKernel::function) function, void* const* arguments, int64_t blocks,
           int64_t micro_batch);

 private:
  struct Worker {
    ThreadPool* pool = nullptr;
    int64_t index = 0;
    pthread_t thread = {};
  };

  static void* work(void* worker);
  void take_part(int64_t index);
  void run_blocks(Blocks blocks);
  void pin(pthread_t thread, int64_t index) const;

  int64_t threads_ = 1;
  int spins_ = 0;
  bool binds_ = false;
  std::vector<int> allowed_cpus_;
  std::vector<Worker> workers_;

  // The call that is running; written before `ranges_` are filled.
  decltype(SgtcKernel::function) function_ = nullptr;
  void* const* arguments_ = nullptr;
  int64_t micro_batch_ = 0;
  std::vector<BlockRange> ranges_;  // of each thread
  std::atomic<bool> stopping_ = false;
  uint32_t blocks_ = 0;   // of all calls
  DoneCounter started_;   // calls
  DoneCounter finished_;  // blocks
};

/// True if the user does not want threads bound to CPUs: OMP_PROC_BIND=false.
bool binding_is_off();

/// CPUs in the affinity mask of the process.
std::vector<int> allowed_cpus();

/// `requested` if positive, else OMP_NUM_THREADS, else `share`: the CPUs of this rank.
int64_t thread_count(int64_t requested, int64_t share);

}  // namespace sgtc::runtime
