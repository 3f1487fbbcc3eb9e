#include "gloo_network.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "failure.h"
#include "gloo_library.h"
#include "gloo_parts.h"
#include "plan_memory.h"

namespace sgtc::runtime {
namespace {

constexpr int kAddressBytes = 255;  // their number fits into one more
constexpr int64_t kPieceBytes = 1 << 20;
constexpr int kLossLooks = 1000;  // for ten seconds
constexpr timespec kLookInterval = {0, 10'000'000};

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(const GlooNetwork& network, const RankGroup& group, int64_t index,
                   int64_t member)
      : group_(network, group, index, member) {}

  int64_t member() const override { return group_.member(); }
  int64_t size() const override { return group_.members(); }

  std::unique_ptr<Operation> prepare(const CommunicationRequest& request) override {
    check_request(request, size(), group_.name());
    if (request.kind == CommunicationKind::send || request.kind == CommunicationKind::receive) {
      if (request.peer == member()) die_of_bad_plan("a rank sends to itself");
      return make_gloo_transfer(group_, request);
    }
    if (group_.piece_bytes() == 0) {
      die_of_bad_plan("communicator " + group_.name() + " is for sends and receives");
    }
    return make_gloo_collective(group_, request);
  }

 private:
  GlooGroup group_;
};

int64_t choose_piece_bytes(const RankGroup& group) {
  if (group.collective_bytes < 0) return 0;
  const int64_t members = static_cast<int64_t>(group.ranks.size());
  const int64_t share = (group.collective_bytes + members - 1) / members;
  return std::clamp<int64_t>((share + 4095) / 4096 * 4096, 4096, kPieceBytes);
}

}  // namespace

GlooNetwork::GlooNetwork(const std::vector<RankGroup>& groups, int64_t rank, int64_t ranks,
                         const std::string& master, const AllGather& all_gather, Watch& watch)
    : plugin_(load_gloo_plugin()), groups_(groups), rank_(rank), ranks_(ranks), watch_(watch) {
  // Gloo writes to connections whose other end may be gone; that is an error, not a signal.
  signal(SIGPIPE, SIG_IGN);
  const char* interface = std::getenv("SGTC_INTERFACE");
  handle_ =
      plugin_.open(interface, master.c_str(), static_cast<int>(rank), static_cast<int>(ranks));
  if (!handle_) {
    die("network", plugin_.last_error(),
        "set SGTC_INTERFACE to the network interface by which the hosts reach each other");
  }
  connect(all_gather);
}

GlooNetwork::~GlooNetwork() { plugin_.close(handle_); }

// Every rank tells all others where each of its peers finds it.
void GlooNetwork::connect(const AllGather& all_gather) {
  std::set<int64_t> peers;
  for (const RankGroup& group : groups_) {
    if (group.member_of(rank_) < 0) continue;
    for (const int64_t peer : group.ranks) {
      if (peer != rank_) peers.insert(peer);
    }
  }
  std::string message(static_cast<size_t>(ranks_ * (kAddressBytes + 1)), '\0');
  for (const int64_t peer : peers) {
    char* entry = message.data() + peer * (kAddressBytes + 1);
    const int bytes = plugin_.add_peer(handle_, static_cast<int>(peer), entry + 1, kAddressBytes);
    if (bytes < 0) die("network", plugin_.last_error());
    entry[0] = static_cast<char>(bytes);
  }
  const std::vector<std::string> all = all_gather(message);
  for (const int64_t peer : peers) {
    const char* entry = all[static_cast<size_t>(peer)].data() + rank_ * (kAddressBytes + 1);
    const int bytes = static_cast<unsigned char>(entry[0]);
    if (plugin_.connect(handle_, static_cast<int>(peer), entry + 1, bytes) == 0) continue;
    die("network",
        format("rank %ld is not reached: %s", static_cast<long>(peer), plugin_.last_error()),
        "set SGTC_INTERFACE to the network interface by which the hosts reach each other");
  }
}

void GlooNetwork::add_communicators(RankCommunicators& communicators) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const int64_t member = groups_[i].member_of(rank_);
    if (member < 0) continue;
    communicators.add(
        groups_[i].communicator,
        std::make_unique<GlooCommunicator>(*this, groups_[i], static_cast<int64_t>(i), member));
  }
}

void GlooNetwork::fail(const std::string& communicator) const {
  const std::string problem = plugin_.last_error();
  for (int look = 0; look < kLossLooks; ++look) {
    if (watch_.lost()) watch_.exit_lost();
    nanosleep(&kLookInterval, nullptr);
  }
  die("communicator " + communicator, problem);
}

GlooBuffer::GlooBuffer(const GlooNetwork& network, const std::string& communicator,
                       unsigned char* data, int64_t bytes)
    : network_(network),
      communicator_(communicator),
      handle_(network.plugin().make_buffer(network.handle(), data, bytes)) {
  if (!handle_) network_.fail(communicator_);
}

GlooBuffer::~GlooBuffer() { network_.plugin().free_buffer(handle_); }

void GlooBuffer::post(int result, State state) {
  if (result < 0) network_.fail(communicator_);
  state_ = state;
}

void GlooBuffer::send(int64_t rank, uint64_t tag, int64_t bytes) {
  post(network_.plugin().send(handle_, static_cast<int>(rank), tag, bytes), State::sending);
}

void GlooBuffer::receive(int64_t rank, uint64_t tag, int64_t bytes) {
  post(network_.plugin().receive(handle_, static_cast<int>(rank), tag, bytes), State::receiving);
}

bool GlooBuffer::is_done() {
  if (state_ == State::idle) return true;
  const int result = state_ == State::sending ? network_.plugin().wait_sent(handle_)
                                              : network_.plugin().wait_received(handle_);
  if (result < 0) network_.fail(communicator_);
  if (result > 0) state_ = State::idle;
  return result > 0;
}

GlooGroup::GlooGroup(const GlooNetwork& network, const RankGroup& group, int64_t index,
                     int64_t member)
    : network_(network),
      group_(group),
      tag_(static_cast<uint64_t>(index) * 2),
      member_(member),
      piece_bytes_(choose_piece_bytes(group)),
      memory_(static_cast<size_t>(2 * kLanes * members() * piece_bytes_)) {
  for (int64_t i = 0; i < kLanes * members() && piece_bytes_ > 0; ++i) {
    const int64_t lane = i / members();
    const int64_t peer = i % members();
    const auto buffer = [&](unsigned char* data) {
      return peer == member_ ? nullptr
                             : std::make_unique<GlooBuffer>(network_, name(), data, piece_bytes_);
    };
    sends_.push_back(buffer(outgoing(lane, peer)));
    receives_.push_back(buffer(incoming(lane, peer)));
  }
}

void GlooGroup::exchange(int64_t lane, int64_t member, int64_t outgoing_bytes,
                         int64_t incoming_bytes) {
  const size_t at = static_cast<size_t>(lane * members() + member);
  const uint64_t tag = tag_ + 1;
  if (incoming_bytes > 0) receives_[at]->receive(rank_of(member), tag, incoming_bytes);
  if (outgoing_bytes > 0) sends_[at]->send(rank_of(member), tag, outgoing_bytes);
}

bool GlooGroup::is_done(int64_t lane) {
  for (int64_t m = 0; m < members(); ++m) {
    if (m == member_) continue;
    const size_t at = static_cast<size_t>(lane * members() + m);
    if (!receives_[at]->is_done() || !sends_[at]->is_done()) return false;
  }
  return true;
}

}  // namespace sgtc::runtime
