#include "launch/prefixed_lines.h"

#include <unistd.h>

#include <cerrno>

namespace sgtc::runtime {
namespace {

constexpr size_t kLongestLine = size_t{1} << 20;

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

bool PrefixedLines::append(std::string_view text) {
  std::string complete;
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    complete += prefix_ + line_;
    complete += text.substr(0, end + 1);
    line_.clear();
  }
  line_ += text;
  if (line_.size() > kLongestLine) {
    complete += prefix_ + line_ + '\n';
    line_.clear();
  }
  return write_all(output_, complete);
}

bool PrefixedLines::finish() { return line_.empty() || append("\n"); }

}  // namespace sgtc::runtime
