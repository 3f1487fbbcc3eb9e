#include "runtime/block_range.h"

#include <thread>
#include <vector>

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

bool is(Blocks blocks, uint32_t begin, uint32_t end) {
  return blocks.begin == begin && blocks.end == end;
}

}  // namespace

TEST_CASE("the owner of a range takes from its front and others from its back") {
  BlockRange range;
  CHECK(range.take_front().size() == 0);
  range.fill({10, 26});
  CHECK(is(range.take_front(), 10, 22));
  CHECK(is(range.take_back(), 24, 26));
  CHECK(is(range.take_front(), 22, 24));
  CHECK(range.size() == 0);
  CHECK(range.take_back().size() == 0);
}

TEST_CASE("a last block goes to either side") {
  BlockRange range;
  range.fill({3, 4});
  CHECK(is(range.take_back(), 3, 4));
  range.fill({3, 4});
  CHECK(is(range.take_front(), 3, 4));
}

TEST_CASE("threads that take at once get each block once") {
  constexpr uint32_t kBlocks = 1000;
  for (int round = 0; round < 50; ++round) {
    BlockRange range;
    range.fill({0, kBlocks});
    std::vector<int> taken(kBlocks);
    const auto count = [&](Blocks blocks) {
      for (uint32_t i = blocks.begin; i < blocks.end; ++i) ++taken[i];
    };
    std::thread other([&] {
      for (Blocks blocks; (blocks = range.take_back()).size() > 0;) count(blocks);
    });
    for (Blocks blocks; (blocks = range.take_front()).size() > 0;) count(blocks);
    other.join();
    REQUIRE(taken == std::vector<int>(kBlocks, 1));
  }
}

}  // namespace sgtc::runtime
