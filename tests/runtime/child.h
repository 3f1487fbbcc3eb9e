// Runs code in a child process: code that ends the process, is killed, or is a whole program.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "runtime/program.h"
#include "runtime/temporary_folder.h"

namespace sgtc::runtime {

struct ChildResult {
  int code = -1;  // exit code; -1 if a signal ended it
  int signal = 0;
  std::string output;
  std::string errors;
};

inline constexpr int kChildThrew = 99;

/// Starts `body` in a child with its output in files of `folder`; its return value is the exit
/// code.
inline pid_t start_child(const TemporaryFolder& folder, const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  const int output = open((folder / "stdout").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const int errors = open((folder / "stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  for (int number : {SIGSEGV, SIGABRT, SIGTERM, SIGINT, SIGFPE, SIGILL}) signal(number, SIG_DFL);
  int code = kChildThrew;
  try {
    code = body();
  } catch (...) {
    std::fprintf(stderr, "an exception left the child\n");
  }
  std::fflush(nullptr);
  _exit(code);
}

inline ChildResult wait_for_child(const TemporaryFolder& folder, pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  ChildResult result;
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.output = read_file(folder / "stdout");
  result.errors = read_file(folder / "stderr");
  return result;
}

inline ChildResult run_child(const std::function<int()>& body) {
  const TemporaryFolder folder;
  return wait_for_child(folder, start_child(folder, body));
}

/// A main function with a command line.
inline int call_program(const Program& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "./train");
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  return run_program(program, static_cast<int>(pointers.size()), pointers.data());
}

inline ChildResult run_child_program(const Program& program,
                                     const std::vector<std::string>& arguments) {
  return run_child([&] { return call_program(program, arguments); });
}

}  // namespace sgtc::runtime
