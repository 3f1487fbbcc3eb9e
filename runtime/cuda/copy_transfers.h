// Transfers between GPUs of one host by their copy engines, which take no multiprocessor from
// kernels, where NCCL takes some for as long as a transfer waits and moves.
//
// The sender copies straight into the receiver's arena, to the place that the plan gives the
// receiver, which tells it once. Two words for each communicator and pair of ranks order the
// copies:
//
//   sender                                   receiver
//                                            credit := 1, when the place may be overwritten
//   wait until credit is 1; credit := 0
//   copy; flag := 1
//                                            wait until flag is 1; flag := 0
//
// A word lies in the memory of the rank that waits for it, and waiting takes no multiprocessor
// either. All values are constants, so a captured transfer can be replayed, and since transfers of
// one communicator between two ranks follow each other on both, two words serve them all. A
// transfer ends when both ends have issued it, as one of NCCL does: what the plan's certificate
// against deadlock takes for granted.
//
// NCCL is left all transfers of plans that issue several communications as one, which none of the
// compiler's does: their transfers would have to wait beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "communication/groups.h"
#include "communication/peers.h"
#include "cuda/device_arena.h"
#include "cuda/driver.h"
#include "cuda/launches.h"
#include "cuda/nccl.h"
#include "cuda/peer_memory.h"
#include "plan/format.h"

namespace sgtc::runtime::cuda {

class CopyTransfers {
 public:
  /// Connects ranks of one host that transfer to each other: a collective of all ranks of the job.
  /// `launches` are all of this rank's, `gpu` is the driver's number of its. SGTC_COPY_ENGINE=0 in
  /// the environment leaves all transfers of this rank to NCCL. All but the launches must outlive
  /// this.
  CopyTransfers(const Driver& driver, const Nccl& nccl, const Peers& peers, const plan::Plan& plan,
                const DeviceArena& arena, int gpu, Stream stream,
                const std::vector<Launch>& launches);

  /// Whether the launch is done here.
  bool does(const Launch& launch) const;
  /// Whether everything that the ranks of the group communicate is done here. All ranks of the job
  /// find the same.
  bool does_all_of(const RankGroup& group) const;
  /// Puts a launch that is done here into the stream.
  void issue(const Launch& launch, Stream stream) const;

  /// Ranks that this one is connected to.
  const std::vector<int64_t>& connected() const { return connected_; }

 private:
  struct Copy {
    DeviceAddress to = 0;
    DeviceAddress from = 0;
    size_t bytes = 0;
  };
  // Of a send: its own credit and the receiver's flag. Of a receive: its own flag and the sender's
  // credit.
  struct Transfer {
    bool sends = false;
    DeviceAddress own_word = 0;
    DeviceAddress other_word = 0;
    std::vector<Copy> copies;  // of a send
  };
  // Where this rank's receives want their parts: offsets in its arena.
  struct Place {
    DeviceAddress offset = 0;
    size_t bytes = 0;
  };
  using Places = std::vector<std::vector<Place>>;  // of receives, in the order of issue
  using Channel = std::pair<size_t, int64_t>;      // communicator, by index in the plan; rank

  // The channel of a launch that is one transfer; whether it is.
  bool find_channel(const Launch& launch, Channel& channel) const;
  std::string list_places(const std::vector<Launch>& launches) const;
  std::map<Channel, Places> parse_places(const std::string& text) const;
  void add_transfers(const std::vector<Launch>& launches, const std::vector<std::string>& places);
  std::vector<Copy> copies_of(const CommunicationRequest& request, const std::vector<Place>& places,
                              int64_t receiver) const;
  DeviceAddress word(DeviceAddress words, size_t communicator, int64_t rank, bool flag) const;

  const Driver& driver_;
  const int64_t rank_;
  const int64_t world_;
  const DeviceArena& arena_;
  std::map<std::string_view, size_t> communicators_;  // their index in the plan
  std::map<std::string_view, RankGroup> groups_;      // this rank's, by communicator
  unsigned wait_flags_ = 0;
  DeviceAddress words_ = 0;
  std::optional<PeerMemory> memory_;  // none for a plan without transfers
  std::vector<int64_t> connected_;
  std::map<const plan::Entry*, Transfer> transfers_;
};

}  // namespace sgtc::runtime::cuda
