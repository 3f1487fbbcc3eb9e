// Who may join a job, and what all ranks say if it cannot begin.
#include <poll.h>
#include <sys/socket.h>

#include "runtime/failure.h"
#include "runtime/launch/connection.h"
#include "runtime/launch/environment.h"
#include "runtime/launch/handshake.h"
#include "runtime/launch/probes.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// Every rank must end with exit code 1 within five seconds, with a message that has `text`.
void check_refused(Ranks& ranks, const std::string& text) {
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    const ChildResult& result = ranks[rank].end(5000);
    INFO("rank " << rank << ": " << result.errors);
    CHECK(result.code == kExitFailure);
    CHECK(contains(result.errors, text));
    CHECK(result.errors.find('\n') == result.errors.size() - 1);
  }
}

Connection connect_to_job(Ranks& ranks) {
  std::string host;
  int64_t port = 0;
  REQUIRE(parse_address(ranks.setting("SGTC_MASTER"), host, port));
  Socket socket;
  for (int i = 0; i < 200 && connect_to(host, port, 1000, socket); ++i) usleep(10000);
  REQUIRE(socket.is_open());
  return Connection(std::move(socket), 1 << 16);
}

bool wait_for_frame(Connection& connection, Frame& frame) {
  while (!connection.next(frame)) {
    pollfd event = {connection.descriptor(), POLLIN, 0};
    if (poll(&event, 1, 5000) <= 0) return false;
    if (!connection.receive()) return connection.next(frame);
  }
  return true;
}

// Goes as far as `secret` lets it; the kind of the last answer.
int shake_hands(Connection& connection, int64_t rank, const std::string& secret,
                handshake::Hello& hello, handshake::Challenge& challenge) {
  hello = {handshake::kVersion, rank, std::string(handshake::kNonceBytes, 'n')};
  connection.send(handshake::kHello, handshake::encode(hello));
  connection.flush();
  Frame frame;
  REQUIRE(wait_for_frame(connection, frame));
  REQUIRE(handshake::decode(frame.body, challenge));
  connection.send(handshake::kProof, handshake::prove(secret, "guest", hello, challenge));
  connection.flush();
  return wait_for_frame(connection, frame) ? frame.kind : 0;
}

}  // namespace

