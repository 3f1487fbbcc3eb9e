#include "runtime/communication/shared_memory.h"

#include <filesystem>

#include "runtime/child.h"
#include "runtime/communication/collectives.h"
#include "runtime/communication/processes.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

bool names_left() {
  const std::string prefix = "sgtc-test-" + std::to_string(getpid());
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().rfind(prefix, 0) == 0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("shared memory: collectives of two and four processes") {
  for (const int64_t ranks : {2, 4}) check_sizes(run_over_shared_memory, ranks);
}

TEST_CASE("shared memory: every element type is reduced in the order of the members") {
  check_types(run_over_shared_memory, 3);
}

TEST_CASE("shared memory: the name is gone as soon as the ranks have the segment") {
  run_over_shared_memory({group_of_all(2, 4096)}, 2, [](int64_t, auto&) { return Bytes(); });
  CHECK_FALSE(names_left());
}

TEST_CASE("shared memory: survivors notice that a peer was killed in the middle") {
  for (const CommunicationKind kind :
       {CommunicationKind::send, CommunicationKind::all_reduce, CommunicationKind::reduce_scatter,
        CommunicationKind::all_gather, CommunicationKind::broadcast}) {
    for (const size_t victim : {size_t{0}, size_t{1}}) {
      CAPTURE(static_cast<int>(kind), victim);
      CHECK(survivors_notice(by_shared_memory(), kind, victim));
    }
  }
  CHECK_FALSE(names_left());
}

TEST_CASE("shared memory: a name that is taken is refused") {
  const std::string name = segment_name();
  const SegmentLayout layout({group_of_all(2, 4096)}, 2);
  const auto open = [&](bool creates) {
    return run_child([&] {
      const SharedMemory memory(layout, name, creates, [] {});
      return 0;
    });
  };
  CHECK(open(false).errors.find("cannot be opened: No such file") != std::string::npos);
  close(shm_open(name.c_str(), O_RDWR | O_CREAT, 0600));
  CHECK(open(true).errors.find("cannot be created: File exists") != std::string::npos);
  CHECK(open(false).errors.find("is not the one that this job made") != std::string::npos);
  shm_unlink(name.c_str());
}

}  // namespace sgtc::runtime
