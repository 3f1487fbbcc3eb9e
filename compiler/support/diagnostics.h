// Errors and warnings that a user caused, kept apart from faults of sgtc itself.
//
// A phase collects every user error it can find with `Diagnostics::error` and then calls
// `checkpoint()`, which throws `Error` when anything was collected: the user sees all of them at
// once. A fault of sgtc is an `InternalError` (see SGTC_CHECK) and ends with exit code 101.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sgtc {

/// A user error: names the object, what was expected and found, and the remedy.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A broken assumption inside sgtc. Never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

enum class Severity { kWarning, kError };

/// One message to the user. `object` is the file, option, node or tensor it is about.
struct Diagnostic {
  Severity severity = Severity::kError;
  std::string object;
  std::string text;
};

/// The diagnostics of a compilation in the order in which they were found, each warning once.
class Diagnostics {
 public:
  void error(std::string object, std::string text);
  void warning(std::string object, std::string text);

  /// Throws `Error` with all errors collected so far, one per line, if there is any.
  void checkpoint() const;

  const std::vector<Diagnostic>& all() const { return all_; }
  bool has_errors() const;

 private:
  std::vector<Diagnostic> all_;
};

/// Throws InternalError. Used by SGTC_CHECK.
[[noreturn]] void internal_error(const char* file, int line, const std::string& text);

}  // namespace sgtc

/// Checks an assumption of sgtc about itself; `text` is a string expression evaluated on failure.
#define SGTC_CHECK(condition, text)                                       \
  do {                                                                    \
    if (!(condition)) ::sgtc::internal_error(__FILE__, __LINE__, (text)); \
  } while (false)
