#include "driver/pass_runner.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "support/diagnostics.h"

namespace sgtc {

PassRunner::PassRunner(const Options& options, std::string program)
    : options_(options), program_(std::move(program)) {}

void PassRunner::check(const std::string& name, const Graph& graph) {
  verify(graph, name);
  show(name, graph);
}

void PassRunner::record(const std::string& name, Instant start) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  times_.emplace_back(name, seconds.count());
}

void PassRunner::show(const std::string& name, const Graph& graph) {
  if (options_.print_after.count(name) != 0 || options_.print_after.count("all") != 0) {
    std::printf("// %s after %s\n%s\n", program_.c_str(), name.c_str(), to_text(graph).c_str());
  }
  if (options_.dump_dir.empty()) return;
  char number[16];
  std::snprintf(number, sizeof number, "%02d", ++dumped_);
  const std::filesystem::path folder = options_.dump_dir;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path path = folder / (program_ + "-" + number + "-" + name + ".txt");
  std::ofstream file(path);
  file << to_text(graph);
  file.close();
  if (!file) throw Error(path.string() + ": cannot write; choose another --dump-dir");
}

std::string PassRunner::timing() const {
  std::string text;
  for (const auto& [name, seconds] : times_) {
    char line[160];
    std::snprintf(line, sizeof line, "%9.3f s  %s %s\n", seconds, program_.c_str(), name.c_str());
    text += line;
  }
  return text;
}

}  // namespace sgtc
