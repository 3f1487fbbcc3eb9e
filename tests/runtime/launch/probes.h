// Runs launch_probe as the ranks of a job.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/child.h"
#include "runtime/launch/free_port.h"
#include "runtime/temporary_folder.h"

namespace sgtc::runtime {

using Settings = std::map<std::string, std::string>;

inline constexpr const char* kLostAfterMilliseconds = "1000";

/// One process of launch_probe with the given arguments and additional variables.
class Probe {
 public:
  Probe(const std::vector<std::string>& arguments, const Settings& settings) {
    pid_ = start_child(folder_, [&] {
      setenv("SGTC_LOST_AFTER_MS", kLostAfterMilliseconds, 1);
      for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
      std::vector<const char*> pointers = {SGTC_LAUNCH_PROBE};
      for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
      pointers.push_back(nullptr);
      return execv(SGTC_LAUNCH_PROBE, const_cast<char* const*>(pointers.data()));
    });
  }
  ~Probe() {
    if (ended_) return;
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  std::string output() const { return read_file(folder_ / "stdout"); }

  /// Until the output has `text`; false after ten seconds.
  bool wait_for(const std::string& text) const {
    for (int64_t end = monotonic_milliseconds() + 10000; monotonic_milliseconds() < end;) {
      if (output().find(text) != std::string::npos) return true;
      usleep(5000);
    }
    return false;
  }

  /// Its end; it is killed after `milliseconds`.
  const ChildResult& end(int64_t milliseconds = 10000) {
    if (ended_) return result_;
    const int64_t deadline = monotonic_milliseconds() + milliseconds;
    siginfo_t information = {};
    while (monotonic_milliseconds() < deadline && information.si_pid == 0) {
      waitid(P_PID, static_cast<id_t>(pid_), &information, WEXITED | WNOHANG | WNOWAIT);
      usleep(2000);
    }
    if (information.si_pid == 0) signal(SIGKILL);
    result_ = wait_for_child(folder_, pid_);
    ended_ = true;
    return result_;
  }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  bool ended_ = false;
  ChildResult result_;
};

/// Ranks that somebody started one by one, here.
class Ranks {
 public:
  explicit Ranks(int64_t size, Settings settings = {}, const std::string& steps = "1000")
      : steps_(steps), settings_(std::move(settings)) {
    const Settings common = {{"SGTC_WORLD_SIZE", std::to_string(size)},
                             {"SGTC_MASTER", "127.0.0.1:" + free_port()},
                             {"SGTC_SECRET", "a secret"},
                             {"PROBE_RANKS", std::to_string(size)},
                             {"PROBE_STEP_MS", "10"}};
    settings_.insert(common.begin(), common.end());
    ranks_.resize(static_cast<size_t>(size));
  }

  /// Starts one rank with variables of its own.
  Probe& start(int64_t rank, const Settings& own = {}, std::vector<std::string> arguments = {}) {
    Settings settings = own;
    settings.insert(settings_.begin(), settings_.end());
    settings.emplace("SGTC_RANK", std::to_string(rank));
    arguments.insert(arguments.begin(), {"--steps", steps_});
    std::unique_ptr<Probe>& probe = ranks_[static_cast<size_t>(rank)];
    probe = std::make_unique<Probe>(arguments, settings);
    return *probe;
  }
  void start_all() {
    for (int64_t rank = 0; rank < size(); ++rank) start(rank);
  }
  /// Until all have finished step 1.
  bool wait_until_running() const {
    for (const auto& rank : ranks_) {
      if (!rank->wait_for("step 2\n")) return false;
    }
    return true;
  }

  int64_t size() const { return static_cast<int64_t>(ranks_.size()); }
  Probe& operator[](int64_t rank) { return *ranks_[static_cast<size_t>(rank)]; }
  const std::string& setting(const std::string& name) { return settings_[name]; }

 private:
  std::string steps_;
  Settings settings_;
  std::vector<std::unique_ptr<Probe>> ranks_;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sgtc::runtime
