// Collectives: each operation is a range of the rounds that a group ever goes through.
//
// The pieces of a slot are written again only once every member has taken the round that they were
// for, so staging needs to look at one counter only, and usually at its cached value.
#include <algorithm>

#include "message.h"
#include "segment_parts.h"
#include "share_reducer.h"

namespace sgtc::runtime {
namespace {

// Messages up to this size are reduced by every member instead of being shared out.
constexpr int64_t kWholeBytes = 16 << 10;

class Collective : public Operation {
 public:
  explicit Collective(SegmentMember& member)
      : member_(member), memory_(member.memory), me_(static_cast<size_t>(member.member)) {}

  void start() override {
    begin_ = member_.rounds;
    member_.rounds += rounds_;
  }

  bool advance() override {
    RoundCounters& own = member_.own();
    bool moved = true;
    while (moved) {
      moved = step(own.staged, [this](int64_t r) { return stage(r); });
      moved |= step(own.produced, [this](int64_t r) { return produce(r); });
      moved |= step(own.taken, [this](int64_t r) { return take(r); });
    }
    return own.taken.load(std::memory_order_relaxed) >= begin_ + rounds_;
  }

 protected:
  /// Each does its part of a round, or returns false if it cannot yet.
  virtual bool stage(int64_t round) = 0;
  virtual bool produce(int64_t round) = 0;
  virtual bool take(int64_t round) = 0;

  void cut_into_rounds(const std::vector<Message>& shares) {
    int64_t largest = 0;
    for (const Message& share : shares) largest = std::max(largest, share.bytes());
    rounds_ = (largest + memory_.piece_bytes() - 1) / memory_.piece_bytes();
  }

  // The bytes of a share that are round `round`'s.
  struct Range {
    int64_t offset;
    int64_t bytes;
  };
  Range range(const Message& share, int64_t round) const {
    const int64_t offset = (round - begin_) * memory_.piece_bytes();
    return {offset, std::clamp<int64_t>(share.bytes() - offset, 0, memory_.piece_bytes())};
  }

  bool slot_is_free(int64_t round) {
    return member_.all_reached(&RoundCounters::taken, member_.all_taken, round - kRoundSlots + 1);
  }
  bool all_staged(int64_t round) {
    return member_.all_reached(&RoundCounters::staged, member_.all_staged, round + 1);
  }
  bool all_produced(int64_t round) {
    return member_.all_reached(&RoundCounters::produced, member_.all_produced, round + 1);
  }
  bool is_staged(int64_t round) const { return member_.own().staged.load() > round; }
  bool is_produced(int64_t round) const { return member_.own().produced.load() > round; }

  void take_others(const std::vector<Message>& outputs, int64_t round) const {
    for (size_t s = 0; s < outputs.size(); ++s) {
      const Range part = range(outputs[s], round);
      if (s == me_ || part.bytes == 0) continue;
      const int64_t share = static_cast<int64_t>(s);
      outputs[s].write(part.offset, part.bytes, memory_.piece(share, round, share));
    }
  }

  SegmentMember& member_;
  const GroupMemory& memory_;
  size_t me_;
  int64_t begin_ = 0;
  int64_t rounds_ = 0;

 private:
  template <class Part>
  bool step(std::atomic<int64_t>& counter, const Part& part) {
    const int64_t round = counter.load(std::memory_order_relaxed);
    if (round < begin_ || round >= begin_ + rounds_ || !part(round)) return false;
    member_.publish(counter);
    return true;
  }
};

// All-reduce and reduce-scatter of shares.
class SharedReduction : public Collective {
 public:
  SharedReduction(SegmentMember& member, const CommunicationRequest& request)
      : Collective(member),
        gathers_(request.kind == CommunicationKind::all_reduce),
        reducer_(request, member.member, memory_.members()) {
    if (gathers_) {
      inputs_ = cut(Message(request.inputs), memory_.members(), reducer_.element_bytes());
      outputs_ = cut(Message(request.outputs), memory_.members(), reducer_.element_bytes());
    } else {
      inputs_ = cut_each(request.inputs, memory_.members());
      outputs_.resize(inputs_.size());
      outputs_[me_] = Message(request.outputs);
    }
    cut_into_rounds(inputs_);
  }

 protected:
  bool stage(int64_t round) override {
    if (!slot_is_free(round)) return false;
    for (size_t s = 0; s < inputs_.size(); ++s) {
      if (s == me_) continue;
      const Range part = range(inputs_[s], round);
      inputs_[s].read(part.offset, part.bytes,
                      memory_.piece(member_.member, round, static_cast<int64_t>(s)));
    }
    return true;
  }

