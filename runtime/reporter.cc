#include "reporter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "failure.h"

namespace sgtc::runtime {
namespace {

constexpr int kLineBytes = 1024;

// Appends to a fixed buffer; what does not fit is cut off.
class LineBuffer {
 public:
  LineBuffer(char* text, int capacity) : text_(text), capacity_(capacity) { text_[0] = '\0'; }

  [[gnu::format(printf, 2, 3)]] void add(const char* pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    const int room = capacity_ - length_;
    const int length =
        std::vsnprintf(text_ + length_, static_cast<size_t>(room), pattern, arguments);
    va_end(arguments);
    length_ += std::clamp(length, 0, room - 1);
  }

  // "318,002".
  void add_grouped(double value) {
    char digits[32];
    const int length = std::snprintf(digits, sizeof digits, "%.0f", std::min(value, 1e18));
    for (int i = 0; i < length; ++i) {
      add(i > 0 && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
    }
  }

  // A number that reads back exactly, or a string for what JSON has no number.
  void add_json_number(double value) {
    if (std::isnan(value)) return add("\"NaN\"");
    if (std::isinf(value)) return add(value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    add("%.17g", value);
  }

  int length() const { return length_; }

 private:
  char* text_;
  int capacity_;
  int length_ = 0;
};

void add_duration(LineBuffer& line, double seconds) {
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  const long long hours = whole / 3600;
  const long long minutes = whole / 60 % 60;
  if (hours > 0) {
    line.add("%lldh%02lldm", hours, minutes);
  } else if (minutes > 0) {
    line.add("%lldm", minutes);
  } else {
    line.add("%llds", static_cast<long long>(whole));
  }
}

void add_learning_rate(LineBuffer& line, double rate) { line.add(" | lr %.1e", rate); }

void add_rate(LineBuffer& line, const StepReport& report) {
  if (report.samples == 0 || report.milliseconds <= 0) return;
  const double seconds = report.milliseconds * 1e-3;
  line.add(" | ");
  const int64_t units = report.tokens > 0 ? report.tokens : report.samples;
  line.add_grouped(static_cast<double>(units) / seconds);
  line.add(report.tokens > 0 ? " tok/s" : " samples/s");
}

void add_memory(LineBuffer& line, const StepReport& report) {
  const double used = static_cast<double>(report.memory) / (1 << 30);
  const double total = static_cast<double>(report.memory_total) / (1 << 30);
  line.add(used < 1 ? " | peak %.2f/%.1f GiB" : " | peak %.1f/%.1f GiB", used, total);
}

bool write_all(int file, const char* text, size_t length) {
  while (length > 0) {
    const ssize_t written = write(file, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text += written;
    length -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

int format_step_line(const StepReport& report, char* text, int capacity) {
  LineBuffer line(text, capacity);
  line.add("step %lld/%lld", static_cast<long long>(report.step),
           static_cast<long long>(report.steps));
  if (report.has_loss) line.add(" | loss %.6f", report.loss);
  if (report.has_gradient_norm) line.add(" | gnorm %.2f", report.gradient_norm);
  if (report.has_learning_rate) add_learning_rate(line, report.learning_rate);
  line.add(" | %.1f ms", report.milliseconds);
  add_rate(line, report);
  add_memory(line, report);
  if (report.skipped) {
    line.add(" | skipped (%lld so far)", static_cast<long long>(report.skipped_total));
  }
  line.add(" | eta ");
  add_duration(line, report.seconds_left);
  return line.length();
}

int format_log_line(const StepReport& report, char* text, int capacity) {
  LineBuffer line(text, capacity);
  line.add("{\"step\":%lld", static_cast<long long>(report.step));
  const auto field = [&](const char* name, double value) {
    line.add(",\"%s\":", name);
    line.add_json_number(value);
  };
  if (report.has_loss) field("loss", report.loss);
  if (report.has_gradient_norm) field("grad_norm", report.gradient_norm);
  if (report.has_learning_rate) field("lr", report.learning_rate);
  field("ms", report.milliseconds);
  const double seconds = report.milliseconds * 1e-3;
  if (report.samples > 0) field("samples_per_s", static_cast<double>(report.samples) / seconds);
  if (report.tokens > 0) field("tokens_per_s", static_cast<double>(report.tokens) / seconds);
  line.add(",\"skipped\":%s,\"skipped_steps\":%lld}\n", report.skipped ? "true" : "false",
           static_cast<long long>(report.skipped_total));
  return line.length();
}

Reporter::~Reporter() {
  if (log_ >= 0) close(log_);
}

void Reporter::open(bool quiet, const std::string& log_path, bool resumed) {
  quiet_ = quiet;
  terminal_ = isatty(STDOUT_FILENO) == 1;
  log_path_ = log_path;
  if (log_path.empty()) return;
  const int mode = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (resumed ? 0 : O_TRUNC);
  log_ = ::open(log_path.c_str(), mode, 0666);
  if (log_ < 0) die(log_path, "cannot be written: " + system_error(), "give --log another file");
}

void Reporter::print(const char* text) {
  if (terminal_) write_all(STDOUT_FILENO, "\r\033[K", 4);
  write_all(STDOUT_FILENO, text, std::strlen(text));
  if (!terminal_) write_all(STDOUT_FILENO, "\n", 1);
  line_is_open_ = terminal_;
}

void Reporter::write_log(const char* text, int length) {
  if (log_ < 0 || write_all(log_, text, static_cast<size_t>(length))) return;
  warn(log_path_, "cannot be written: " + system_error() + "; logging ends here");
  close(log_);
  log_ = -1;
}

void Reporter::step(const StepReport& report) {
  char text[kLineBytes];
  if (!quiet_) {
    format_step_line(report, text, sizeof text);
    print(text);
  }
  if (log_ < 0) return;
  write_log(text, format_log_line(report, text, sizeof text));
}

void Reporter::evaluation(int64_t step, double loss) {
  char text[kLineBytes];
  std::snprintf(text, sizeof text, "eval step %lld | loss %.6f", static_cast<long long>(step),
                loss);
  note(text);
  LineBuffer line(text, sizeof text);
  line.add("{\"step\":%lld,\"eval_loss\":", static_cast<long long>(step));
  line.add_json_number(loss);
  line.add("}\n");
  write_log(text, line.length());
}

void Reporter::note(const char* text) {
  print(text);
  finish();
}

void Reporter::finish() {
  if (line_is_open_) write_all(STDOUT_FILENO, "\n", 1);
  line_is_open_ = false;
}

}  // namespace sgtc::runtime
