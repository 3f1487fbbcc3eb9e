// What communication costs the steps of a rank: how much of it runs beside kernels, how much of it
// the kernels wait for, and how steadily each communication starts.
//
// Times come from a trace, so they are of one clock of the rank. A communication is under way from
// the moment at which everything it waits for is done, so waiting for peers belongs to it. On the
// CPU a whole task takes the place of its kernels.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sgtc::runtime {

/// From `begin` to `end`, in nanoseconds.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Nanoseconds of one step.
struct StepOverlap {
  Span step;
  int64_t communication = 0;  // any is under way
  int64_t exposed = 0;        // of that, while no kernel runs

  /// The share of communication that kernels hide; 1 without communication.
  double ratio() const {
    return communication == 0 ? 1 : 1 - static_cast<double>(exposed) / communication;
  }
};

/// Spans of one kind may overlap.
StepOverlap overlap_of(std::vector<Span> kernels, std::vector<Span> communications);

/// Means over steps, and what varied most.
struct OverlapSummary {
  int64_t steps = 0;
  double step = 0;  // seconds, as the next two
  double communication = 0;
  double exposed = 0;
  double jitter = 0;        // standard deviation of the start within the step, seconds
  std::string varies_most;  // the communication that it is of; empty: none was seen twice
};

/// Gathers the steps of one rank.
class OverlapRecord {
 public:
  void add(const StepOverlap& step);
  /// When a communication began, in nanoseconds since its step did. `task` outlives this.
  void add_start(const std::string* task, int64_t micro_batch, int64_t nanoseconds);
  OverlapSummary summary() const;

 private:
  // Of starts, after Welford (1962): a running mean and the sum of squared differences from it.
  struct Starts {
    int64_t count = 0;
    double mean = 0;
    double squares = 0;
  };

  int64_t steps_ = 0;
  double step_ = 0;  // sums, in nanoseconds
  double communication_ = 0;
  double exposed_ = 0;
  std::map<std::pair<const std::string*, int64_t>, Starts> starts_;  // by task and micro-batch
};

/// For the exchange between ranks.
std::string to_text(const OverlapSummary& summary);
OverlapSummary parse_overlap(const std::string& text);

/// Two lines for people from the summaries of all ranks: the rank with most exposed communication
/// and the one with the least steady start. Empty without communication.
std::string overlap_text(const std::vector<OverlapSummary>& ranks);

}  // namespace sgtc::runtime
