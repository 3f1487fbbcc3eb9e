// What a run tells: a line per step for people and one per step for programs. Both are formatted in
// place; nothing is allocated.
#pragma once

#include <cstdint>
#include <string>

namespace sgtc::runtime {

struct StepReport {
  int64_t step = 0;
  int64_t steps = 0;
  bool has_loss = false;
  double loss = 0;
  bool has_gradient_norm = false;
  double gradient_norm = 0;
  bool has_learning_rate = false;  // some models bring their own
  double learning_rate = 0;
  double milliseconds = 0;
  int64_t samples = 0;  // of this step; 0: the program has none
  int64_t tokens = 0;   // 0: the samples are not tokens
  bool skipped = false;
  int64_t skipped_total = 0;
  int64_t memory = 0;        // bytes: the most that was in use so far
  int64_t memory_total = 0;  // bytes of the machine
  double seconds_left = 0;
};

class Reporter {
 public:
  Reporter() = default;
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  ~Reporter();

  /// `quiet`: no step lines. A log is opened for appending if `resumed`, else emptied; dies if it
  /// cannot be written. An empty path: no log.
  void open(bool quiet, const std::string& log_path, bool resumed);

  /// A live line on a terminal, a line per step elsewhere; and one JSON object in the log.
  void step(const StepReport& report);
  void evaluation(int64_t step, double loss);
  /// Prints a note on a line of its own, also with --quiet.
  void note(const char* text);
  /// Ends a live line.
  void finish();

 private:
  void print(const char* text);
  void write_log(const char* text, int length);

  bool quiet_ = false;
  bool terminal_ = false;
  bool line_is_open_ = false;
  int log_ = -1;
  std::string log_path_;
};

/// The step line without its end. Returns the length of the text.
int format_step_line(const StepReport& report, char* text, int capacity);
/// The log's JSON object with a newline. Numbers read back exactly; NaN and infinities are strings.
int format_log_line(const StepReport& report, char* text, int capacity);

}  // namespace sgtc::runtime
