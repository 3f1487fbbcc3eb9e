#include "cuda/peer_watch.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

constexpr useconds_t kInterval = 50'000;  // microseconds

}  // namespace

PeerWatch::PeerWatch(const Nccl& nccl, const Peers& peers,
                     std::vector<NcclCommunicator> communicators)
    : nccl_(nccl), peers_(peers), communicators_(std::move(communicators)) {
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread_, nullptr, run, this) != 0) {
    die("threads", "cannot start the one that watches communicators");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PeerWatch::~PeerWatch() {
  ending_ = true;
  pthread_join(thread_, nullptr);
}

void* PeerWatch::run(void* watch) {
  static_cast<PeerWatch*>(watch)->watch();
  return nullptr;
}

void PeerWatch::watch() const {
  while (!ending_) {
    usleep(kInterval);
    if (peers_.watch.lost()) peers_.watch.exit_lost();
    for (NcclCommunicator communicator : communicators_) {
      const auto lock = nccl_.lock();
      nccl_.look_at(communicator);
    }
  }
}

}  // namespace sgtc::runtime::cuda
