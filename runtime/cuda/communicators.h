// The communicators of a rank between GPUs: NCCL puts communications into streams, as kernels.
//
// One for each of the plan's that this rank is a member of, made in the plan's order, with as many
// thread blocks as the plan gives it and clusters off, so that sums have one order and blocks need
// no neighbours to start. Each communication runs once before anything is captured: NCCL then makes
// its connections, which takes memory and time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "communication/groups.h"
#include "communication/peers.h"
#include "cuda/device_arena.h"
#include "cuda/driver.h"
#include "cuda/launches.h"
#include "cuda/nccl.h"
#include "cuda/peer_watch.h"
#include "plan/format.h"

namespace sgtc::runtime::cuda {

class Communicators {
 public:
  /// Connects all ranks of the job: a collective of them. The parts of all communications lie in
  /// the arena. All must outlive this. Dies for a plan that contradicts itself.
  Communicators(const Driver& driver, const Nccl& nccl, const Peers& peers, const plan::Plan& plan,
                const DeviceArena& arena, Stream stream);

  /// Runs the communications among the launches, in order: a collective of the ranks that take part
  /// in them. What they write in the arena is worthless.
  void warm_up(const std::vector<Launch>& launches) const;
  /// Puts the communications of a launch into the stream.
  void issue(const Launch& launch, Stream stream) const;
  /// The same as a graph, for the caller to destroy.
  Graph capture(const Launch& launch) const;
  /// Ranks that take part in a communication.
  int64_t size(const Launch::Communication& communication) const {
    return find(communication).size;
  }
  /// Tells the job in which step this rank is, and in which communication if `launch` is known to
  /// be under way; null: any of the step.
  void enter(int64_t step, const Launch* launch) const;

 private:
  struct Member {
    NcclCommunicator communicator = nullptr;
    int64_t size = 0;
  };

  void connect(const RankGroup& group, const NcclId& id, int64_t blocks);
  const Member& find(const Launch::Communication& communication) const;
  void add(const Launch::Communication& communication, Stream stream) const;

  const Driver& driver_;
  const Nccl& nccl_;
  const Peers& peers_;
  const DeviceArena& arena_;
  const Stream stream_;
  std::map<std::string, Member> members_;
  std::unique_ptr<PeerWatch> watch_;
};

/// Dies if two ranks would use the same GPU, whose ordinal in this process is `gpu`. A collective
/// of all ranks.
void check_apart(const Driver& driver, const Peers& peers, int gpu);

}  // namespace sgtc::runtime::cuda
