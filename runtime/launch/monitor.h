// The thread that owns a rank's control connections. job.h says what it is for.
//
// All state is behind one mutex, which nobody holds while waiting. The thread wakes up for arriving
// frames and ten times a second; once its buffers have grown it allocates nothing but for
// collectives. Frames go between rank 0 and each other rank:
//
// - heartbeat: both ways, with the sender's activity. Any frame counts as a sign of life.
// - piece: to rank 0, a rank's part of a collective. result: back, to all.
// - leave: to rank 0, the exit code of a rank that ends. farewell: to all, when all have left.
// - lost: from rank 0, which rank was lost and how, or that all wait for each other.
// - stop: to rank 0, a signal came. prepare, decide: from rank 0. answer: to rank 0.
//
// A rank that was itself stopped (Ctrl-Z, a suspended machine) must not take the others for dead
// when it goes on: frames that wait are read first, and after a pause of its own it gives everybody
// a new period.
#pragma once

#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "failure.h"
#include "launch/activity.h"
#include "launch/connection.h"
#include "launch/rendezvous.h"
#include "launch/stall.h"

namespace sgtc::runtime {

/// What a collective returns to each rank.
enum class Collective : unsigned char {
  kBarrier = 1,    // nothing
  kBroadcast = 2,  // the piece of rank 0
  kAllGather = 3,  // all pieces
};

/// Ends that all ranks wait for: done, or stopped by a signal.
inline bool is_normal_end(int64_t exit_code) {
  return exit_code == kExitDone || exit_code == kExitSignal;
}

class Monitor {
 public:
  /// Starts the thread. `lost` is set when a peer is lost.
  Monitor(Meeting meeting, int64_t rank, std::atomic<bool>& lost);
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  ~Monitor();

  /// The members' pieces, in rank order, of those that the collective returns.
  std::vector<std::string> collect(Collective collective, std::string_view piece);

  /// Job's functions of the same names.
  [[noreturn]] void exit_lost();
  void expect_step(double seconds);
  bool may_begin_step(int64_t step);
  int leave(int exit_code);

  CurrentActivity& activity() { return activity_; }

 private:
  enum Kind : unsigned char {
    kHeartbeat = 1,
    kPiece,
    kResult,
    kLeave,
    kFarewell,
    kLost,
    kStop,
    kPrepare,
    kAnswer,
    kDecide,
  };

  struct Peer {
    Connection connection;
    int64_t heard = 0;  // when the last frame came
    Activity activity;  // as last told
    std::optional<int64_t> exit_code;
    Collective collective = Collective::kBarrier;
    std::string piece;
    bool has_piece = false;
    bool answered = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  static void* run(void* monitor);
  void watch();
  void turn(const std::vector<pollfd>& events);  // one round, with the mutex held

  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  bool is_host() const { return rank_ == 0; }
  Peer& peer_of(int64_t rank);
  void send(int64_t rank, unsigned char kind, std::string_view body);
  void send_all(unsigned char kind, std::string_view body);

  void receive(int64_t rank, Peer& peer);
  void handle(int64_t rank, Peer& peer, const Frame& frame);
  void handle_at_host(int64_t rank, Peer& peer, const Frame& frame);
  void handle_from_host(const Frame& frame);
  void check_silence(int64_t now);
  void check_progress(int64_t now);
  void beat(int64_t now);
  void tell_activity();
  void end_if_overdue(int64_t now);

  void lose(int64_t rank, const std::string& how);
  void end_all();  // with `loss_`
  void complete_collective();
  void take_result(std::string_view body);
  void complete_leave();
  void request_stop();
  void prepare();
  void answer();
  void decide();
  void send_leave(int exit_code);
  int leave_together(int exit_code, Lock& lock);

  const int64_t rank_;
  const std::vector<Introduction> members_;
  std::vector<Peer> peers_;  // rank 0: by rank, its own first; others: rank 0
  std::atomic<bool>& lost_;
  CurrentActivity activity_;
  const int64_t lost_after_;  // milliseconds of silence
  StallDetector stall_;       // rank 0: of all ranks; slower than silence is noticed
  std::vector<StallDetector::State> states_;

  std::mutex mutex_;
  std::condition_variable changed_;
  pthread_t thread_ = {};
  bool ending_ = false;
  bool departed_ = false;  // this rank has left, or all have
  int64_t last_turn_ = 0;
  int64_t last_beat_ = 0;
  Writer body_;

  std::string loss_;  // what every survivor prints
  int64_t lost_at_ = 0;

  bool has_result_ = false;
  std::vector<std::string> result_;

  int64_t agreed_code_ = 0;  // of all ranks that have left
  bool farewell_ = false;

  // The agreement to stop. `begun_` and `stopping_` are also used without the mutex: a rank first
  // writes the step and then reads whether a stop is pending, its monitor the other way round.
  std::atomic<int64_t> begun_{0};      // the step that this rank is in or asks for
  std::atomic<bool> stopping_{false};  // PREPARE has come
  bool requested_ = false;
  int64_t answer_ = 0;                // this rank's answer
  int64_t highest_answer_ = 0;        // rank 0: of all answers so far
  std::optional<int64_t> last_step_;  // the decision
};

}  // namespace sgtc::runtime
