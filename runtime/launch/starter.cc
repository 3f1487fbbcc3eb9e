#include "launch/starter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

#include "failure.h"
#include "launch/prefixed_lines.h"
#include "launch/secret.h"
#include "launch/socket.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kGrace = 2500;    // milliseconds, for the others after a failure
constexpr int64_t kStopped = 6000;  // milliseconds; ranks that have met notice it before
constexpr int kTick = 100;
constexpr size_t kSecretBytes = 32;
constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

// One end of a pipe and what becomes of the text.
struct Stream {
  Socket pipe;
  PrefixedLines lines;
};

struct Rank {
  int64_t number = 0;
  pid_t pid = -1;
  bool running = true;
  int64_t stopped_at = 0;  // by a signal, until it continues
  bool given_up = false;   // because it was stopped for too long
  std::vector<Stream> streams;
};

// What a child needs before it becomes the program; prepared before the fork.
struct Child {
  std::vector<char*> variables;
  int output = -1;
  int errors = -1;
  int listener = -1;
  pid_t parent = 0;
  pid_t group = 0;
  sigset_t signals;
};

// The file of this program. One that was replaced since is still there under its /proc name.
std::string own_path() {
  const char* const link = "/proc/self/exe";
  char path[PATH_MAX];
  const ssize_t length = readlink(link, path, sizeof path);
  const std::string text(path, static_cast<size_t>(length > 0 ? length : 0));
  return access(text.c_str(), X_OK) == 0 ? text : link;
}

class Starter {
 public:
  Starter(LaunchEnvironment environment, const char* const* arguments)
      : environment_(std::move(environment)), program_(own_path()), arguments_(arguments) {}

  int run() {
    block_signals();
    meet_here();
    for (int64_t i = 0; i < environment_.starts; ++i) start(environment_.rank + i);
    listener_.close();
    while (is_running() || has_output()) {
      wait();
      forward_output();
      reap();
      end_stopped();
      end_after_failure();
    }
    return exit_code();
  }

