#include "done_counter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sgtc::runtime {

// Either this sees that the other waits, or the other sees the new number before it sleeps.
void DoneCounter::count() {
  done_.fetch_add(1, std::memory_order_seq_cst);
  if (waiting_.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &done_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void DoneCounter::wait_for(uint32_t number, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (done_.load(std::memory_order_acquire) >= number) return;
    __builtin_ia32_pause();
  }
  if (done_.load(std::memory_order_acquire) >= number) return;
  waiting_.store(1, std::memory_order_seq_cst);
  for (uint32_t done; (done = done_.load(std::memory_order_seq_cst)) < number;) {
    syscall(SYS_futex, &done_, FUTEX_WAIT_PRIVATE, done, nullptr, nullptr, 0);
  }
  waiting_.store(0, std::memory_order_relaxed);
}

}  // namespace sgtc::runtime
