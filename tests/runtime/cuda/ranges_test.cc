#include "cuda/ranges.h"

#include <string>

#include "runtime/regression_program.h"
#include "support/catch.h"

namespace sgtc::runtime::cuda {
namespace {

// Buffers of 40 bytes each 64 bytes, as "a", "b" and so on.
struct Memory {
  explicit Memory(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      add_buffer(position, std::string(1, static_cast<char>('a' + i)), "step", {10}, 40);
    }
  }
  std::string joined(const std::string& names) {
    const Arena arena(position.arena_bytes);
    const PlanMemory memory(position, arena);
    std::vector<MemoryRange> ranges;
    for (const char name : names) {
      ranges.push_back({memory.address(memory.buffer(std::string(1, name))), 40});
    }
    std::string text;
    for (const MemoryRange& range : join_ranges(ranges, position, memory)) {
      text += std::to_string(range.data - arena.data()) + "+" + std::to_string(range.bytes) + " ";
    }
    return text;
  }
  plan::Position position;
};

}  // namespace

TEST_CASE("ranges with padding between them are joined") {
  CHECK(Memory(3).joined("cba") == "0+168 ");
  CHECK(Memory(3).joined("") == "");
}

TEST_CASE("ranges with another buffer between them are not joined") {
  CHECK(Memory(4).joined("abd") == "0+104 192+40 ");
}

TEST_CASE("ranges that share a page give it once") {
  unsigned char* base = reinterpret_cast<unsigned char*>(uintptr_t{0x10000});
  const auto pages = pages_of({{base + 10, 5}, {base + 100, 4096}, {base + 9000, 1}}, 4096);
  REQUIRE(pages.size() == 1);
  CHECK(pages[0].data == base);
  CHECK(pages[0].bytes == 3 * 4096);
  CHECK(pages_of({{base + 10, 5}, {base + 9000, 1}}, 4096).size() == 2);
}

TEST_CASE("a range is cut where another one begins or ends") {
  unsigned char* base = reinterpret_cast<unsigned char*>(uintptr_t{0x10000});
  const std::vector<MemoryRange> others = {{base + 100, 100}, {base + 300, 100}};
  const auto cut = [&](int64_t begin, int64_t end) {
    std::string text;
    for (const MemoryRange& piece : cut_at_borders({base + begin, end - begin}, others)) {
      text += std::to_string(piece.data - base) + "+" + std::to_string(piece.bytes) + " ";
    }
    return text;
  };
  CHECK(cut(0, 100) == "0+100 ");
  CHECK(cut(120, 180) == "120+60 ");
  CHECK(cut(50, 150) == "50+50 100+50 ");
  CHECK(cut(150, 500) == "150+50 200+100 300+100 400+100 ");
}

}  // namespace sgtc::runtime::cuda