 private:
  void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : kForwarded) sigaddset(&set, number);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &signals_before_);
    signals_ = Socket(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);  // it may have been ignored, and ends with it
  }

  // A job whose ranks all start here needs no address and no secret from outside.
  void meet_here() {
    if (environment_.starts < environment_.size) return;
    environment_.master = "127.0.0.1";
    environment_.port = 0;
    require(listen_at(environment_.master, environment_.port, listener_));
    environment_.secret = hexadecimal(random_bytes(kSecretBytes));
  }

  std::vector<std::string> variables_of(int64_t rank) const {
    Variables variables = process_variables();
    variables["SGTC_RANK"] = std::to_string(rank);
    variables["SGTC_WORLD_SIZE"] = std::to_string(environment_.size);
    variables["SGTC_JOB"] = environment_.job;
    variables["SGTC_MASTER"] = address_text(environment_.master, environment_.port);
    if (!environment_.secret.empty()) variables["SGTC_SECRET"] = environment_.secret;
    if (rank == 0 && listener_.is_open()) {
      variables["SGTC_LISTEN_SOCKET"] = std::to_string(listener_.descriptor());
    }
    std::vector<std::string> texts;
    for (const auto& [name, value] : variables) texts.push_back(name + "=" + value);
    return texts;
  }

  void start(int64_t number) {
    Rank& rank = ranks_.emplace_back();
    rank.number = number;
    const std::string prefix = "[" + std::to_string(number) + "] ";
    Child child;
    const Socket output = open_pipe(rank, {prefix, STDOUT_FILENO});
    const Socket errors = open_pipe(rank, {prefix, STDERR_FILENO});
    child.output = output.descriptor();
    child.errors = errors.descriptor();
    if (number == 0) child.listener = listener_.descriptor();
    child.parent = getpid();
    child.group = ranks_.front().pid;
    child.signals = signals_before_;
    std::vector<std::string> texts = variables_of(number);
    for (std::string& text : texts) child.variables.push_back(text.data());
    child.variables.push_back(nullptr);
    std::fflush(nullptr);
    rank.pid = fork();
    if (rank.pid == 0) become_rank(child);
    if (rank.pid < 0) {
      kill_all(SIGKILL);
      die("rank " + std::to_string(number), "cannot be started: " + system_error());
    }
    setpgid(rank.pid, child.group > 0 ? child.group : rank.pid);
  }

  // Returns the end to write to.
  static Socket open_pipe(Rank& rank, PrefixedLines lines) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) die("a pipe", "cannot be opened: " + system_error());
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    rank.streams.push_back({Socket(ends[0]), std::move(lines)});
    return Socket(ends[1]);
  }

  // Runs in the child, between fork and exec.
  [[noreturn]] void become_rank(const Child& child) const {
    setpgid(0, child.group > 0 ? child.group : 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have died before that.
    if (getppid() != child.parent) _exit(kExitLost);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(child.output, STDOUT_FILENO);
    dup2(child.errors, STDERR_FILENO);
    if (child.listener >= 0) fcntl(child.listener, F_SETFD, 0);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &child.signals, nullptr);
    execve(program_.c_str(), const_cast<char* const*>(arguments_), child.variables.data());
    die("this program", "cannot be started again: " + system_error());
  }

  bool is_running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; });
  }

  bool has_output() const {
    for (const Rank& rank : ranks_) {
      for (const Stream& stream : rank.streams) {
        if (stream.pipe.is_open()) return true;
      }
    }
    return false;
  }

  void wait() {
    std::vector<pollfd> events = {{signals_.descriptor(), POLLIN, 0}};
    for (const Rank& rank : ranks_) {
      for (const Stream& stream : rank.streams) {
        if (stream.pipe.is_open()) events.push_back({stream.pipe.descriptor(), POLLIN, 0});
      }
    }
    poll(events.data(), events.size(), kTick);
    forward_signals();
  }

  void forward_signals() {
    signalfd_siginfo information;
    while (read(signals_.descriptor(), &information, sizeof information) == sizeof information) {
      const int number = static_cast<int>(information.ssi_signo);
      if (number == SIGCHLD) continue;
      kill_all(number == SIGTSTP ? SIGSTOP : number);
      if (number == SIGTSTP) raise(SIGSTOP);
    }
  }

  void kill_all(int number) const {
    for (const Rank& rank : ranks_) {
      if (rank.running && rank.pid > 0) kill(rank.pid, number);
    }
  }

  void forward_output() {
    for (Rank& rank : ranks_) {
      for (Stream& stream : rank.streams) forward(stream);
    }
  }

  void forward(Stream& stream) {
    char text[1 << 14];
    while (stream.pipe.is_open()) {
      const ssize_t length = read(stream.pipe.descriptor(), text, sizeof text);
      if (length < 0 && errno == EAGAIN) return;
      if (length < 0 && errno == EINTR) continue;
      bool written = true;
      if (length > 0) {
        written = stream.lines.append({text, static_cast<size_t>(length)});
      } else {
        written = stream.lines.finish();
        stream.pipe.close();
      }
      // Nobody reads what the ranks write: they stop as after a signal.
      if (!written && !std::exchange(output_closed_, true)) kill_all(SIGTERM);
    }
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
      for (Rank& rank : ranks_) {
        if (rank.pid != pid) continue;
        rank.stopped_at = WIFSTOPPED(status) ? monotonic_milliseconds() : 0;
        if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
        rank.running = false;
        note_end(rank, status);
      }
    }
  }

  // A rank that was stopped before the ranks have met is missed by nobody else.
  void end_stopped() {
    for (Rank& rank : ranks_) {
      if (!rank.running || rank.stopped_at == 0 || failed_at_ != 0) continue;
      if (monotonic_milliseconds() < rank.stopped_at + kStopped) continue;
      std::fprintf(stderr, "error: rank %ld (process %d): is stopped and does not go on\n",
                   static_cast<long>(rank.number), rank.pid);
      failed_at_ = monotonic_milliseconds();
      lost_ = true;
      rank.given_up = true;
      kill(rank.pid, SIGKILL);
    }
  }

  void note_end(const Rank& rank, int status) {
    if (rank.given_up) return;
    if (WIFSIGNALED(status) && !killed_) {
      std::fprintf(stderr, "error: rank %ld (process %d): was ended by signal %d, %s\n",
                   static_cast<long>(rank.number), rank.pid, WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    }
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == kExitDone) return;
    if (code == kExitSignal && !WIFSIGNALED(status)) {
      stopped_ = true;
      return;
    }
    if (failed_at_ == 0) failed_at_ = monotonic_milliseconds();
    if (killed_) return;
    if (code == kExitLost) {
      lost_ = true;
    } else if (first_failure_ == 0) {
      first_failure_ = code;
    }
  }

  void end_after_failure() {
    if (failed_at_ == 0 || killed_ || !is_running()) return;
    if (monotonic_milliseconds() < failed_at_ + kGrace) return;
    killed_ = true;
    kill_all(SIGKILL);
  }

  int exit_code() const {
    if (first_failure_ != 0) return first_failure_;
    if (lost_) return kExitLost;
    return stopped_ ? kExitSignal : kExitDone;
  }

  LaunchEnvironment environment_;
  std::string program_;
  const char* const* arguments_;
  sigset_t signals_before_ = {};
  Socket signals_;
  Socket listener_;
  std::vector<Rank> ranks_;
  int64_t failed_at_ = 0;  // when the first rank failed
  bool killed_ = false;    // this process has ended the rest
  bool output_closed_ = false;
  int first_failure_ = 0;
  bool lost_ = false;
  bool stopped_ = false;
};

}  // namespace

int start_ranks(LaunchEnvironment environment, const char* const* arguments) {
  return Starter(std::move(environment), arguments).run();
}

}  // namespace sgtc::runtime
