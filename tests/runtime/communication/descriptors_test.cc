#include "runtime/communication/descriptors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/communication/processes.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

// What a rank says instead of a text.
using Change = std::function<std::string(int64_t rank, std::string text)>;

int file_with(const std::string& text) {
  const int file = memfd_create("test", MFD_CLOEXEC);
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  return file;
}

std::string contents(const Socket& file) {
  char text[64] = {};
  return pread(file.descriptor(), text, sizeof text - 1, 0) < 0 ? "none" : text;
}

// Each rank gives all others two files; the result is what it read of theirs.
std::vector<std::string> exchange(const std::vector<int64_t>& nodes, const Change& change) {
  const auto ranks = static_cast<int64_t>(nodes.size());
  const ConnectRanks connect = [&](Meeting& meeting, const std::vector<RankGroup>&, int64_t rank,
                                   int64_t, const RankBody&) {
    CalmWatch watch;
    const Peers peers = {rank, nodes,
                         [&](std::string_view text) {
                           return gather_by_meeting(meeting, rank, ranks,
                                                    change(rank, std::string(text)));
                         },
                         watch};
    std::vector<int64_t> others;
    for (int64_t other = 0; other < ranks; ++other) {
      if (other != rank) others.push_back(other);
    }
    const std::string name = std::to_string(rank);
    const Descriptors received =
        exchange_descriptors(peers, others, {file_with("a" + name), file_with("b" + name)});
    std::string found;
    for (const auto& [other, files] : received) {
      found += std::to_string(other) + ":";
      for (const Socket& file : files) found += contents(file);
      found += " ";
    }
    return Bytes(found.begin(), found.end());
  };
  std::vector<std::string> results;
  for (const Bytes& bytes : run_processes({}, ranks, connect, {})) {
    results.emplace_back(bytes.begin(), bytes.end());
  }
  return results;
}

std::string as_it_is(int64_t, std::string text) { return text; }

}  // namespace

TEST_CASE("ranks of a host get each other's descriptors") {
  CHECK(exchange({0, 0, 0}, as_it_is) ==
        std::vector<std::string>{"1:a1b1 2:a2b2 ", "0:a0b0 2:a2b2 ", "0:a0b0 1:a1b1 "});
}

TEST_CASE("ranks of other hosts get no descriptors") {
  CHECK(exchange({0, 0, 1}, as_it_is) == std::vector<std::string>{"1:a1b1 ", "0:a0b0 ", ""});
}

TEST_CASE("a process that the job does not know gives and gets no descriptors") {
  // Rank 1 names the wrong process.
  CHECK(exchange({0, 0}, [](int64_t rank, const std::string& text) {
          return rank == 1 && !text.empty() ? "1" + text : text;
        }) == std::vector<std::string>{"", ""});
}

TEST_CASE("a rank that cannot be reached is left out") {
  CHECK(exchange({0, 0}, [](int64_t rank, std::string text) {
          if (rank == 1 && !text.empty()) text.back() = text.back() == 'z' ? 'y' : 'z';
          return text;
        }) == std::vector<std::string>{"1:a1b1 ", ""});
}

}  // namespace sgtc::runtime
