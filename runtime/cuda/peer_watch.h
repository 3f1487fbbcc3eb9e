// The thread that looks after lost peers and failed communications while this rank waits for its
// GPU, where nothing else would: a communication whose peer is gone never ends.
#pragma once

#include <pthread.h>

#include <atomic>
#include <vector>

#include "communication/peers.h"
#include "cuda/nccl.h"

namespace sgtc::runtime::cuda {

class PeerWatch {
 public:
  /// Starts the thread, which ends the process when a peer is lost or a communicator has failed.
  PeerWatch(const Nccl& nccl, const Peers& peers, std::vector<NcclCommunicator> communicators);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

 private:
  static void* run(void* watch);
  void watch() const;

  const Nccl& nccl_;
  const Peers& peers_;
  const std::vector<NcclCommunicator> communicators_;
  std::atomic<bool> ending_{false};
  pthread_t thread_ = {};
};

}  // namespace sgtc::runtime::cuda
