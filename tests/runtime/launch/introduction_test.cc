#include "runtime/launch/introduction.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

Introduction example(int64_t rank) {
  Introduction introduction;
  introduction.rank = rank;
  introduction.size = 4;
  introduction.pid = 4711;
  introduction.host = "node1";
  introduction.identity = "node1 x";
  introduction.cpus = "0-3";
  introduction.fingerprint = "abc";
  introduction.agreement = {{"--steps", "10"}, {"--lr", "0.1"}};
  return introduction;
}

std::string problem_of(const Introduction& other) {
  const MaybeFailure failure = compare_with_rank_0(example(0), other);
  return failure ? failure->object + ": " + failure->problem : "";
}

}  // namespace

TEST_CASE("introductions survive the network") {
  const Introduction sent = example(2);
  Introduction received;
  REQUIRE(decode(encode(sent), received));
  CHECK(received.rank == 2);
  CHECK(received.size == 4);
  CHECK(received.pid == 4711);
  CHECK(received.host == "node1");
  CHECK(received.identity == "node1 x");
  CHECK(received.cpus == "0-3");
  CHECK(received.fingerprint == "abc");
  CHECK(received.agreement == sent.agreement);
}

TEST_CASE("pieces of an introduction are none") {
  const std::string text = encode(example(2));
  Introduction introduction;
  for (size_t size = 0; size < text.size(); ++size) {
    CHECK_FALSE(decode(text.substr(0, size), introduction));
  }
  CHECK_FALSE(decode(text + "x", introduction));
}

TEST_CASE("ranks that fit") { CHECK(problem_of(example(3)).empty()); }

TEST_CASE("differences between ranks are named") {
  Introduction other = example(3);
  other.agreement = {{"--steps", "10"}, {"--lr", "0.2"}, {"--seed", "1"}};
  CHECK(problem_of(other) ==
        "rank 3 (host node1, process 4711): --lr is '0.2', on rank 0 '0.1', "
        "--seed is '1', on rank 0 nothing");
  other.agreement = {{"--lr", "0.1"}};
  CHECK(problem_of(other) ==
        "rank 3 (host node1, process 4711): --steps is nothing, on rank 0 '10'");
  other.fingerprint = "def";
  CHECK(problem_of(other) ==
        "rank 3 (host node1, process 4711): runs program def, rank 0 runs abc");
  other.size = 2;
  CHECK(problem_of(other) ==
        "rank 3 (host node1, process 4711): belongs to a job of 2 ranks, rank 0 to one of 4");
}

}  // namespace sgtc::runtime
