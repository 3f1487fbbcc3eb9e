// Transfers and collectives as messages between pairs of members.
//
// A collective is cut into rounds of one piece per share. An all-reduce sends each member its share
// of the input, reduces what came in the order of the members, and sends the result to all; small
// messages go whole to every member, which reduces all of it. Left out: rings, which send less per
// member when there are many, but add up in another order than shared memory does.
#include <algorithm>

#include "gloo_parts.h"
#include "message.h"
#include "share_reducer.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kWholeBytes = 16 << 10;

class GlooOperation : public Operation {
 public:
  bool polls() const override { return true; }
};

// One message. Parts that are not contiguous are joined in memory of the operation.
class GlooTransfer : public GlooOperation {
 public:
  GlooTransfer(GlooGroup& group, const CommunicationRequest& request)
      : group_(group),
        peer_(group.rank_of(request.peer)),
        sends_(request.kind == CommunicationKind::send),
        message_(sends_ ? request.inputs : request.outputs) {
    const int64_t bytes = message_.bytes();
    if (bytes == 0) return;
    const Part first = message_.from(0);
    if (first.bytes < bytes) joined_.resize(static_cast<size_t>(bytes));
    buffer_ = std::make_unique<GlooBuffer>(group.network(), group.name(),
                                           joined_.empty() ? first.data : joined_.data(), bytes);
  }

  void start() override {
    done_ = message_.bytes() == 0;
    if (done_) return;
    if (sends_) {
      if (!joined_.empty()) message_.read(0, message_.bytes(), joined_.data());
      buffer_->send(peer_, group_.transfer_tag(), message_.bytes());
    } else {
      buffer_->receive(peer_, group_.transfer_tag(), message_.bytes());
    }
  }

  bool advance() override {
    if (done_) return true;
    if (!buffer_->is_done()) return false;
    if (!sends_ && !joined_.empty()) message_.write(0, message_.bytes(), joined_.data());
    done_ = true;
    return true;
  }

 private:
  GlooGroup& group_;
  int64_t peer_;
  bool sends_;
  bool done_ = false;
  Message message_;
  std::vector<unsigned char> joined_;
  std::unique_ptr<GlooBuffer> buffer_;
};

// Exchanges numbered from 0, each posted while the one before is still under way: it depends on no
// later one than the one before that.
class GlooCollective : public GlooOperation {
 public:
  explicit GlooCollective(GlooGroup& group) : group_(group) {}

  void start() override {
    ticket_ = group_.issue();
    next_ = 0;
    posted_ = 0;
    done_ = false;
  }

  bool advance() override {
    if (done_) return true;
    if (!group_.is_turn(ticket_)) return false;
    for (; next_ < exchanges_; ++next_) {
      for (; posted_ < std::min(next_ + GlooGroup::kLanes, exchanges_); ++posted_) post(posted_);
      if (!group_.is_done(lane_of(next_))) return false;
      absorb(next_);
    }
    group_.finish();
    done_ = true;
    return true;
  }

 protected:
  /// Fills outgoing pieces and begins an exchange; takes in what came by it.
  virtual void post(int64_t number) = 0;
  virtual void absorb(int64_t number) = 0;

  static int64_t lane_of(int64_t number) { return number % GlooGroup::kLanes; }

  int64_t rounds_of(const std::vector<Message>& shares) const {
    int64_t largest = 0;
    for (const Message& share : shares) largest = std::max(largest, share.bytes());
    return (largest + group_.piece_bytes() - 1) / group_.piece_bytes();
  }

  struct Range {
    int64_t offset;
    int64_t bytes;
  };
  Range range(const Message& share, int64_t round) const {
    const int64_t offset = round * group_.piece_bytes();
    return {offset, std::clamp<int64_t>(share.bytes() - offset, 0, group_.piece_bytes())};
  }

  template <class Visit>
  void for_each_peer(const Visit& visit) const {
    for (int64_t m = 0; m < group_.members(); ++m) {
      if (m != group_.member()) visit(m);
    }
  }

  // Sends this member's piece of `own` to all and receives theirs.
  void post_gather(const std::vector<Message>& shares, const Message& own, int64_t round,
                   int64_t lane) {
    const Range mine = range(own, round);
    for_each_peer([&](int64_t m) {
      own.read(mine.offset, mine.bytes, group_.outgoing(lane, m));
      group_.exchange(lane, m, mine.bytes, range(shares[static_cast<size_t>(m)], round).bytes);
    });
  }

  void absorb_gather(const std::vector<Message>& shares, int64_t round, int64_t lane) {
    for_each_peer([&](int64_t m) {
      const Range part = range(shares[static_cast<size_t>(m)], round);
      shares[static_cast<size_t>(m)].write(part.offset, part.bytes, group_.incoming(lane, m));
    });
  }

  GlooGroup& group_;
  int64_t exchanges_ = 0;

 private:
  int64_t ticket_ = 0;
  int64_t next_ = 0;
  int64_t posted_ = 0;
  bool done_ = true;
};

