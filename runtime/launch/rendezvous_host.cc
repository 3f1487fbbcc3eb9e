#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>

#include "launch/handshake.h"
#include "launch/hmac.h"
#include "launch/rendezvous.h"
#include "launch/secret.h"

namespace sgtc::runtime {
namespace {

using namespace handshake;

constexpr size_t kMostStrangers = 64;           // connections that have not proved the secret
constexpr int64_t kMostIntroduction = 1 << 20;  // bytes
constexpr int64_t kGraceForWrongSecret = 3000;  // milliseconds
constexpr int64_t kGraceForLatecomers = 2000;   // after an error, to tell them too
constexpr int64_t kTick = 100;
constexpr int64_t kFlushPatience = 5000;
constexpr size_t kTokenBytes = 16;
constexpr int64_t kShownRanks = 8;

// A connection whose rank has not introduced itself.
struct Stranger {
  Connection connection;
  std::string peer;
  int64_t deadline = 0;
  bool greeted = false;
  bool proved = false;
  Hello hello;
  Challenge challenge;
};

class Host {
 public:
  Host(const LaunchEnvironment& environment, const JobOptions& options, const Introduction& self)
      : environment_(environment), timeout_(options.timeout_seconds * 1000) {
    require(find_secret(environment, options, source_));
    require(provide_secret(source_, secret_));
    members_.resize(static_cast<size_t>(self.size));
    members_[0] = self;
    connections_.resize(members_.size());
    missing_ = self.size - 1;
    listen();
  }

  Meeting run() {
    const int64_t deadline = monotonic_milliseconds() + timeout_;
    while (missing_ > 0 || abort_) {
      wait();
      accept_strangers();
      serve_strangers();
      watch_members();
      const int64_t now = monotonic_milliseconds();
      if (!abort_) check_wrong_secrets(now);
      if (!abort_ && now >= deadline) abort({kExitFailure, missing_ranks()}, 0);
      if (abort_ && (now >= abort_deadline_ || told_ + 1 == size())) end_aborted();
    }
    forget_secret(source_);
    return welcome();
  }

 private:
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  bool has_joined(int64_t rank) const { return connections_[static_cast<size_t>(rank)].is_open(); }

  void listen() {
    if (environment_.inherited_socket >= 0) {
      listener_ = Socket(environment_.inherited_socket);
      port_ = environment_.port;
      return;
    }
    port_ = environment_.port;
    if (MaybeFailure failure = listen_at(environment_.master, port_, listener_)) {
      forget_secret(source_);
      die(*failure);
    }
    if (environment_.one_host || !is_loopback(listener_)) return;
    warn(environment_.master,
         "is a loopback address here, which other hosts cannot reach; give --master another one");
  }

  // Until something can be read, or a short time.
  void wait() {
    events_.clear();
    events_.push_back({listener_.descriptor(), POLLIN, 0});
    for (const Stranger& stranger : strangers_) {
      events_.push_back({stranger.connection.descriptor(), POLLIN, 0});
    }
    for (const Connection& connection : connections_) {
      if (connection.is_open()) events_.push_back({connection.descriptor(), POLLIN, 0});
    }
    poll(events_.data(), events_.size(), static_cast<int>(kTick));
  }

  void accept_strangers() {
    std::string peer;
    for (Socket socket; (socket = accept_from(listener_, peer)).is_open();) {
      if (strangers_.size() == kMostStrangers) strangers_.erase(strangers_.begin());
      Stranger& stranger = strangers_.emplace_back();
      stranger.connection = Connection(std::move(socket), kMostBytes);
      stranger.peer = peer;
      stranger.deadline = monotonic_milliseconds() + kPatience;
    }
  }

