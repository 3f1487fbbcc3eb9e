// sgtc: from an ONNX training graph to a training executable.

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "driver/explain_command.h"
#include "driver/options.h"
#include "driver/pipeline.h"

namespace sgtc {
namespace {

constexpr int kDone = 0;
constexpr int kDiagnosed = 1;
constexpr int kInternal = 101;

/// Prints messages to standard error in the chosen format.
class Reporter {
 public:
  explicit Reporter(const Options& options)
      : json_(options.json_errors),
        color_(options.color == "always" || (options.color == "auto" && isatty(STDERR_FILENO))) {}

  void print(const char* severity, const std::string& object, const std::string& text) const {
    if (json_) {
      const nlohmann::ordered_json line = {
          {"severity", severity}, {"object", object}, {"message", text}};
      std::fprintf(stderr, "%s\n", line.dump().c_str());
      return;
    }
    const char* color = !color_ ? "" : severity[0] == 'w' ? "\033[1;35m" : "\033[1;31m";
    std::fprintf(stderr, "%s%s:%s %s%s%s\n", color, severity, color_ ? "\033[0m" : "",
                 object.c_str(), object.empty() ? "" : ": ", text.c_str());
  }

  void print_warnings(const Diagnostics& diagnostics) const {
    for (const Diagnostic& diagnostic : diagnostics.all()) {
      if (diagnostic.severity == Severity::kWarning) {
        print("warning", diagnostic.object, diagnostic.text);
      }
    }
  }

  /// The collected errors, or the text of the exception when it was thrown at once.
  void print_errors(const Diagnostics& diagnostics, const char* thrown) const {
    if (!diagnostics.has_errors()) return print("error", "", thrown);
    for (const Diagnostic& diagnostic : diagnostics.all()) {
      if (diagnostic.severity == Severity::kError) {
        print("error", diagnostic.object, diagnostic.text);
      }
    }
  }

 private:
  bool json_;
  bool color_;
};

/// Runs a command, and reports what it throws.
template <typename Command>
int run(const Options& options, Command&& command) {
  const Reporter reporter(options);
  Diagnostics diagnostics;
  try {
    command(diagnostics);
    reporter.print_warnings(diagnostics);
    return kDone;
  } catch (const Error& error) {
    reporter.print_warnings(diagnostics);
    reporter.print_errors(diagnostics, error.what());
    return kDiagnosed;
  } catch (const std::exception& error) {
    reporter.print("internal error", "",
                   std::string(error.what()) + "\nThis is a fault of sgtc, not of your model.");
    return kInternal;
  }
}

int explain_command(int argc, char** argv) {
  int exit_code = 0;
  const auto options = parse_explain_options(argc, argv, &exit_code);
  if (!options) return exit_code;
  return run({}, [&](Diagnostics&) { std::fputs(explain_node(*options).c_str(), stdout); });
}

int compile_command(int argc, char** argv) {
  int exit_code = 0;
  const auto options = parse_options(argc, argv, &exit_code);
  if (!options) return exit_code;
  return run(*options, [&](Diagnostics& diagnostics) { compile(*options, diagnostics); });
}

}  // namespace
}  // namespace sgtc

int main(int argc, char** argv) {
  const bool explains = argc > 1 && std::strcmp(argv[1], "explain") == 0;
  return explains ? sgtc::explain_command(argc - 1, argv + 1) : sgtc::compile_command(argc, argv);
}
