// Several ranks as processes that share memory.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/communication/ranks.h"
#include "runtime/communication/shared_memory.h"

namespace sgtc::runtime {

inline constexpr int64_t kResultBytes = 4 << 20;

/// What parent and ranks of a test share: a barrier, the news of a loss and results.
struct Meeting {
  struct Result {
    int64_t size = -1;
    unsigned char bytes[kResultBytes];
  };
  std::atomic<int64_t> arrivals{0};
  std::atomic<bool> lost{false};
  std::atomic<int64_t> ready{0};  // ranks that are about to do what the test is about
  Result results[8];

  static Meeting* make() {
    void* memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return new (memory) Meeting;
  }
  static void release(Meeting* meeting) { munmap(meeting, sizeof *meeting); }

  void barrier(int64_t ranks) {
    const int64_t goal = (arrivals.fetch_add(1) / ranks + 1) * ranks;
    while (arrivals.load() < goal) usleep(100);
  }
};

class MeetingWatch : public CalmWatch {
 public:
  explicit MeetingWatch(const Meeting& meeting) : meeting_(meeting) {}
  bool lost() const override { return meeting_.lost.load(); }
  [[noreturn]] void exit_lost() override { _exit(200); }

 private:
  const Meeting& meeting_;
};

/// What all ranks give, in rank order.
inline std::vector<std::string> gather_by_meeting(Meeting& meeting, int64_t rank, int64_t ranks,
                                                  std::string_view data) {
  Meeting::Result& own = meeting.results[rank];
  std::copy(data.begin(), data.end(), own.bytes);
  own.size = static_cast<int64_t>(data.size());
  meeting.barrier(ranks);
  std::vector<std::string> all;
  for (int64_t r = 0; r < ranks; ++r) {
    const Meeting::Result& result = meeting.results[r];
    all.emplace_back(reinterpret_cast<const char*>(result.bytes), result.size);
  }
  meeting.barrier(ranks);
  return all;
}

/// A name that no other test uses at the same time.
inline std::string segment_name() {
  static int count = 0;
  return "/sgtc-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

/// Connects the processes of all ranks in some way and runs `body` as one of them.
using ConnectRanks = std::function<Bytes(Meeting& meeting, const std::vector<RankGroup>& groups,
                                         int64_t rank, int64_t ranks, const RankBody& body)>;

/// Starts each rank in a process of its own, which exits with 0 when `body` returns.
inline std::vector<pid_t> start_processes(Meeting& meeting, const std::vector<RankGroup>& groups,
                                          int64_t ranks, const ConnectRanks& connect,
                                          const RankBody& body) {
  std::vector<pid_t> children;
  std::fflush(nullptr);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    const Bytes bytes = connect(meeting, groups, rank, ranks, body);
    Meeting::Result& result = meeting.results[rank];
    std::copy(bytes.begin(), bytes.end(), result.bytes);
    result.size = static_cast<int64_t>(bytes.size());
    std::fflush(nullptr);
    _exit(0);
  }
  return children;
}

/// Connects ranks through shared memory of a name that all of them know.
inline ConnectRanks by_shared_memory() {
  return [name = segment_name()](Meeting& meeting, const std::vector<RankGroup>& groups,
                                 int64_t rank, int64_t ranks, const RankBody& body) {
    const SharedMemory memory(SegmentLayout(groups, ranks), name, rank == 0,
                              [&] { meeting.barrier(ranks); });
    MeetingWatch watch(meeting);
    RankCommunicators communicators(memory.bell(rank), watch,
                                    ranks <= sysconf(_SC_NPROCESSORS_ONLN));
    memory.add_communicators(rank, communicators);
    return body(rank, communicators);
  };
}

inline int wait_for_exit(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Runs `body` as each of `ranks` ranks in a process of its own.
inline std::vector<Bytes> run_processes(const std::vector<RankGroup>& groups, int64_t ranks,
                                        const ConnectRanks& connect, const RankBody& body) {
  Meeting* meeting = Meeting::make();
  for (const pid_t child : start_processes(*meeting, groups, ranks, connect, body)) {
    if (wait_for_exit(child) != 0) throw std::runtime_error("a rank failed");
  }
  std::vector<Bytes> results;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Meeting::Result& result = meeting->results[rank];
    results.emplace_back(result.bytes, result.bytes + std::max<int64_t>(result.size, 0));
  }
  Meeting::release(meeting);
  return results;
}

inline std::vector<Bytes> run_over_shared_memory(const std::vector<RankGroup>& groups,
                                                 int64_t ranks, const RankBody& body) {
  return run_processes(groups, ranks, by_shared_memory(), body);
}

/// Repeats one communication for ever, with member 1 as root or the other end. A rank counts itself
/// ready after the first.
inline Bytes repeat_for_ever(CommunicationKind kind, int64_t rank, Meeting& meeting,
                             RankCommunicators& communicators) {
  Bytes large(1 << 20);
  Bytes quarter(large.size() / 4);
  CommunicationRequest request;
  request.kind = kind;
  request.peer = 1;
  if (rank == 1 && kind == CommunicationKind::send) {
    request.kind = CommunicationKind::receive;
    request.peer = 0;
  }
  const bool gathers = kind == CommunicationKind::all_gather;
  const bool scatters = kind == CommunicationKind::reduce_scatter;
  request.inputs = in_parts(gathers ? quarter : large, 1, 1);
  request.outputs = in_parts(scatters ? quarter : large, 1, 1);
  for (bool first = true;; first = false) {
    communicators.run("all", request);
    if (first) meeting.ready.fetch_add(1);
  }
}

/// Kills one rank in the middle of each kind of communication; true if all others exit with 200.
inline bool survivors_notice(const ConnectRanks& connect, CommunicationKind kind, size_t victim) {
  const int64_t ranks = kind == CommunicationKind::send ? 2 : 4;
  Meeting* meeting = Meeting::make();
  const auto children =
      start_processes(*meeting, {group_of_all(ranks, 4096)}, ranks, connect,
                      [&](int64_t rank, RankCommunicators& communicators) {
                        if (!std::freopen("/dev/null", "w", stderr)) std::abort();
                        return repeat_for_ever(kind, rank, *meeting, communicators);
                      });
  while (meeting->ready.load() < ranks) usleep(100);
  kill(children[victim], SIGKILL);
  bool noticed = wait_for_exit(children[victim]) == -1;
  meeting->lost.store(true);
  for (size_t i = 0; i < children.size(); ++i) {
    if (i != victim) noticed &= wait_for_exit(children[i]) == 200;
  }
  Meeting::release(meeting);
  return noticed;
}

}  // namespace sgtc::runtime
