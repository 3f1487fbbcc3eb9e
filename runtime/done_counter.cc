#include "done_counter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace sgtc::runtime {

// Either this sees that others wait, or they see the new number before they sleep.
void DoneCounter::count(uint32_t number) {
  done_.fetch_add(number, std::memory_order_seq_cst);
  if (waiting_.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &done_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void DoneCounter::wait_for(uint32_t number, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (has_reached(number, std::memory_order_acquire)) return;
    __builtin_ia32_pause();
  }
  if (has_reached(number, std::memory_order_acquire)) return;
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  for (uint32_t done; static_cast<int32_t>((done = done_.load()) - number) < 0;) {
    syscall(SYS_futex, &done_, FUTEX_WAIT_PRIVATE, done, nullptr, nullptr, 0);
  }
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace sgtc::runtime
