#include "runtime/communication/loopback.h"

#include <atomic>

#include "runtime/child.h"
#include "runtime/communication/collectives.h"
#include "runtime/communication/ranks.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

CommunicationRequest transfer(CommunicationKind kind, int64_t peer, std::vector<Part> parts) {
  CommunicationRequest request;
  request.kind = kind;
  request.peer = peer;
  (kind == CommunicationKind::send ? request.inputs : request.outputs) = std::move(parts);
  return request;
}

CommunicationRequest send(int64_t peer, std::vector<Part> parts) {
  return transfer(CommunicationKind::send, peer, std::move(parts));
}

CommunicationRequest receive(int64_t peer, std::vector<Part> parts) {
  return transfer(CommunicationKind::receive, peer, std::move(parts));
}

}  // namespace

TEST_CASE("loopback: collectives of one to eight members") {
  for (const int64_t ranks : {1, 2, 3, 5, 8}) check_sizes(run_as_threads, ranks);
}

TEST_CASE("loopback: every element type is reduced in the order of the members") {
  check_types(run_as_threads, 3);
}

TEST_CASE("loopback: a message may be longer than the ring and cut differently on both sides") {
  for (const int64_t bytes : {0, 1, 4095, 4096, 4097, 700001}) {
    for (const int64_t ring : {1, 1 << 20}) {
      const auto results = run_as_threads({group_of_all(2, ring)}, 2, [&](int64_t rank, auto& c) {
        Bytes data = rank == 0 ? make_elements("u8", bytes, 5) : Bytes(static_cast<size_t>(bytes));
        if (rank == 0) c.run("all", send(1, in_parts(data, 3, 1)));
        if (rank == 1) c.run("all", receive(0, in_parts(data, 2, 1)));
        return data;
      });
      CHECK(results[1] == make_elements("u8", bytes, 5));
    }
  }
}

TEST_CASE("loopback: a group exchanges messages that are longer than the rings") {
  const auto results = run_as_threads({group_of_all(2, 1)}, 2, [](int64_t rank, auto& c) {
    Bytes out = make_elements("u8", 300000, rank);
    Bytes in(out.size());
    Communicator& all = *c.find("all");
    const auto first = all.prepare(send(1 - rank, in_parts(out, 1, 1)));
    const auto second = all.prepare(receive(1 - rank, in_parts(in, 1, 1)));
    Operation* const group[] = {first.get(), second.get()};
    c.complete(group, 2);
    return in;
  });
  for (int64_t rank : {0, 1}) {
    CHECK(results[static_cast<size_t>(rank)] == make_elements("u8", 300000, 1 - rank));
  }
}

TEST_CASE("loopback: the operations of a group keep the order of their communicator") {
  const auto results = run_as_threads({group_of_all(2, 1)}, 2, [](int64_t rank, auto& c) {
    Bytes data = rank == 0 ? make_elements("u8", 40000, 1) : Bytes(40000);
    std::vector<std::unique_ptr<Operation>> owned;
    std::vector<Operation*> group;
    for (const Part& part : in_parts(data, 4, 1)) {
      owned.push_back(c.find("all")->prepare(rank == 0 ? send(1, {part}) : receive(0, {part})));
      group.push_back(owned.back().get());
    }
    c.complete(group.data(), static_cast<int64_t>(group.size()));
    return data;
  });
  CHECK(results[1] == make_elements("u8", 40000, 1));
}

TEST_CASE("loopback: members of several communicators mix their operations") {
  std::vector<RankGroup> groups;
  for (const char* name : {"a", "b", "c"}) {
    groups.push_back(group_of_all(3, 4096));
    groups.back().communicator = name;
  }
  const auto body = [](int64_t rank, RankCommunicators& c) {
    Bytes log;
    uint64_t state = 12345;  // equal on all ranks: the order of the operations
    for (int i = 0; i < 300; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const uint64_t random = state >> 33;
      const std::string name(1, static_cast<char>('a' + random % 3));
      const int64_t count = static_cast<int64_t>(random / 3 % 5000);
      const int64_t peer = (rank + 1) % 3;
      Bytes data = make_elements("f32", count, rank + i);
      CommunicationRequest request;
      request.dtype = "f32";
      request.inputs = request.outputs = in_parts(data, 2, 4);
      if (random / 15000 % 2 == 0) {
        request.kind = CommunicationKind::all_reduce;
        c.run(name, request);
      } else if (rank == 0) {
        c.run(name, send(peer, in_parts(data, 1, 1)));
      } else if (rank == 1) {
        c.run(name, receive(0, in_parts(data, 1, 1)));
      }
      log.insert(log.end(), data.begin(), data.end());
    }
    return log;
  };
  const auto results = run_as_threads(groups, 3, body);
  const auto again = run_as_threads(groups, 3, body);
  CHECK(results == again);
  CHECK(results[0] == results[1]);
}

TEST_CASE("a rank that waits for a lost peer ends the process") {
  class LosingWatch : public CalmWatch {
   public:
    bool lost() const override { return ++looks > 3; }
    [[noreturn]] void exit_lost() override { _exit(200); }
    mutable std::atomic<int> looks{0};
  };
  for (const CommunicationKind kind :
       {CommunicationKind::send, CommunicationKind::receive, CommunicationKind::all_reduce,
        CommunicationKind::reduce_scatter, CommunicationKind::all_gather,
        CommunicationKind::broadcast}) {
    const ChildResult result = run_child([&] {
      LosingWatch watch;
      Loopback loopback({group_of_all(2, 4096)}, 2);
      const auto communicators = loopback.communicators(0, watch);
      Bytes large(1 << 20);
      Bytes half(1 << 19);
      CommunicationRequest request;
      request.kind = kind;
      request.peer = 1;
      const bool gathers = kind == CommunicationKind::all_gather;
      const bool scatters = kind == CommunicationKind::reduce_scatter;
      request.inputs = in_parts(gathers ? half : large, 1, 1);
      request.outputs = in_parts(scatters ? half : large, 1, 1);
      communicators->run("all", request);
      return 0;
    });
    CHECK(result.code == 200);
  }
}

TEST_CASE("requests that contradict themselves are refused") {
  const auto refusal = [](const std::function<void(CommunicationRequest&)>& damage) {
    const ChildResult result = run_child([&] {
      CalmWatch watch;
      Loopback loopback({group_of_all(2, 4096)}, 2);
      Bytes data(64);
      CommunicationRequest request;
      request.kind = CommunicationKind::all_reduce;
      request.dtype = "f32";
      request.inputs = request.outputs = in_parts(data, 1, 1);
      damage(request);
      loopback.communicators(0, watch)->find("all")->prepare(request);
      return 0;
    });
    CHECK(result.code == 1);
    return result.errors;
  };
  const auto contains = [&](const std::function<void(CommunicationRequest&)>& damage,
                            const std::string& text) {
    const std::string message = refusal(damage);
    INFO(message);
    return message.find(text) != std::string::npos;
  };
  CHECK(contains([](auto& r) { r.kind = CommunicationKind::send, r.peer = 2; },
                 "communicator all of 2 members has no member 2"));
  CHECK(contains([](auto& r) { r.kind = CommunicationKind::send, r.peer = 0; },
                 "communicator all has no channel from member 0 to 0"));
  CHECK(contains([](auto& r) { r.inputs[0].bytes = 60; }, "inputs and outputs differ in size"));
  CHECK(contains([](auto& r) { r.inputs[0].bytes = 63; }, "no whole elements of f32"));
  CHECK(contains([](auto& r) { r.dtype = "bool"; }, "elements of type bool cannot be reduced"));
}

}  // namespace sgtc::runtime
