// Data flows one way: a folder of compiler/ includes only folders to its left, and the runtime
// includes one header of the compiler, the plan format.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SGTC_SOURCE_DIR;

// The folders of compiler/ from left to right.
std::vector<std::string> folder_order() {
  std::istringstream text(SGTC_FOLDERS);
  std::vector<std::string> folders;
  for (std::string folder; text >> folder;) folders.push_back(folder);
  return folders;
}

// All files below `folder` whose name ends in .h or .cc, sorted; none if there is no such folder.
std::vector<fs::path> sources_below(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".h" || extension == ".cc") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// The first match group of each match of `pattern` in `text`.
std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

// The quoted includes of a source text.
std::vector<std::string> includes_of(const std::string& text) {
  return matches(text, "^[ \\t]*#[ \\t]*include[ \\t]*\"([^\"]+)\"");
}

// The functions declared at namespace scope that change a graph: a `Graph&` comes first.
std::vector<std::string> passes_declared_in(const std::string& text) {
  return matches(text, "^[A-Za-z_][A-Za-z0-9_:<>&*, ]*[ &*]([a-z_0-9]+)\\((?:ir::)?Graph&");
}

std::string first_folder(const std::string& include) {
  return include.substr(0, include.find('/'));
}

// "FILE includes HEADER" for each include of `folder`, the one at `position`, that goes right.
std::vector<std::string> includes_to_the_right(const std::vector<std::string>& order,
                                               size_t position) {
  std::vector<std::string> wrong;
  for (const fs::path& file : sources_below(kRoot / "compiler" / order[position])) {
    for (const std::string& include : includes_of(read(file))) {
      const auto target = std::find(order.begin(), order.end(), first_folder(include));
      if (target != order.end() && target - order.begin() > static_cast<long>(position)) {
        wrong.push_back(fs::relative(file, kRoot).string() + " includes " + include);
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("folders of the compiler include only folders to their left") {
  const std::vector<std::string> order = folder_order();
  REQUIRE(order.front() == "support");
  REQUIRE(order.back() == "driver");
  for (size_t position = 0; position < order.size(); ++position) {
    CHECK(includes_to_the_right(order, position) == std::vector<std::string>{});
  }
}

TEST_CASE("every folder of the compiler has its place in the order") {
  const std::vector<std::string> order = folder_order();
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "compiler")) {
    if (!entry.is_directory()) continue;
    INFO(entry.path().filename().string() << " is not in SGTC_FOLDERS of CMakeLists.txt");
    CHECK(std::count(order.begin(), order.end(), entry.path().filename().string()) == 1);
  }
}

TEST_CASE("the compiler includes nothing of the runtime") {
  for (const fs::path& file : sources_below(kRoot / "compiler")) {
    for (const std::string& include : includes_of(read(file))) {
      INFO(fs::relative(file, kRoot).string());
      CHECK(first_folder(include) != "runtime");
      CHECK((fs::exists(kRoot / "compiler" / include) || !fs::exists(kRoot / "runtime" / include)));
    }
  }
}

TEST_CASE("the runtime includes one header of the compiler, the plan format") {
  const std::vector<std::string> order = folder_order();
  for (const fs::path& file : sources_below(kRoot / "runtime")) {
    for (const std::string& include : includes_of(read(file))) {
      if (fs::exists(kRoot / "runtime" / include) || !fs::exists(kRoot / "compiler" / include)) {
        continue;
      }
      INFO(fs::relative(file, kRoot).string());
      CHECK(include == "plan/format.h");
    }
  }
}

TEST_CASE("the plan format includes nothing of the project") {
  const std::string text = read(kRoot / "compiler/plan/format.h");
  CHECK(includes_of(text) == std::vector<std::string>{});
}

TEST_CASE("every pass appears in the driver's pipeline") {
  const fs::path pipeline = kRoot / "compiler/driver/pipeline.cc";
  if (!fs::exists(pipeline)) return;
  const std::string text = read(pipeline);
  for (const fs::path& file : sources_below(kRoot / "compiler/passes")) {
    if (file.extension() != ".h") continue;
    for (const std::string& pass : passes_declared_in(read(file))) {
      INFO(pass << " of " << file.filename().string() << " is not listed in pipeline.cc");
      CHECK(std::regex_search(text, std::regex("\\b" + pass + "\\b")));
    }
  }
}
