#include "bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace sgtc::runtime {

void Bell::ring() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_relaxed) == 0) return;
  sleeping_.store(0, std::memory_order_relaxed);
  syscall(SYS_futex, &sleeping_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void Bell::prepare_to_sleep() {
  sleeping_.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Bell::sleep(int64_t nanoseconds) {
  const timespec timeout = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  syscall(SYS_futex, &sleeping_, FUTEX_WAIT, 1, &timeout, nullptr, 0);
  sleeping_.store(0, std::memory_order_relaxed);
}

void Bell::stay_awake() { sleeping_.store(0, std::memory_order_relaxed); }

}  // namespace sgtc::runtime
