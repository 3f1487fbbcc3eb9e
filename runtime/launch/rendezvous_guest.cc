#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "launch/handshake.h"
#include "launch/hmac.h"
#include "launch/rendezvous.h"
#include "launch/secret.h"

namespace sgtc::runtime {
namespace {

using namespace handshake;

constexpr int64_t kConnectPatience = 2000;  // milliseconds
constexpr int64_t kFirstPause = 5;          // between attempts; doubled each time
constexpr int64_t kLongestPause = 200;
constexpr int64_t kProblemPatience = 2500;   // with somebody at rank 0's address who is not rank 0
constexpr int64_t kWelcomePatience = 10000;  // after the time in which all ranks must join
constexpr int64_t kNever = -1;

class Guest {
 public:
  Guest(const LaunchEnvironment& environment, const JobOptions& options, const Introduction& self)
      : environment_(environment),
        self_(self),
        address_(address_text(environment.master, environment.port)),
        deadline_(monotonic_milliseconds() + options.timeout_seconds * 1000) {
    require(find_secret(environment, options, source_));
  }

  Meeting run() {
    for (int64_t pause = kFirstPause; !join(); pause = std::min(2 * pause, kLongestPause)) {
      const int64_t now = monotonic_milliseconds();
      if (now >= deadline_) die(*problem_);
      if (first_problem_ != kNever && now >= first_problem_ + kProblemPatience) die(*problem_);
      usleep(static_cast<useconds_t>(pause * 1000));
    }
    return wait_for_welcome();
  }

 private:
  // Connects and introduces itself; false if it may be tried again.
  bool join() {
    Socket socket;
    if (MaybeFailure failure =
            connect_to(environment_.master, environment_.port, kConnectPatience, socket)) {
      problem_ = Failure{"rank 0 at " + address_, failure->problem,
                         "start rank 0, or give --master its address"};
      return false;
    }
    connection_ = Connection(std::move(socket), kMostBytes);
    const int64_t begin = monotonic_milliseconds();
    problem_ = shake_hands();
    if (problem_ && first_problem_ == kNever) first_problem_ = begin;
    return !problem_;
  }

  MaybeFailure shake_hands() {
    std::string secret;
    if (MaybeFailure failure = read_secret(source_, secret)) return failure;
    const int64_t deadline = monotonic_milliseconds() + kPatience;
    Hello hello = {kVersion, self_.rank, random_bytes(kNonceBytes)};
    connection_.send(kHello, encode(hello));
    Frame frame;
    Challenge challenge;
    if (!receive(frame, deadline) || frame.kind != kChallenge || !decode(frame.body, challenge)) {
      return not_rank_0();
    }
    if (challenge.version != kVersion) return other_version();
    connection_.send(kProof, prove(secret, "guest", hello, challenge));
    if (!receive(frame, deadline)) return not_rank_0();
    if (frame.kind == kRefusal) return other_secret(secret);
    if (frame.kind != kAcceptance ||
        !equal_secretly(frame.body, prove(secret, "host", hello, challenge))) {
      return other_secret(secret);
    }
    connection_.set_limit(kMostFrameBytes);
    connection_.send(kIntroduce, encode(self_));
    connection_.flush();
    return {};
  }

  Failure not_rank_0() const {
    return {address_, "is answered by something that is not rank 0 of this job",
            "give --master HOST:PORT a port that is free there"};
  }

  Failure other_version() const {
    return {"rank 0 at " + address_, "speaks another version of the protocol",
            "start the same executable on all hosts"};
  }

  Failure other_secret(const std::string& secret) const {
    if (secret.empty()) {
      return {source_.path, "is not there, although rank 0 has it",
              "use a folder that all hosts share, or give --secret-file"};
    }
    return {"rank 0 at " + address_, "has another secret",
            "give all ranks the same --secret-file or SGTC_SECRET"};
  }

  // The next frame; false if none comes in time.
  bool receive(Frame& frame, int64_t deadline) {
    if (!connection_.flush()) return false;
    for (bool open = true; !connection_.next(frame);) {
      const int64_t left = deadline - monotonic_milliseconds();
      if (!open || connection_.broken() || left <= 0) return false;
      pollfd event = {connection_.descriptor(), POLLIN, 0};
      poll(&event, 1, static_cast<int>(left));
      open = connection_.receive();
    }
    return true;
  }

  Meeting wait_for_welcome() {
    Frame frame;
    if (!receive(frame, deadline_ + kWelcomePatience)) {
      die_lost({"rank 0 at " + address_, "was lost before all ranks had joined", "start again"});
    }
    Abort abort;
    if (frame.kind == kAbort && decode(frame.body, abort)) handshake::end(abort);
    Meeting meeting;
    Reader reader(frame.body);
    meeting.token = reader.text();
    for (int64_t rank = 0; rank < self_.size && reader.ok(); ++rank) {
      if (!decode(reader.text(), meeting.members.emplace_back())) break;
    }
    if (frame.kind != kWelcome || !reader.complete()) die(not_rank_0());
    meeting.master = address_;
    meeting.connections.push_back(std::move(connection_));
    return meeting;
  }

  const LaunchEnvironment& environment_;
  const Introduction& self_;
  std::string address_;
  int64_t deadline_;
  SecretSource source_;
  Connection connection_;
  MaybeFailure problem_;            // of the last attempt
  int64_t first_problem_ = kNever;  // when somebody answered wrongly for the first time
};

}  // namespace

Meeting attend_rendezvous(const LaunchEnvironment& environment, const JobOptions& options,
                          const Introduction& self) {
  return Guest(environment, options, self).run();
}

}  // namespace sgtc::runtime
