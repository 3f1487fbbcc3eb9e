#include "signals.h"

#include <signal.h>

namespace sgtc::runtime {
namespace {

volatile sig_atomic_t requested = 0;

void on_signal(int) {
  requested = 1;
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
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
