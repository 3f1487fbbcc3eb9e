#include "thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "failure.h"

namespace sgtc::runtime {
namespace {

constexpr int kSpins = 4000;  // some ten microseconds

// Returns when `word` is no longer `value`.
void wait_while(const std::atomic<uint32_t>& word, uint32_t value, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
    __builtin_ia32_pause();
  }
  while (word.load(std::memory_order_acquire) == value) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
  }
}

void wake_all(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

ThreadPool::ThreadPool(int64_t threads, bool may_bind)
    : threads_(threads), allowed_cpus_(allowed_cpus()) {
  const bool enough = static_cast<int64_t>(allowed_cpus_.size()) >= threads;
  if (enough) spins_ = kSpins;
  binds_ = may_bind && enough && threads > 1 && !binding_is_off();
  workers_.resize(static_cast<size_t>(threads - 1));
  pin(pthread_self(), 0);
  for (int64_t i = 1; i < threads; ++i) {
    Worker& worker = workers_[static_cast<size_t>(i - 1)];
    worker.pool = this;
    worker.index = i;
    if (pthread_create(&worker.thread, nullptr, work, &worker) != 0) {
      die("threads", format("cannot start thread %ld", static_cast<long>(i + 1)),
          "use fewer with --threads");
    }
    pin(worker.thread, i);
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  wake_all(generation_);
  for (const Worker& worker : workers_) pthread_join(worker.thread, nullptr);
}

void ThreadPool::pin(pthread_t thread, int64_t index) const {
  if (!binds_) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(allowed_cpus_[static_cast<size_t>(index)], &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

void* ThreadPool::work(void* argument) {
  const Worker& worker = *static_cast<const Worker*>(argument);
  ThreadPool& pool = *worker.pool;
  for (uint32_t seen = 0;; ++seen) {
    wait_while(pool.generation_, seen, pool.spins_);
    if (pool.stopping_) return nullptr;
    pool.run_part(worker.index);
    if (pool.unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_all(pool.unfinished_);
  }
}

void ThreadPool::run_part(int64_t index) const {
  const int64_t begin = blocks_ * index / threads_;
  const int64_t end = blocks_ * (index + 1) / threads_;
  if (begin < end) function_(arguments_, begin, end, micro_batch_);
}

void ThreadPool::run(decltype(SgtcKernel::function) function, void* const* arguments,
                     int64_t blocks, int64_t micro_batch) {
  if (threads_ == 1 || blocks <= 1) {
    if (blocks > 0) function(arguments, 0, blocks, micro_batch);
    return;
  }
  function_ = function;
  arguments_ = arguments;
  blocks_ = blocks;
  micro_batch_ = micro_batch;
  unfinished_.store(static_cast<uint32_t>(threads_ - 1), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  wake_all(generation_);
  run_part(0);
  for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) {
    wait_while(unfinished_, left, spins_);
  }
}

bool binding_is_off() {
  const char* text = std::getenv("OMP_PROC_BIND");
  return text && (std::string_view(text) == "false" || std::string_view(text) == "FALSE");
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int64_t thread_count(int64_t requested, int64_t share) {
  if (requested > 0) return requested;
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int64_t wanted = text ? std::strtoll(text, nullptr, 10) : 0;
  return wanted > 0 ? wanted : share;
}

}  // namespace sgtc::runtime
