// Data files for the regression program, and its runs.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/child.h"
#include "runtime/regression_program.h"
#include "runtime/temporary_folder.h"

namespace sgtc::runtime {

/// A folder with x.npy and y.npy, y = x·(1,-2,3,0.5), and the program over them.
class RegressionRun {
 public:
  explicit RegressionRun(int64_t samples = 24, plan::Plan plan = regression_plan()) {
    program_ = regression_program({plan}, text_);
    write_samples("", samples);
  }

  /// Writes PREFIXx.npy and PREFIXy.npy.
  void write_samples(const std::string& prefix, int64_t samples) {
    const float truth[kWidth] = {1, -2, 3, 0.5F};
    std::vector<float> x;
    std::vector<float> y;
    for (int64_t row = 0; row < samples; ++row) {
      y.push_back(0);
      for (int64_t i = 0; i < kWidth; ++i) {
        x.push_back(static_cast<float>((row * 7 + i * 5 + row * i) % 11) / 11 - 0.5F);
        y.back() += x.back() * truth[i];
      }
    }
    write_npy(folder / (prefix + "x.npy"), "f32", {samples, kWidth}, x);
    write_npy(folder / (prefix + "y.npy"), "f32", {samples}, y);
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {
        "--data", "x=" + folder / "x.npy", "--data", "y=" + folder / "y.npy", "--threads", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  ChildResult run(const std::vector<std::string>& more) const {
    return run_child_program(program_, arguments(more));
  }

  const Program& program() const { return program_; }
  const TemporaryFolder folder;

 private:
  std::string text_;
  Program program_;
};

/// The values of one key in a log, in order. A line that is still being written is left out.
inline std::vector<nlohmann::json> log_values(const std::string& path, const std::string& key) {
  std::vector<nlohmann::json> values;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.contains(key)) values.push_back(json[key]);
  }
  return values;
}

}  // namespace sgtc::runtime
