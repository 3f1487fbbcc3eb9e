// Passes on the output of a rank in whole lines, each behind the rank's number.
#pragma once

#include <string>
#include <string_view>

namespace sgtc::runtime {

class PrefixedLines {
 public:
  /// Lines are written to the file descriptor `output` behind `prefix`.
  PrefixedLines(std::string prefix, int output) : prefix_(std::move(prefix)), output_(output) {}

  /// Takes text in any pieces and writes the lines that are complete. False if `output` is closed.
  bool append(std::string_view text);
  /// Writes a last line without end as one with an end.
  bool finish();

 private:
  std::string prefix_;
  int output_;
  std::string line_;  // begun
};

}  // namespace sgtc::runtime