  void serve_strangers() {
    for (size_t i = 0; i < strangers_.size();) {
      if (serve(strangers_[i])) {
        ++i;
      } else {
        strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  // False when it is no longer one.
  bool serve(Stranger& stranger) {
    const bool open = stranger.connection.receive();
    Frame frame;
    while (stranger.connection.next(frame)) {
      if (!handle(stranger, frame)) return false;
    }
    return open && !stranger.connection.broken() && stranger.connection.flush() &&
           monotonic_milliseconds() < stranger.deadline;
  }

  bool handle(Stranger& stranger, const Frame& frame) {
    if (frame.kind == kHello && !stranger.greeted) return greet(stranger, frame.body);
    if (frame.kind == kProof && stranger.greeted && !stranger.proved) {
      return check_proof(stranger, frame.body);
    }
    if (frame.kind == kIntroduce && stranger.proved) {
      introduce(stranger, frame.body);
    }
    return false;
  }

  bool greet(Stranger& stranger, std::string_view body) {
    if (!decode(body, stranger.hello)) return false;
    stranger.greeted = true;
    stranger.challenge.nonce = random_bytes(kNonceBytes);
    stranger.connection.send(kChallenge, encode(stranger.challenge));
    if (stranger.hello.version == kVersion) return true;
    stranger.connection.flush();
    note_failure(stranger, "speaks another version of the protocol");
    return false;
  }

  bool check_proof(Stranger& stranger, std::string_view body) {
    if (!equal_secretly(body, prove(secret_, "guest", stranger.hello, stranger.challenge))) {
      stranger.connection.send(kRefusal, {});
      stranger.connection.flush();
      note_failure(stranger, "has another secret");
      return false;
    }
    stranger.proved = true;
    stranger.connection.set_limit(kMostIntroduction);
    stranger.connection.send(kAcceptance,
                             prove(secret_, "host", stranger.hello, stranger.challenge));
    return true;
  }

  void note_failure(const Stranger& stranger, const char* problem) {
    const int64_t rank = stranger.hello.rank;
    if (rank <= 0 || rank >= size() || has_joined(rank)) return;
    const std::string text = "a process at " + stranger.peer + " that calls itself rank " +
                             std::to_string(rank) + " " + problem;
    // It tries again a few times, which changes nothing.
    if (failed_.emplace(rank, text).second) last_change_ = monotonic_milliseconds();
  }

  void introduce(Stranger& stranger, std::string_view body) {
    Introduction guest;
    if (!decode(body, guest)) return;
    MaybeFailure failure = compare_with_rank_0(members_[0], guest);
    if (!failure && (guest.rank <= 0 || guest.rank >= size() || has_joined(guest.rank))) {
      refuse_rank(stranger, guest);
      return;
    }
    if (failure && !abort_) abort({kExitFailure, *failure}, kGraceForLatecomers);
    if (abort_) {
      tell(stranger.connection);
      return;
    }
    members_[static_cast<size_t>(guest.rank)] = guest;
    connections_[static_cast<size_t>(guest.rank)] = std::move(stranger.connection);
    failed_.erase(guest.rank);
    last_change_ = monotonic_milliseconds();
    --missing_;
  }

  // Its error alone: the others go on.
  void refuse_rank(Stranger& stranger, const Introduction& guest) {
    const bool in_range = guest.rank > 0 && guest.rank < size();
    const Introduction& other = members_[in_range ? static_cast<size_t>(guest.rank) : 0];
    const Failure failure = {name_of(guest), "has the rank of another process: " + name_of(other),
                             "give each process a rank of its own"};
    stranger.connection.send(kAbort, encode(Abort{kExitFailure, failure}));
    stranger.connection.flush();
  }

  void tell(Connection& connection) {
    connection.send(kAbort, encode(*abort_));
    if (connection.flush()) ++told_;
  }

  // `grace` is the time for ranks that have not joined to come and hear of it.
  void abort(const Abort& abort, int64_t grace) {
    abort_ = abort;
    abort_deadline_ = monotonic_milliseconds() + grace;
    for (Connection& connection : connections_) {
      if (connection.is_open()) tell(connection);
    }
  }

  [[noreturn]] void end_aborted() {
    forget_secret(source_);
    handshake::end(*abort_);
  }

  // A rank that has joined says nothing until it is welcome.
  void watch_members() {
    for (size_t rank = 1; rank < connections_.size() && !abort_; ++rank) {
      Connection& connection = connections_[rank];
      if (!connection.is_open() || connection.receive()) continue;
      connection.close();
      abort({kExitLost,
             {name_of(members_[rank]), "was lost before all ranks had joined", "start again"}},
            kGraceForLatecomers);
    }
  }

  void check_wrong_secrets(int64_t now) {
    if (failed_.empty() || static_cast<int64_t>(failed_.size()) < missing_) return;
    if (now < last_change_ + kGraceForWrongSecret) return;
    abort({kExitFailure,
           {"the job", failed_.begin()->second,
            "start all ranks from one executable and give them one --secret-file or SGTC_SECRET"}},
          0);
  }

  Failure missing_ranks() const {
    std::string ranks;
    int64_t shown = 0;
    for (int64_t rank = 1; rank < size() && shown < kShownRanks; ++rank) {
      if (has_joined(rank)) continue;
      ranks += (shown++ == 0 ? "" : ", ") + std::to_string(rank);
    }
    if (missing_ > shown) ranks += " and " + std::to_string(missing_ - shown) + " more";
    std::string problem = "ranks of " + std::to_string(size()) + " that have not joined within " +
                          std::to_string(timeout_ / 1000) + " s: " + ranks;
    for (const auto& [rank, text] : failed_) problem += "; " + text;
    return {"the job", problem,
            "start all ranks, and check that their hosts reach " +
                address_text(environment_.master, port_)};
  }

  Meeting welcome() {
    Meeting meeting;
    meeting.token = hexadecimal(random_bytes(kTokenBytes));
    meeting.master = address_text(environment_.master, port_);
    Writer writer;
    writer.text(meeting.token);
    for (const Introduction& member : members_) writer.text(encode(member));
    for (Connection& connection : connections_) {
      if (!connection.is_open()) continue;
      connection.set_limit(kMostFrameBytes);
      connection.send(kWelcome, writer.body());
    }
    flush_all();
    meeting.members = std::move(members_);
    meeting.connections = std::move(connections_);
    return meeting;
  }

  // What is left after that, the monitor sends.
  void flush_all() {
    const int64_t deadline = monotonic_milliseconds() + kFlushPatience;
    for (Connection& connection : connections_) {
      while (connection.is_open() && connection.flush() && connection.has_unsent() &&
             monotonic_milliseconds() < deadline) {
        pollfd event = {connection.descriptor(), POLLOUT, 0};
        poll(&event, 1, static_cast<int>(kTick));
      }
    }
  }

  const LaunchEnvironment& environment_;
  int64_t timeout_;  // milliseconds
  SecretSource source_;
  std::string secret_;
  Socket listener_;
  int64_t port_ = 0;
  std::vector<pollfd> events_;
  std::vector<Stranger> strangers_;
  std::vector<Introduction> members_;
  std::vector<Connection> connections_;
  int64_t missing_ = 0;
  std::map<int64_t, std::string> failed_;  // ranks that did not prove the secret, and how
  int64_t last_change_ = 0;                // of `failed_` or of who has joined
  std::optional<Abort> abort_;
  int64_t abort_deadline_ = 0;
  int64_t told_ = 0;  // ranks that know of it
};

}  // namespace

Meeting host_rendezvous(const LaunchEnvironment& environment, const JobOptions& options,
                        const Introduction& self) {
  return Host(environment, options, self).run();
}

}  // namespace sgtc::runtime