TEST_CASE("strangers do not disturb a job that forms") {
  Ranks ranks(2, {}, "3");
  ranks.start(0);
  Connection silent = connect_to_job(ranks);
  {
    const Connection early = connect_to_job(ranks);
  }
  Connection noise = connect_to_job(ranks);
  const std::string bytes(1000, '\xa7');
  CHECK(send(noise.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == 1000);
  Connection http = connect_to_job(ranks);
  CHECK(send(http.descriptor(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
  handshake::Hello hello;
  handshake::Challenge challenge;
  Connection impostor = connect_to_job(ranks);
  CHECK(shake_hands(impostor, 1, "guess", hello, challenge) == handshake::kRefusal);
  Connection out_of_range = connect_to_job(ranks);
  CHECK(shake_hands(out_of_range, 77, "guess", hello, challenge) == handshake::kRefusal);
  ranks.start(1);
  for (int64_t rank : {0, 1}) {
    INFO(ranks[rank].end().errors);
    CHECK(ranks[rank].end().code == 0);
  }
}

TEST_CASE("rank 0 proves that it knows the secret, too") {
  Ranks ranks(2);
  ranks.start(0);
  Connection guest = connect_to_job(ranks);
  handshake::Hello hello;
  handshake::Challenge challenge;
  CHECK(shake_hands(guest, 1, "a secret", hello, challenge) == handshake::kAcceptance);
  CHECK(handshake::prove("a secret", "host", hello, challenge) !=
        handshake::prove("a secret", "guest", hello, challenge));
}

TEST_CASE("a second process with a rank that is taken ends alone") {
  Ranks ranks(3, {}, "3");
  ranks.start(0);
  ranks.start(1);
  usleep(300000);
  Ranks second(3, {{"SGTC_MASTER", ranks.setting("SGTC_MASTER")}}, "3");
  const ChildResult& result = second.start(1).end(5000);
  CHECK(result.code == kExitFailure);
  CHECK(contains(result.errors, "rank 1 (host "));
  CHECK(contains(result.errors, "has the rank of another process"));
  ranks.start(2);
  for (int64_t rank = 0; rank < ranks.size(); ++rank) CHECK(ranks[rank].end().code == 0);
}

TEST_CASE("another number of ranks on one rank") {
  Ranks ranks(3);
  ranks.start(0);
  ranks.start(1);
  ranks.start(2, {{"SGTC_WORLD_SIZE", "4"}, {"PROBE_RANKS", "4"}});
  check_refused(ranks, "belongs to a job of 4 ranks, rank 0 to one of 3");
}

TEST_CASE("another program on one rank") {
  Ranks ranks(3);
  ranks.start(0);
  ranks.start(1, {{"PROBE_FINGERPRINT", "0123456789abcdef"}});
  ranks.start(2);
  check_refused(ranks, "runs program 0123456789ab, rank 0 runs abc");
}

TEST_CASE("options that differ are named with their values") {
  Ranks ranks(2);
  ranks.start(0);
  ranks.start(1, {}, {"--seed", "7"});
  check_refused(ranks, "--seed is '7', on rank 0 '0'; give all ranks the same options");
}

TEST_CASE("a rank with another secret") {
  Ranks ranks(3);
  ranks.start(0);
  ranks.start(1);
  ranks.start(2, {{"SGTC_SECRET", "wrong"}});
  check_refused(ranks, "has another secret");
}

TEST_CASE("several hosts need a secret") {
  Ranks ranks(2, {{"SGTC_SECRET", ""}, {"SGTC_MASTER", "192.0.2.1:4000"}});
  ranks.start_all();
  check_refused(ranks, "may span several hosts and has no shared secret");
}

TEST_CASE("a port that somebody else uses") {
  Socket listener;
  int64_t port = 0;
  REQUIRE_FALSE(listen_at("127.0.0.1", port, listener));
  Ranks ranks(2, {{"SGTC_MASTER", "127.0.0.1:" + std::to_string(port)}});
  ranks.start_all();
  check_refused(ranks, "127.0.0.1:" + std::to_string(port));
}

TEST_CASE("ranks that do not come are named") {
  Ranks ranks(4);
  ranks.start(0, {}, {"--rendezvous-timeout", "1"});
  ranks.start(2, {}, {"--rendezvous-timeout", "1"});
  for (int64_t rank : {0, 2}) {
    CHECK(ranks[rank].end().code == kExitFailure);
    CHECK(contains(ranks[rank].end().errors, "have not joined within 1 s: 1, 3"));
  }
}

TEST_CASE("a rank that is lost before all have joined") {
  Ranks ranks(3);
  ranks.start(0);
  ranks.start(1);
  ranks.start(2).signal(SIGSTOP);
  usleep(500000);
  ranks[1].signal(SIGKILL);
  const ChildResult& result = ranks[0].end(5000);
  INFO(result.errors);
  CHECK(result.code == kExitLost);
  CHECK(contains(result.errors, "was lost before all ranks had joined"));
}

TEST_CASE("a name that only this machine can reach") {
  Ranks ranks(2, {{"SGTC_MASTER", "0x7f.1:" + free_port()}}, "3");
  ranks.start_all();
  CHECK(ranks[0].end().code == 0);
  CHECK(contains(ranks[0].end().errors, "0x7f.1: is a loopback address here"));
}

TEST_CASE("ranks of one host need nobody to give them a secret") {
  const Settings settings = {{"SGTC_SECRET", ""}, {"SGTC_JOB", "test-" + free_port()}};
  Ranks ranks(2, settings, "3");
  ranks.start(1);
  usleep(200000);
  ranks.start(0);
  for (int64_t rank : {0, 1}) {
    INFO(ranks[rank].end().errors);
    CHECK(ranks[rank].end().code == 0);
  }
}

}  // namespace sgtc::runtime