  bool produce(int64_t round) override {
    if (!is_staged(round) || !all_staged(round)) return false;
    const Range part = range(inputs_[me_], round);
    const int64_t me = member_.member;
    reducer_.reduce(inputs_[me_], outputs_[me_], part.offset, part.bytes,
                    [&](int64_t m) { return memory_.piece(m, round, me); });
    if (gathers_) outputs_[me_].read(part.offset, part.bytes, memory_.piece(me, round, me));
    return true;
  }

  bool take(int64_t round) override {
    if (!is_produced(round)) return false;
    if (!gathers_) return true;
    if (!all_produced(round)) return false;
    take_others(outputs_, round);
    return true;
  }

 private:
  bool gathers_;
  ShareReducer reducer_;
  std::vector<Message> inputs_;  // per share
  std::vector<Message> outputs_;
};

// All-reduce of a message that fits into the pieces of one round: every member reduces all of it.
class WholeReduction : public Collective {
 public:
  WholeReduction(SegmentMember& member, const CommunicationRequest& request)
      : Collective(member),
        reducer_(request, member.member, memory_.members()),
        input_(request.inputs),
        output_(request.outputs) {
    rounds_ = 1;
  }

 protected:
  bool stage(int64_t round) override {
    if (!slot_is_free(round)) return false;
    input_.read(0, input_.bytes(), memory_.piece(member_.member, round, 0));
    return true;
  }

  bool produce(int64_t round) override {
    if (!is_staged(round) || !all_staged(round)) return false;
    reducer_.reduce(input_, output_, 0, input_.bytes(),
                    [&](int64_t m) { return memory_.piece(m, round, 0); });
    return true;
  }

  bool take(int64_t round) override { return is_produced(round); }

 private:
  ShareReducer reducer_;
  Message input_;
  Message output_;
};

// All-gather and broadcast: shares that exist already, one per member or the root's alone.
class Distribution : public Collective {
 public:
  Distribution(SegmentMember& member, const CommunicationRequest& request) : Collective(member) {
    const size_t members = static_cast<size_t>(memory_.members());
    size_t source = me_;
    if (request.kind == CommunicationKind::all_gather) {
      outputs_ = cut_each(request.outputs, memory_.members());
    } else {
      source = static_cast<size_t>(request.peer);
      outputs_.resize(members);
      outputs_[source] = Message(request.outputs);
    }
    if (source == me_) input_ = Message(request.inputs);
    cut_into_rounds(outputs_);
  }

 protected:
  bool stage(int64_t round) override { return slot_is_free(round); }

  bool produce(int64_t round) override {
    if (!is_staged(round)) return false;
    const Range part = range(input_, round);
    if (part.bytes == 0) return true;
    input_.read(part.offset, part.bytes, memory_.piece(member_.member, round, member_.member));
    outputs_[me_].copy(input_, part.offset, part.bytes);
    return true;
  }

  bool take(int64_t round) override {
    if (!is_produced(round) || !all_produced(round)) return false;
    take_others(outputs_, round);
    return true;
  }

 private:
  Message input_;
  std::vector<Message> outputs_;  // per share
};

bool is_small(const SegmentMember& member, const CommunicationRequest& request) {
  const int64_t bytes = Message(request.inputs).bytes();
  return bytes > 0 && bytes <= kWholeBytes &&
         bytes <= member.memory.members() * member.memory.piece_bytes();
}

}  // namespace

bool SegmentMember::all_reached(std::atomic<int64_t> RoundCounters::* counter, int64_t& known,
                                int64_t value) {
  if (known >= value) return true;
  known = INT64_MAX;
  for (int64_t m = 0; m < memory.members(); ++m) {
    known = std::min(known, (memory.counters(m).*counter).load(std::memory_order_acquire));
  }
  return known >= value;
}

void SegmentMember::publish(std::atomic<int64_t>& counter) const {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  for (int64_t m = 0; m < memory.members(); ++m) {
    if (m != member) memory.bell(m).ring();
  }
}

std::unique_ptr<Operation> make_collective(SegmentMember& member,
                                           const CommunicationRequest& request) {
  switch (request.kind) {
    case CommunicationKind::all_reduce:
      if (is_small(member, request)) return std::make_unique<WholeReduction>(member, request);
      return std::make_unique<SharedReduction>(member, request);
    case CommunicationKind::reduce_scatter:
      return std::make_unique<SharedReduction>(member, request);
    default:
      return std::make_unique<Distribution>(member, request);
  }
}

}  // namespace sgtc::runtime
