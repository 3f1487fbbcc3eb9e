#include "gloo_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "failure.h"

namespace sgtc::runtime {
namespace {

constexpr char kName[] = "libsgtc_gloo.so";

std::string own_folder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string text(path, length > 0 ? static_cast<size_t>(length) : 0);
  return text.substr(0, text.rfind('/'));
}

std::vector<std::string> folders() {
  std::vector<std::string> list;
  const char* variable = std::getenv("SGTC_PLUGIN_PATH");
  std::string rest = variable ? variable : "";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    if (end != 0) list.push_back(rest.substr(0, end));
    rest = end == rest.npos ? "" : rest.substr(end + 1);
  }
  list.push_back(own_folder());
  list.push_back(SGTC_PLUGIN_FOLDER);
  return list;
}

[[noreturn]] void die_of_missing(const std::string& problem) {
  die(kName, problem,
      "ranks on several hosts need it: install libgloo-dev, build sgtc again and copy it from "
      "sgtc's build/lib beside the program or into a folder of SGTC_PLUGIN_PATH");
}

// The library from the first folder that has it.
void* open_library() {
  std::string problem = "is neither in";
  for (const std::string& folder : folders()) {
    const std::string path = folder + "/" + kName;
    if (access(path.c_str(), F_OK) != 0) {
      problem += " " + folder + " nor in";
      continue;
    }
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) die_of_missing(std::string("cannot be loaded: ") + dlerror());
    return library;
  }
  die_of_missing(problem.substr(0, problem.size() - std::string(" nor in").size()));
}

}  // namespace

const SgtcGlooPlugin& load_gloo_plugin() {
  using Entry = const SgtcGlooPlugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(open_library(), "sgtc_gloo_plugin"));
  if (!entry || entry()->version != kSgtcGlooVersion) die_of_missing("is of another version");
  return *entry();
}

}  // namespace sgtc::runtime
