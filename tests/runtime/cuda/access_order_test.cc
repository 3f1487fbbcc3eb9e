#include "cuda/access_order.h"

#include <random>
#include <set>

#include "support/catch.h"

namespace sgtc::runtime::cuda {
namespace {

unsigned char memory[64];

Access access(bool writes, int64_t begin, int64_t bytes) {
  return {{memory + begin, bytes}, writes};
}

using Launches = std::vector<size_t>;

}  // namespace

TEST_CASE("what is written is read after it and written again after its readers") {
  AccessOrder order;
  CHECK(order.add(0, {access(true, 0, 8)}).empty());
  CHECK(order.add(1, {access(false, 0, 8)}) == Launches{0});
  CHECK(order.add(2, {access(false, 4, 8)}) == Launches{0});
  CHECK(order.add(3, {access(true, 0, 12)}) == Launches{1, 2});
}

TEST_CASE("a launch does not follow itself") {
  AccessOrder order;
  CHECK(order.add(0, {access(false, 0, 8), access(true, 0, 8), access(true, 4, 8)}).empty());
  CHECK(order.add(1, {access(true, 0, 8), access(false, 0, 8)}) == Launches{0});
}

TEST_CASE("nothing is ordered by empty ranges") {
  AccessOrder order;
  order.add(0, {access(true, 0, 8)});
  CHECK(order.add(1, {access(true, 4, 0)}).empty());
}

TEST_CASE("conflicts of random accesses are ordered, and nothing else") {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return static_cast<int64_t>(random() % n); };
  AccessOrder order;
  std::vector<std::vector<Access>> all;
  std::vector<std::set<size_t>> earlier;  // of each launch, over any number of edges
  const auto conflict = [&](size_t a, size_t b) {
    for (const Access& x : all[a]) {
      for (const Access& y : all[b]) {
        if ((x.writes || y.writes) && x.range.data < y.range.data + y.range.bytes &&
            y.range.data < x.range.data + x.range.bytes) {
          return true;
        }
      }
    }
    return false;
  };
  for (size_t launch = 0; launch < 300; ++launch) {
    std::vector<Access> accesses;
    for (int64_t i = below(3); i >= 0; --i) {
      accesses.push_back(access(below(3) == 0, below(56), 1 + below(8)));
    }
    all.push_back(accesses);
    earlier.emplace_back();
    for (const size_t before : order.add(launch, accesses)) {
      REQUIRE(before < launch);
      CHECK(conflict(before, launch));
      earlier[launch].insert(before);
      earlier[launch].insert(earlier[before].begin(), earlier[before].end());
    }
    for (size_t before = 0; before < launch; ++before) {
      if (conflict(before, launch)) CHECK(earlier[launch].count(before) == 1);
    }
  }
}

}  // namespace sgtc::runtime::cuda