// All-reduce and reduce-scatter of shares. An all-reduce has two exchanges per round.
class GlooSharedReduction : public GlooCollective {
 public:
  GlooSharedReduction(GlooGroup& group, const CommunicationRequest& request)
      : GlooCollective(group),
        gathers_(request.kind == CommunicationKind::all_reduce),
        me_(static_cast<size_t>(group.member())),
        reducer_(request, group.member(), group.members()) {
    if (gathers_) {
      inputs_ = cut(Message(request.inputs), group.members(), reducer_.element_bytes());
      outputs_ = cut(Message(request.outputs), group.members(), reducer_.element_bytes());
    } else {
      inputs_ = cut_each(request.inputs, group.members());
      outputs_.resize(inputs_.size());
      outputs_[me_] = Message(request.outputs);
    }
    rounds_ = rounds_of(inputs_);
    exchanges_ = gathers_ ? 2 * (rounds_ + 1) : rounds_;
  }

 protected:
  void post(int64_t number) override {
    const int64_t lane = lane_of(number);
    const int64_t round = round_of(number);
    if (!exists(round)) return;
    if (is_gather(number)) return post_gather(outputs_, outputs_[me_], round, lane);
    const int64_t mine = range(inputs_[me_], round).bytes;
    for_each_peer([&](int64_t m) {
      const Message& share = inputs_[static_cast<size_t>(m)];
      const Range part = range(share, round);
      share.read(part.offset, part.bytes, group_.outgoing(lane, m));
      group_.exchange(lane, m, part.bytes, mine);
    });
  }

  void absorb(int64_t number) override {
    const int64_t lane = lane_of(number);
    const int64_t round = round_of(number);
    if (!exists(round)) return;
    if (is_gather(number)) return absorb_gather(outputs_, round, lane);
    const Range part = range(inputs_[me_], round);
    reducer_.reduce(inputs_[me_], outputs_[me_], part.offset, part.bytes,
                    [&](int64_t m) { return group_.incoming(lane, m); });
  }

 private:
  // Without gathering, exchange r is round r. With it, exchange 2r reduces round r and exchange
  // 2r + 1 gathers the round before, so the first gathering and the last reduction do not exist.
  bool is_gather(int64_t number) const { return gathers_ && number % 2 == 1; }
  int64_t round_of(int64_t number) const { return gathers_ ? number / 2 - number % 2 : number; }
  bool exists(int64_t round) const { return round >= 0 && round < rounds_; }

  int64_t rounds_ = 0;
  bool gathers_;
  size_t me_;
  ShareReducer reducer_;
  std::vector<Message> inputs_;  // per share
  std::vector<Message> outputs_;
};

// All-reduce of a small message: every member reduces all of it.
class GlooWholeReduction : public GlooCollective {
 public:
  GlooWholeReduction(GlooGroup& group, const CommunicationRequest& request)
      : GlooCollective(group),
        reducer_(request, group.member(), group.members()),
        input_(request.inputs),
        output_(request.outputs) {
    exchanges_ = 1;
  }

 protected:
  void post(int64_t) override {
    for_each_peer([&](int64_t m) {
      input_.read(0, input_.bytes(), group_.outgoing(0, m));
      group_.exchange(0, m, input_.bytes(), input_.bytes());
    });
  }

  void absorb(int64_t) override {
    reducer_.reduce(input_, output_, 0, input_.bytes(),
                    [&](int64_t m) { return group_.incoming(0, m); });
  }

 private:
  ShareReducer reducer_;
  Message input_;
  Message output_;
};

// All-gather and broadcast: shares that exist already, one per member or the root's alone.
class GlooDistribution : public GlooCollective {
 public:
  GlooDistribution(GlooGroup& group, const CommunicationRequest& request) : GlooCollective(group) {
    int64_t source = group.member();
    if (request.kind == CommunicationKind::all_gather) {
      outputs_ = cut_each(request.outputs, group.members());
    } else {
      source = request.peer;
      outputs_.resize(static_cast<size_t>(group.members()));
      outputs_[static_cast<size_t>(source)] = Message(request.outputs);
    }
    if (source == group.member()) input_ = Message(request.inputs);
    exchanges_ = rounds_of(outputs_);
  }

 protected:
  void post(int64_t number) override {
    const Range mine = range(input_, number);
    outputs_[static_cast<size_t>(group_.member())].copy(input_, mine.offset, mine.bytes);
    post_gather(outputs_, input_, number, lane_of(number));
  }

  void absorb(int64_t number) override { absorb_gather(outputs_, number, lane_of(number)); }

 private:
  Message input_;
  std::vector<Message> outputs_;  // per share
};

bool is_small(const GlooGroup& group, const CommunicationRequest& request) {
  const int64_t bytes = Message(request.inputs).bytes();
  return bytes > 0 && bytes <= std::min(kWholeBytes, group.piece_bytes());
}

}  // namespace

std::unique_ptr<Operation> make_gloo_transfer(GlooGroup& group,
                                              const CommunicationRequest& request) {
  return std::make_unique<GlooTransfer>(group, request);
}

std::unique_ptr<Operation> make_gloo_collective(GlooGroup& group,
                                                const CommunicationRequest& request) {
  switch (request.kind) {
    case CommunicationKind::all_reduce:
      if (is_small(group, request)) return std::make_unique<GlooWholeReduction>(group, request);
      return std::make_unique<GlooSharedReduction>(group, request);
    case CommunicationKind::reduce_scatter:
      return std::make_unique<GlooSharedReduction>(group, request);
    default:
      return std::make_unique<GlooDistribution>(group, request);
  }
}

}  // namespace sgtc::runtime
