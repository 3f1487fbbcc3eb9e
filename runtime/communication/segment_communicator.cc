#include "segment_communicator.h"

#include <map>
#include <utility>

#include "plan_memory.h"
#include "segment_parts.h"

namespace sgtc::runtime {
namespace {

class SegmentCommunicator : public Communicator {
 public:
  SegmentCommunicator(const SegmentLayout::GroupLayout& layout, unsigned char* base, int64_t member)
      : state_{GroupMemory(layout, base), member} {}

  int64_t member() const override { return state_.member; }
  int64_t size() const override { return state_.memory.members(); }

  std::unique_ptr<Operation> prepare(const CommunicationRequest& request) override {
    check_request(request, size(), state_.memory.name());
    if (request.kind == CommunicationKind::send) {
      return make_transfer(channel(member(), request.peer), request);
    }
    if (request.kind == CommunicationKind::receive) {
      return make_transfer(channel(request.peer, member()), request);
    }
    if (state_.memory.piece_bytes() == 0) {
      die_of_bad_plan("communicator " + state_.memory.name() + " is for sends and receives");
    }
    return make_collective(state_, request);
  }

 private:
  SegmentChannel& channel(int64_t from, int64_t to) {
    SegmentChannel& channel = channels_[{from, to}];
    if (channel.counters) return channel;
    const SegmentLayout::Channel* found = state_.memory.find_channel(from, to);
    if (!found) {
      die_of_bad_plan("communicator " + state_.memory.name() + " has no channel from member " +
                      std::to_string(from) + " to " + std::to_string(to));
    }
    channel = {&state_.memory.counters(*found), state_.memory.ring(*found), found->capacity,
               &state_.memory.bell(from == member() ? to : from)};
    return channel;
  }

  SegmentMember state_;
  std::map<std::pair<int64_t, int64_t>, SegmentChannel> channels_;  // from, to
};

}  // namespace

void add_segment_communicators(const SegmentLayout& layout, unsigned char* base, int64_t rank,
                               RankCommunicators& communicators) {
  for (const SegmentLayout::GroupLayout& group : layout.groups) {
    const int64_t member = group.group.member_of(rank);
    if (member < 0) continue;
    communicators.add(group.group.communicator,
                      std::make_unique<SegmentCommunicator>(group, base, member));
  }
}

}  // namespace sgtc::runtime
