// Between the files that implement gloo_network.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator.h"
#include "gloo_network.h"

namespace sgtc::runtime {

/// Memory that is sent or received; ends the process when the plugin fails.
class GlooBuffer {
 public:
  GlooBuffer(const GlooNetwork& network, const std::string& communicator, unsigned char* data,
             int64_t bytes);
  GlooBuffer(const GlooBuffer&) = delete;
  GlooBuffer& operator=(const GlooBuffer&) = delete;
  ~GlooBuffer();

  void send(int64_t rank, uint64_t tag, int64_t bytes);
  void receive(int64_t rank, uint64_t tag, int64_t bytes);
  /// True if nothing is under way any more; waits for a moment.
  bool is_done();

 private:
  enum class State { idle, sending, receiving };
  void post(int result, State state);

  const GlooNetwork& network_;
  const std::string& communicator_;
  void* handle_;
  State state_ = State::idle;
};

/// The members of a group, with memory for exchanges of pieces between all of them: as many at a
/// time as there are lanes.
class GlooGroup {
 public:
  GlooGroup(const GlooNetwork& network, const RankGroup& group, int64_t index, int64_t member);

  int64_t members() const { return static_cast<int64_t>(group_.ranks.size()); }
  int64_t member() const { return member_; }
  int64_t piece_bytes() const { return piece_bytes_; }
  const std::string& name() const { return group_.communicator; }
  const GlooNetwork& network() const { return network_; }
  static constexpr int64_t kLanes = 2;
  int64_t rank_of(int64_t member) const { return group_.ranks[static_cast<size_t>(member)]; }
  /// Of transfers between two members.
  uint64_t transfer_tag() const { return tag_; }

  /// What goes to and came from another member in a lane.
  unsigned char* outgoing(int64_t lane, int64_t member) {
    return memory_.data() + (2 * lane * members() + member) * piece_bytes_;
  }
  unsigned char* incoming(int64_t lane, int64_t member) {
    return outgoing(lane, members() + member);
  }
  /// Begins to exchange pieces with `member`; both sides know both sizes.
  void exchange(int64_t lane, int64_t member, int64_t outgoing_bytes, int64_t incoming_bytes);
  /// True if all exchanges of a lane are done; waits for a moment.
  bool is_done(int64_t lane);

  /// Collectives use the memory in the order of their issue.
  int64_t issue() { return issued_++; }
  bool is_turn(int64_t ticket) const { return ticket == finished_; }
  void finish() { ++finished_; }

 private:
  const GlooNetwork& network_;
  const RankGroup& group_;
  uint64_t tag_;
  int64_t member_;
  int64_t piece_bytes_ = 0;
  int64_t issued_ = 0;
  int64_t finished_ = 0;
  std::vector<unsigned char> memory_;
  std::vector<std::unique_ptr<GlooBuffer>> sends_;  // per lane and member; null: this one
  std::vector<std::unique_ptr<GlooBuffer>> receives_;
};

std::unique_ptr<Operation> make_gloo_transfer(GlooGroup& group,
                                              const CommunicationRequest& request);
std::unique_ptr<Operation> make_gloo_collective(GlooGroup& group,
                                                const CommunicationRequest& request);

}  // namespace sgtc::runtime
