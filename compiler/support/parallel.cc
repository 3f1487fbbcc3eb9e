#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sgtc {
namespace {

// What the threads of one loop share.
struct Loop {
  int64_t count;
  const std::function<void(int64_t)>& body;
  std::atomic<int64_t> next = 0;
  std::mutex mutex = {};
  std::exception_ptr failure = nullptr;
  int64_t failed_index = 0;

  void fail(int64_t index) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (failure == nullptr || index < failed_index) {
      failure = std::current_exception();
      failed_index = index;
    }
    next = count;
  }

  void work() {
    for (int64_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        fail(i);
      }
    }
  }
};

}  // namespace

void parallel_for(int64_t count, int jobs, const std::function<void(int64_t)>& body) {
  Loop loop{count, body};
  const int64_t workers = std::min<int64_t>(std::max(jobs, 1), count);
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 1; i < workers; ++i) threads.emplace_back([&loop] { loop.work(); });
    loop.work();
  }
  if (loop.failure != nullptr) std::rethrow_exception(loop.failure);
}

}  // namespace sgtc
