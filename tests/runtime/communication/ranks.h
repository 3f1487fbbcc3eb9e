// Several ranks as threads of one process, and what they should compute.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/communication/loopback.h"
#include "runtime/element_type.h"

namespace sgtc::runtime {

using Bytes = std::vector<unsigned char>;

/// A job that never loses a peer.
class CalmWatch : public Watch {
 public:
  bool lost() const override { return false; }
  [[noreturn]] void exit_lost() override { std::abort(); }
  void enter(int64_t, const char*, int64_t) override {}
};

/// What a rank does; the bytes are what it found out.
using RankBody = std::function<Bytes(int64_t rank, RankCommunicators& communicators)>;

/// Runs `body` as each of `ranks` ranks in a thread of its own.
inline std::vector<Bytes> run_as_threads(const std::vector<RankGroup>& groups, int64_t ranks,
                                         const RankBody& body) {
  Loopback loopback(groups, ranks);
  std::vector<Bytes> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      CalmWatch watch;
      const auto communicators = loopback.communicators(rank, watch);
      results[static_cast<size_t>(rank)] = body(rank, *communicators);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

/// One communicator "all" of all ranks, with a channel between each pair.
inline RankGroup group_of_all(int64_t ranks, int64_t bytes) {
  RankGroup group;
  group.communicator = "all";
  group.collective_bytes = bytes;
  for (int64_t a = 0; a < ranks; ++a) {
    group.ranks.push_back(a);
    for (int64_t b = 0; b < ranks; ++b) {
      if (a != b) group.channels.push_back({a, b, bytes});
    }
  }
  return group;
}

/// `count` elements that differ from rank to rank and from place to place.
inline Bytes make_elements(const std::string& dtype, int64_t count, int64_t rank) {
  const int64_t size = size_of_element(dtype);
  Bytes bytes(static_cast<size_t>(count * size));
  uint64_t state = 88172645463325252U + static_cast<uint64_t>(rank) * 977;
  for (int64_t i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double value = static_cast<double>(state % 2001) / 77 - 12;
    if (is_integer(dtype)) value = static_cast<double>(state % 19);
    if (dtype == "bool") value = static_cast<double>(state % 2);
    write_element(dtype, value, bytes.data() + i * size);
  }
  return bytes;
}

/// The reduction of all inputs in rank order, element by element, each step rounded to the type or,
/// for 16-bit floats, to f32.
inline Bytes reduce_in_order(const std::string& dtype, Reduction reduction,
                             const std::vector<Bytes>& inputs) {
  const std::string wide = dtype == "f16" || dtype == "bf16" ? "f32" : dtype;
  const size_t size = static_cast<size_t>(size_of_element(dtype));
  Bytes result(inputs[0].size());
  for (size_t at = 0; at < result.size(); at += size) {
    unsigned char sum[8];
    write_element(wide, read_element(dtype, inputs[0].data() + at), sum);
    for (size_t m = 1; m < inputs.size(); ++m) {
      const double a = read_element(wide, sum);
      const double b = read_element(dtype, inputs[m].data() + at);
      write_element(wide, reduction == Reduction::sum ? a + b : std::max(a, b), sum);
    }
    write_element(dtype, read_element(wide, sum), result.data() + at);
  }
  return result;
}

/// `bytes` in up to `parts` parts of whole elements, the last one empty where there are several.
inline std::vector<Part> in_parts(Bytes& bytes, int64_t parts, int64_t unit) {
  std::vector<Part> result;
  const int64_t units = static_cast<int64_t>(bytes.size()) / unit;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = units * i / parts * unit;
    const int64_t end = units * (i + 1) / parts * unit;
    result.push_back({bytes.data() + begin, end - begin});
  }
  if (parts > 1) result.push_back({bytes.data(), 0});
  return result;
}

}  // namespace sgtc::runtime
