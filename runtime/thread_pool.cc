#include "thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "failure.h"

namespace sgtc::runtime {
namespace {

constexpr int kSpins = 4000;  // some ten microseconds
// Kernels keep what they pack on the stack: some MiB, and the default may be two.
constexpr size_t kStackBytes = size_t{16} << 20;

}  // namespace

ThreadPool::ThreadPool(int64_t threads, bool may_bind)
    : threads_(threads), allowed_cpus_(allowed_cpus()), ranges_(static_cast<size_t>(threads)) {
  const bool enough = static_cast<int64_t>(allowed_cpus_.size()) >= threads;
  if (enough) spins_ = kSpins;
  binds_ = may_bind && enough && threads > 1 && !binding_is_off();
  workers_.resize(static_cast<size_t>(threads - 1));
  pin(pthread_self(), 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  for (int64_t i = 1; i < threads; ++i) {
    Worker& worker = workers_[static_cast<size_t>(i - 1)];
    worker.pool = this;
    worker.index = i;
    if (pthread_create(&worker.thread, &attributes, work, &worker) != 0) {
      die("threads", format("cannot start thread %ld", static_cast<long>(i + 1)),
          "use fewer with --threads");
    }
    pin(worker.thread, i);
  }
  pthread_attr_destroy(&attributes);
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  started_.count();
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
  for (uint32_t call = 1;; ++call) {
    pool.started_.wait_for(call, pool.spins_);
    if (pool.stopping_) return nullptr;
    pool.take_part(worker.index);
  }
}

// A thread that comes late may find the blocks of a later call: they are as good.
void ThreadPool::take_part(int64_t index) {
  BlockRange& own = ranges_[static_cast<size_t>(index)];
  for (Blocks blocks; (blocks = own.take_front()).size() > 0;) run_blocks(blocks);
  for (;;) {
    const auto longest = std::max_element(
        ranges_.begin(), ranges_.end(),
        [](const BlockRange& a, const BlockRange& b) { return a.size() < b.size(); });
    if (longest->size() == 0) return;
    run_blocks(longest->take_back());
  }
}

void ThreadPool::run_blocks(Blocks blocks) {
  if (blocks.size() == 0) return;
  function_(arguments_, blocks.begin, blocks.end, micro_batch_);
  finished_.count(blocks.size());
}

void ThreadPool::run(decltype(SgtcKernel::function) function, void* const* arguments,
                     int64_t blocks, int64_t micro_batch) {
  if (threads_ == 1 || blocks <= 1) {
    if (blocks > 0) function(arguments, 0, blocks, micro_batch);
    return;
  }
  function_ = function;
  arguments_ = arguments;
  micro_batch_ = micro_batch;
  blocks_ += static_cast<uint32_t>(blocks);
  const auto bound = [&](int64_t i) { return static_cast<uint32_t>(blocks * i / threads_); };
  for (int64_t i = 0; i < threads_; ++i) {
    ranges_[static_cast<size_t>(i)].fill({bound(i), bound(i + 1)});
  }
  started_.count();
  take_part(0);
  finished_.wait_for(blocks_, spins_);
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
