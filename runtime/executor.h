// Runs prepared schedules on the CPU.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "access_check.h"
#include "communication/rank_communicators.h"
#include "done_counter.h"
#include "prepared_schedule.h"
#include "thread_pool.h"
#include "trace.h"

namespace sgtc::runtime {

class Executor {
 public:
  /// All must outlive this. With communicators it starts the thread that communicates; without
  /// (null) everything runs in the caller's thread and the pool. `check`: of each kernel call;
  /// null: none.
  Executor(ThreadPool& threads, RankCommunicators* communicators, AccessCheck* check = nullptr);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  /// Runs every entry and returns when all is done. `step` is for messages; `trace` may be null.
  void run(const PreparedSchedule& schedule, int64_t step, Trace* trace);

 private:
  static void* start_thread(void* executor);
  void serve();
  void compute(const PreparedSchedule::Computation& computation);
  void call(const PreparedSchedule::Call& call, const std::string& task);
  void communicate();
  void issue(const PreparedSchedule::Issue& issue);
  void keep_to_spare_cpus() const;

  ThreadPool& threads_;
  RankCommunicators* communicators_;
  AccessCheck* check_;
  bool spare_cpu_ = false;  // the communicating thread has one
  pthread_t thread_ = {};

  // What is running; written before `started_` counts on.
  const PreparedSchedule* schedule_ = nullptr;
  int64_t step_ = 0;
  Trace* trace_ = nullptr;
  bool stopping_ = false;
  DoneCounter started_;       // schedules
  DoneCounter computed_;      // computations of this schedule
  DoneCounter communicated_;  // issues of this schedule
};

}  // namespace sgtc::runtime
