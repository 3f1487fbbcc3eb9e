#include "support/diagnostics.h"

#include <algorithm>

namespace sgtc {

void Diagnostics::error(std::string object, std::string text) {
  all_.push_back({Severity::kError, std::move(object), std::move(text)});
}

void Diagnostics::warning(std::string object, std::string text) {
  const bool known = std::any_of(all_.begin(), all_.end(), [&](const Diagnostic& d) {
    return d.severity == Severity::kWarning && d.object == object && d.text == text;
  });
  if (!known) all_.push_back({Severity::kWarning, std::move(object), std::move(text)});
}

bool Diagnostics::has_errors() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

void Diagnostics::checkpoint() const {
  if (!has_errors()) return;
  std::string text;
  for (const Diagnostic& diagnostic : all_) {
    if (diagnostic.severity != Severity::kError) continue;
    if (!text.empty()) text += '\n';
    text +=
        diagnostic.object.empty() ? diagnostic.text : diagnostic.object + ": " + diagnostic.text;
  }
  throw Error(text);
}

void internal_error(const char* file, int line, const std::string& text) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

}  // namespace sgtc
