#include "partition/find_repeats.h"

#include "support/catch.h"

using namespace sgtc;

namespace {

// Each character is a kernel. "first period count".
std::string repeats_of(const std::string& text) {
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  const Repeats repeats = find_repeats(symbols);
  return std::to_string(repeats.first) + " " + std::to_string(repeats.period) + " " +
         std::to_string(repeats.count);
}

}  // namespace

TEST_CASE("layers are found between what comes before and behind") {
  CHECK(repeats_of("eabcabcabch") == "1 3 3");
  CHECK(repeats_of("xabababab") == "1 2 4");
  CHECK(repeats_of("aab") == "0 1 2");
}

TEST_CASE("what repeats longest wins, and the shortest period of it") {
  CHECK(repeats_of("zzabcdabcdabcd") == "2 4 3");
  CHECK(repeats_of("aaaaaa") == "0 1 6");
}

TEST_CASE("nothing repeats") {
  CHECK(repeats_of("abcd") == "0 0 0");
  CHECK(repeats_of("") == "0 0 0");
}
