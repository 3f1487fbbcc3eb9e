// What ranks agree on through their monitors: collectives, the step to stop before, the end.
#include <algorithm>
#include <chrono>

#include "failure.h"
#include "launch/monitor.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kFarewellPatience = 1000;  // milliseconds

size_t pieces_returned(Collective collective, size_t ranks) {
  if (collective == Collective::kBarrier) return 0;
  return collective == Collective::kBroadcast ? 1 : ranks;
}

}  // namespace

std::vector<std::string> Monitor::collect(Collective collective, std::string_view piece) {
  Lock lock(mutex_);
  has_result_ = false;
  if (is_host()) {
    peer_of(0).collective = collective;
    peer_of(0).piece = piece;
    peer_of(0).has_piece = true;
    complete_collective();
  } else {
    Writer writer;
    writer.integer(static_cast<int64_t>(collective)).text(piece);
    send(0, kPiece, writer.body());
  }
  changed_.wait(lock, [&] { return has_result_ || lost_; });
  if (!has_result_) {
    lock.unlock();
    exit_lost();
  }
  return std::move(result_);
}

void Monitor::complete_collective() {
  for (const Peer& peer : peers_) {
    if (!peer.has_piece) return;
  }
  const Collective collective = peer_of(0).collective;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].collective == collective) continue;
    lose(static_cast<int64_t>(i), "takes part in another collective than rank 0");
    return;
  }
  const size_t returned = pieces_returned(collective, peers_.size());
  Writer writer;
  writer.integer(static_cast<int64_t>(returned));
  for (size_t i = 0; i < returned; ++i) writer.text(peers_[i].piece);
  for (Peer& peer : peers_) peer.has_piece = false;
  send_all(kResult, writer.body());
  take_result(writer.body());
  changed_.notify_all();
}

void Monitor::take_result(std::string_view body) {
  Reader reader(body);
  result_.clear();
  for (int64_t left = reader.integer(); left > 0 && reader.ok(); --left) {
    result_.emplace_back(reader.text());
  }
  has_result_ = true;
}

bool Monitor::may_begin_step(int64_t step) {
  begun_.store(step);
  if (!stopping_.load()) return true;
  Lock lock(mutex_);
  if (step <= answer_) return true;
  changed_.wait(lock, [&] { return last_step_ || lost_; });
  if (last_step_) return step <= *last_step_;
  lock.unlock();
  exit_lost();
}

void Monitor::request_stop() {
  if (requested_ || stopping_) return;
  requested_ = true;
  if (is_host()) {
    prepare();
  } else {
    send(0, kStop, {});
  }
}

void Monitor::prepare() {
  if (stopping_) return;
  answer();
  highest_answer_ = std::max(highest_answer_, answer_);
  peer_of(0).answered = true;
  send_all(kPrepare, {});
}

void Monitor::answer() {
  stopping_.store(true);
  answer_ = begun_.load();
}

void Monitor::decide() {
  for (const Peer& peer : peers_) {
    if (!peer.answered) return;
  }
  last_step_ = highest_answer_;
  body_.clear();
  body_.integer(highest_answer_);
  send_all(kDecide, body_.body());
  changed_.notify_all();
}

int Monitor::leave(int exit_code) {
  Lock lock(mutex_);
  if (departed_) return exit_code;
  if (is_normal_end(exit_code)) return leave_together(exit_code, lock);
  departed_ = true;
  if (is_host()) {
    lose(0, "ended with exit code " + std::to_string(exit_code));
  } else {
    send_leave(exit_code);
  }
  return exit_code;
}

void Monitor::send_leave(int exit_code) {
  tell_activity();
  body_.clear();
  body_.integer(exit_code);
  send(0, kLeave, body_.body());
}

// Rank 0 closes last: a connection that is closed while something arrives is reset, and what was
// sent over it may be lost.
int Monitor::leave_together(int exit_code, Lock& lock) {
  if (is_host()) {
    peer_of(0).exit_code = exit_code;
    complete_leave();
  } else {
    send_leave(exit_code);
  }
  changed_.wait(lock, [&] { return farewell_ || lost_; });
  if (!farewell_) {
    lock.unlock();
    exit_lost();
  }
  departed_ = true;
  const auto all_closed = [&] {
    return std::none_of(peers_.begin(), peers_.end(),
                        [](const Peer& peer) { return peer.connection.is_open(); });
  };
  if (is_host()) {
    changed_.wait_for(lock, std::chrono::milliseconds(kFarewellPatience), all_closed);
  } else {
    peer_of(0).connection.close();
  }
  return static_cast<int>(agreed_code_);
}

void Monitor::complete_leave() {
  for (const Peer& peer : peers_) {
    if (!peer.exit_code || !is_normal_end(*peer.exit_code)) return;
  }
  for (const Peer& peer : peers_) agreed_code_ = std::max(agreed_code_, *peer.exit_code);
  farewell_ = true;
  body_.clear();
  body_.integer(agreed_code_);
  send_all(kFarewell, body_.body());
  changed_.notify_all();
}

}  // namespace sgtc::runtime
