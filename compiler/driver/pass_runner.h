// Runs graph passes: the one place that verifies, times, prints and dumps.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "driver/options.h"
#include "ir/graph.h"

namespace sgtc {

class PassRunner {
 public:
  /// `program` ("train" or "evaluate") prefixes the names in dumps.
  PassRunner(const Options& options, std::string program);

  /// Runs `pass` and checks its result. The failing pass is named in the InternalError.
  Graph run(const std::string& name, const std::function<Graph()>& pass);

  /// Times a stage that does not make a graph.
  template <typename Stage>
  auto time(const std::string& name, Stage&& stage) {
    const auto start = std::chrono::steady_clock::now();
    auto result = stage();
    record(name, start);
    return result;
  }

  /// Lines "seconds name" of --time-passes.
  std::string timing() const;

 private:
  using Instant = std::chrono::steady_clock::time_point;
  void record(const std::string& name, Instant start);
  void show(const std::string& name, const Graph& graph);

  const Options& options_;
  std::string program_;
  int dumped_ = 0;
  std::vector<std::pair<std::string, double>> times_;
};

}  // namespace sgtc
