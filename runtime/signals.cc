#include "signals.h"

#include <signal.h>
#include <time.h>

namespace sgtc::runtime {
namespace {

// A launcher, `timeout` or a terminal may send one request several times.
constexpr time_t kSameRequestSeconds = 1;

volatile sig_atomic_t requested = 0;
timespec requested_at = {};

void on_signal(int number) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!requested) {
    requested_at = now;
    requested = 1;
  } else if (now.tv_sec > requested_at.tv_sec + kSameRequestSeconds) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

bool stop_requested() { return requested != 0; }

}  // namespace sgtc::runtime
