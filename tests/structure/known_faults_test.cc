// The tests that tests/known_faults.md names exist.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "support/catch.h"

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("every test that stands for a known fault exists") {
  const std::filesystem::path tests = std::filesystem::path(SGTC_SOURCE_DIR) / "tests";
  const std::string table = read(tests / "known_faults.md");
  const std::regex reference("`([a-z_/]+\\.(py|cc)):([^`]+)`");
  int found = 0;
  for (std::sregex_iterator match(table.begin(), table.end(), reference), end; match != end;
       ++match, ++found) {
    const std::string file = (*match)[1], name = (*match)[3];
    INFO(file << ": " << name);
    const std::string code = read(tests / file);
    const std::string definition =
        (*match)[2] == "py" ? "def test_" + name + "(" : "TEST_CASE(\"" + name + "\"";
    CHECK(code.find(definition) != std::string::npos);
  }
  CHECK(found > 40);
}
