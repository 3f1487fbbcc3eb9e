// Runs graph passes: the one place that verifies, times, prints and dumps.
#pragma once

#include <chrono>
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

  /// Runs a pass that makes a graph, or something with a member `graph`, and checks that. The
  /// failing pass is named in the InternalError.
  template <typename Pass>
  auto run(const std::string& name, Pass&& pass) {
    auto result = time(name, pass);
    check(name, graph_of(result));
    return result;
  }

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
  static const Graph& graph_of(const Graph& graph) { return graph; }
  template <typename Result>
  static const Graph& graph_of(const Result& result) {
    return result.graph;
  }
  void record(const std::string& name, Instant start);
  void check(const std::string& name, const Graph& graph);
  void show(const std::string& name, const Graph& graph);

  const Options& options_;
  std::string program_;
  int dumped_ = 0;
  std::vector<std::pair<std::string, double>> times_;
};

}  // namespace sgtc
