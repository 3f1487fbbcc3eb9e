// Threads that share the blocks of kernel calls.
//
// A call of n blocks is cut into one contiguous range per thread, by a rule of n and the number of
// threads alone. Between calls threads spin for a short time and then sleep: the next call of a
// step comes within microseconds, while a loader or a checkpoint may take longer. Where there are
// more threads than CPUs, nobody spins.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <vector>

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

  /// Runs all blocks of a kernel and returns when they are done.
  void run(decltype(SgtcKernel::function) function, void* const* arguments, int64_t blocks,
           int64_t micro_batch);

 private:
  struct Worker {
    ThreadPool* pool = nullptr;
    int64_t index = 0;
    pthread_t thread = {};
  };

  static void* work(void* worker);
  void run_part(int64_t index) const;
  void pin(pthread_t thread, int64_t index) const;

  int64_t threads_ = 1;
  int spins_ = 0;
  bool binds_ = false;
  std::vector<int> allowed_cpus_;
  std::vector<Worker> workers_;

  // The call that is running; written before `started_` counts it.
  decltype(SgtcKernel::function) function_ = nullptr;
  void* const* arguments_ = nullptr;
  int64_t blocks_ = 0;
  int64_t micro_batch_ = 0;
  bool stopping_ = false;
  uint32_t parts_ = 0;    // of other threads, in all calls
  DoneCounter started_;   // calls
  DoneCounter finished_;  // parts of other threads
};

/// True if the user does not want threads bound to CPUs: OMP_PROC_BIND=false.
bool binding_is_off();

/// CPUs in the affinity mask of the process.
std::vector<int> allowed_cpus();

/// `requested` if positive, else OMP_NUM_THREADS, else `share`: the CPUs of this rank.
int64_t thread_count(int64_t requested, int64_t share);

}  // namespace sgtc::runtime
