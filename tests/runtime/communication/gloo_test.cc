#include "runtime/child.h"
#include "runtime/communication/collectives.h"
#include "runtime/communication/gloo_network.h"
#include "runtime/communication/gloo_ranks.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

std::vector<Bytes> run_over_gloo(const std::vector<RankGroup>& groups, int64_t ranks,
                                 const RankBody& body) {
  return run_processes(groups, ranks, by_gloo(), body);
}

}  // namespace

TEST_CASE("Gloo: collectives of two and three processes") {
  for (const int64_t ranks : {2, 3}) check_sizes(run_over_gloo, ranks);
}

TEST_CASE("Gloo: every element type is reduced in the order of the members") {
  check_types(run_over_gloo, 3);
}

TEST_CASE("Gloo: messages cut differently on both sides, and groups that send first") {
  for (const int64_t bytes : {0, 1, 300001, 3000000}) {
    const auto results = run_over_gloo({group_of_all(2, 1)}, 2, [&](int64_t rank, auto& c) {
      Bytes out = make_elements("u8", bytes, rank);
      Bytes in(out.size());
      CommunicationRequest send;
      send.kind = CommunicationKind::send;
      send.peer = 1 - rank;
      send.inputs = in_parts(out, 1 + rank, 1);
      CommunicationRequest receive;
      receive.kind = CommunicationKind::receive;
      receive.peer = 1 - rank;
      receive.outputs = in_parts(in, 2 + rank, 1);
      const auto first = c.find("all")->prepare(send);
      const auto second = c.find("all")->prepare(receive);
      Operation* const group[] = {first.get(), second.get()};
      for (int repeat = 0; repeat < 3; ++repeat) c.complete(group, 2);
      return in;
    });
    CHECK(results[0] == make_elements("u8", bytes, 1));
    CHECK(results[1] == make_elements("u8", bytes, 0));
  }
}

TEST_CASE("Gloo: survivors notice that a peer was killed in the middle") {
  for (const CommunicationKind kind :
       {CommunicationKind::send, CommunicationKind::all_reduce, CommunicationKind::reduce_scatter,
        CommunicationKind::all_gather, CommunicationKind::broadcast}) {
    for (const size_t victim : {size_t{0}, size_t{1}}) {
      CAPTURE(static_cast<int>(kind), victim);
      CHECK(survivors_notice(by_gloo(), kind, victim));
    }
  }
}

TEST_CASE("Gloo: an interface that does not exist is refused") {
  const ChildResult result = run_child([] {
    setenv("SGTC_INTERFACE", "no-such-interface", 1);
    Meeting* meeting = Meeting::make();
    return static_cast<int>(by_gloo()(*meeting, {group_of_all(1, 1)}, 0, 1, [](int64_t, auto&) {
                              return Bytes();
                            }).size());
  });
  INFO(result.errors);
  CHECK(result.code == 1);
  CHECK(result.errors.find("set SGTC_INTERFACE to the network interface") != std::string::npos);
}

}  // namespace sgtc::runtime
