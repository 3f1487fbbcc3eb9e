#include "failure.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace sgtc::runtime {
namespace {

std::atomic<void (*)(int)> exit_hook{nullptr};

[[noreturn]] void end(const Failure& failure, int code) {
  std::string text = "error: " + failure.object + ": " + failure.problem;
  if (!failure.remedy.empty()) text += "; " + failure.remedy;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  if (void (*hook)(int) = exit_hook.load()) hook(code);
  _exit(code);
}

}  // namespace

void die(const Failure& failure) { end(failure, kExitFailure); }

void die(std::string object, std::string problem, std::string remedy) {
  end({std::move(object), std::move(problem), std::move(remedy)}, kExitFailure);
}

void die_usage(std::string object, std::string problem, std::string remedy) {
  end({std::move(object), std::move(problem), std::move(remedy)}, kExitUsage);
}

void die_lost(const Failure& failure) { end(failure, kExitLost); }

void set_exit_hook(void (*hook)(int)) { exit_hook.store(hook); }

void require(const MaybeFailure& failure) {
  if (failure) die(*failure);
}

void warn(std::string_view object, std::string_view text) {
  std::fprintf(stderr, "warning: %.*s: %.*s\n", static_cast<int>(object.size()), object.data(),
               static_cast<int>(text.size()), text.data());
}

std::string system_error() { return std::strerror(errno); }

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  va_list copy;
  va_copy(copy, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(static_cast<size_t>(length > 0 ? length : 0), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, copy);
  va_end(copy);
  return text;
}

}  // namespace sgtc::runtime
