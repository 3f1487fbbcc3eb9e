// Errors of a run. The runtime has no exceptions: what a caller may recover from is returned as a
// Failure, everything else ends the process with a message and an exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sgtc::runtime {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitSignal = 143;  // stopped by a signal, after a checkpoint
inline constexpr int kExitLost = 200;    // another rank was lost

/// What the message is about, what was expected and found, and what to do about it.
struct Failure {
  std::string object;
  std::string problem;
  std::string remedy;
};

/// Nothing when the operation worked.
using MaybeFailure = std::optional<Failure>;

/// Prints "error: OBJECT: PROBLEM; REMEDY" to standard error and exits with `kExitFailure`.
[[noreturn]] void die(const Failure& failure);
[[noreturn]] void die(std::string object, std::string problem, std::string remedy = {});
/// The same with `kExitUsage`.
[[noreturn]] void die_usage(std::string object, std::string problem, std::string remedy = {});
/// The same with `kExitLost`.
[[noreturn]] void die_lost(const Failure& failure);
/// Dies if there is a failure.
void require(const MaybeFailure& failure);

/// `hook` runs after the message and before the exit of all the above, in the thread that dies.
void set_exit_hook(void (*hook)(int exit_code));

/// Prints "warning: OBJECT: TEXT" to standard error.
void warn(std::string_view object, std::string_view text);

/// The text of `errno`.
std::string system_error();

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace sgtc::runtime
