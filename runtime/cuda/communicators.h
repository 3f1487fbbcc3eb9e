// The communicators of a rank between GPUs: copy engines do the transfers inside a host, NCCL puts
// other communications into streams, as kernels.
//
// NCCL has one for each of the plan's that this rank is a member of and that needs it, made in the
// plan's order, with as many thread blocks as the plan gives it and clusters off, so that sums have
// one order and blocks need no neighbours to start. Each communication runs once before anything is
// captured: NCCL then makes its connections, which takes memory and time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "communication/groups.h"
#include "communication/peers.h"
#include "cuda/copy_transfers.h"
#include "cuda/device_arena.h"
#include "cuda/driver.h"
#include "cuda/launches.h"
#include "cuda/nccl.h"
#include "cuda/peer_watch.h"
#include "plan/format.h"

namespace sgtc::runtime::cuda {

class Communicators {
 public:
  /// Connects all ranks of the job, and runs the communications among the launches, which are all
  /// of this rank's, in order: a collective of all ranks. The parts of the communications lie in
  /// the arena, and what they write there is worthless. `gpu` is the driver's number of this
  /// rank's. All but the launches must outlive this. Dies for a plan that contradicts itself.
  Communicators(const Driver& driver, const Nccl& nccl, const Peers& peers, const plan::Plan& plan,
                const DeviceArena& arena, int gpu, Stream stream,
                const std::vector<Launch>& launches);

  /// Puts the communications of a launch into the stream.
  void issue(const Launch& launch, Stream stream) const;
  /// The same as a graph, for the caller to destroy.
  Graph capture(const Launch& launch) const;
  /// Ranks that take part in a communication.
  int64_t size(const Launch::Communication& communication) const {
    return find(communication).size;
  }
  /// Ranks to and from which copy engines transfer.
  const std::vector<int64_t>& connected_by_copies() const { return copies_.connected(); }
  /// Tells the job in which step this rank is, and in which communication if `launch` is known to
  /// be under way; null: any of the step.
  void enter(int64_t step, const Launch* launch) const;

 private:
  struct Member {
    NcclCommunicator communicator = nullptr;  // null: it is not needed
    int64_t size = 0;
  };

  void connect(const RankGroup& group, const NcclId& id, int64_t blocks);
  void warm_up(const std::vector<Launch>& launches) const;
  const Member& find(const Launch::Communication& communication) const;
  void add(const Launch::Communication& communication, Stream stream) const;

  const Driver& driver_;
  const Nccl& nccl_;
  const Peers& peers_;
  const DeviceArena& arena_;
  const Stream stream_;
  const CopyTransfers copies_;
  std::map<std::string, Member> members_;
  std::unique_ptr<PeerWatch> watch_;
};

/// Dies if two ranks would use the same GPU, whose ordinal in this process is `gpu`, unless rank 0
/// has SGTC_SHARE_GPU=1 in its environment. A collective of all ranks.
void check_apart(const Driver& driver, const Peers& peers, int gpu);

}  // namespace sgtc::runtime::cuda
