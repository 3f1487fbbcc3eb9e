#include "launch/monitor.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "failure.h"
#include "signals.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kTick = 100;  // milliseconds
constexpr int64_t kDefaultLostAfter = 5000;
constexpr int64_t kBeatsPerPeriod = 20;  // so that activities are fresh
constexpr int64_t kExitGrace = 2000;     // from a loss to the end of a rank that does not notice

int64_t lost_after() {
  const char* text = std::getenv("SGTC_LOST_AFTER_MS");
  const int64_t value = text ? std::strtoll(text, nullptr, 10) : 0;
  return value > 0 ? value : kDefaultLostAfter;
}

}  // namespace

Monitor::Monitor(Meeting meeting, int64_t rank, std::atomic<bool>& lost)
    : rank_(rank),
      members_(std::move(meeting.members)),
      lost_(lost),
      lost_after_(lost_after()),
      stall_(lost_after_ * 3 / 2) {
  const int64_t now = monotonic_milliseconds();
  for (Connection& connection : meeting.connections) {
    Peer& peer = peers_.emplace_back();
    peer.connection = std::move(connection);
    peer.heard = now;
  }
  last_turn_ = now;
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread_, nullptr, run, this) != 0) die("threads", "cannot start the monitor");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Monitor::~Monitor() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  pthread_join(thread_, nullptr);
}

void* Monitor::run(void* monitor) {
  static_cast<Monitor*>(monitor)->watch();
  return nullptr;
}

void Monitor::watch() {
  std::vector<pollfd> events(peers_.size(), {-1, 0, 0});
  for (;;) {
    {
      const Lock lock(mutex_);
      if (ending_) return;
      turn(events);
      for (size_t i = 0; i < peers_.size(); ++i) {
        const Connection& connection = peers_[i].connection;
        events[i].fd = connection.descriptor();  // -1 is passed over
        events[i].events = static_cast<short>(POLLIN | (connection.has_unsent() ? POLLOUT : 0));
      }
    }
    poll(events.data(), events.size(), static_cast<int>(kTick));
  }
}

void Monitor::turn(const std::vector<pollfd>& events) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (events[i].revents == 0 || !peers_[i].connection.is_open()) continue;
    receive(static_cast<int64_t>(i), peers_[i]);
  }
  const int64_t now = monotonic_milliseconds();
  if (stop_requested()) request_stop();
  check_silence(now);
  check_progress(now);
  beat(now);
  for (Peer& peer : peers_) {
    if (peer.connection.is_open()) peer.connection.flush();
  }
  end_if_overdue(now);
  last_turn_ = now;
}

Monitor::Peer& Monitor::peer_of(int64_t rank) { return peers_[static_cast<size_t>(rank)]; }

void Monitor::send(int64_t rank, unsigned char kind, std::string_view body) {
  Peer& peer = peer_of(rank);
  if (!peer.connection.is_open()) return;
  peer.connection.send(kind, body);
  peer.connection.flush();
}

void Monitor::send_all(unsigned char kind, std::string_view body) {
  for (size_t i = 0; i < peers_.size(); ++i) send(static_cast<int64_t>(i), kind, body);
}

void Monitor::receive(int64_t rank, Peer& peer) {
  const bool open = peer.connection.receive();
  for (Frame frame; peer.connection.next(frame);) {
    peer.heard = monotonic_milliseconds();
    handle(rank, peer, frame);
  }
  if (open && !peer.connection.broken()) return;
  peer.connection.close();
  changed_.notify_all();
  if (!farewell_ && !departed_) lose(rank, "was lost: its connection ended");
}

void Monitor::handle(int64_t rank, Peer& peer, const Frame& frame) {
  if (frame.kind == kHeartbeat) {
    Reader reader(frame.body);
    peer.activity.step = reader.integer();
    peer.activity.micro_batch = reader.integer();
    const std::string_view entry = reader.text();
    const size_t length = std::min(entry.size(), sizeof peer.activity.entry - 1);
    peer.activity.entry[entry.copy(peer.activity.entry, length)] = '\0';
    peer.activity.turns = reader.integer();
  } else if (is_host()) {
    handle_at_host(rank, peer, frame);
  } else {
    handle_from_host(frame);
  }
}

void Monitor::handle_at_host(int64_t rank, Peer& peer, const Frame& frame) {
  Reader reader(frame.body);
  if (frame.kind == kPiece) {
    peer.collective = static_cast<Collective>(reader.integer());
    peer.piece = reader.text();
    peer.has_piece = true;
    complete_collective();
  } else if (frame.kind == kLeave) {
    peer.exit_code = reader.integer();
    if (!is_normal_end(*peer.exit_code)) {
      lose(rank, "ended with exit code " + std::to_string(*peer.exit_code));
    }
    complete_leave();
  } else if (frame.kind == kStop) {
    prepare();
  } else if (frame.kind == kAnswer) {
    peer.answered = true;
    highest_answer_ = std::max(highest_answer_, reader.integer());
    decide();
  }
}

void Monitor::handle_from_host(const Frame& frame) {
  Reader reader(frame.body);
  if (frame.kind == kResult) {
    take_result(frame.body);
  } else if (frame.kind == kLost) {
    if (!lost_) loss_ = reader.text();
    lose(0, {});
  } else if (frame.kind == kFarewell) {
    agreed_code_ = reader.integer();
    farewell_ = true;
  } else if (frame.kind == kPrepare) {
    answer();
    body_.clear();
    body_.integer(answer_);
    send(0, kAnswer, body_.body());
  } else if (frame.kind == kDecide) {
    last_step_ = reader.integer();
  }
  changed_.notify_all();
}

void Monitor::check_silence(int64_t now) {
  const bool paused = now - last_turn_ > lost_after_ / 2;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (!peer.connection.is_open()) continue;
    if (paused) peer.heard = now;
    if (now - peer.heard < lost_after_ || farewell_) continue;
    lose(static_cast<int64_t>(i),
         format("was lost: silent for %.1f s", static_cast<double>(now - peer.heard) / 1000));
  }
}

void Monitor::expect_step(double seconds) {
  const Lock lock(mutex_);
  stall_.expect(seconds * 1e3);
}

void Monitor::check_progress(int64_t now) {
  if (!is_host() || lost_ || farewell_) return;
  states_.clear();
  for (const Peer& peer : peers_) {
    states_.push_back({peer.activity, peer.has_piece || peer.exit_code.has_value()});
  }
  states_[0].activity = activity_.get();
  if (!stall_.look(states_, now, now - last_turn_ > lost_after_ / 2)) return;
  std::vector<std::string> names;
  for (const Introduction& member : members_) names.push_back(name_of(member));
  loss_ = format("all ranks wait for each other, nothing has ended for %.1f s: ",
                 static_cast<double>(stall_.duration()) / 1000) +
          describe_all(states_, names);
  end_all();
}

void Monitor::beat(int64_t now) {
  if (now - last_beat_ < lost_after_ / kBeatsPerPeriod) return;
  last_beat_ = now;
  tell_activity();
}

void Monitor::tell_activity() {
  const Activity activity = activity_.get();
  body_.clear();
  body_.integer(activity.step)
      .integer(activity.micro_batch)
      .text(activity.entry)
      .integer(activity.turns);
  send_all(kHeartbeat, body_.body());
}

void Monitor::lose(int64_t rank, const std::string& how) {
  if (lost_) return;
  if (loss_.empty()) {
    const bool own = rank == rank_;
    const Activity last = own ? activity_.get() : peer_of(rank).activity;
    loss_ = name_of(members_[static_cast<size_t>(rank)]) + ": " + how + "; it was last seen in " +
            describe(last);
  }
  end_all();
}

void Monitor::end_all() {
  if (is_host()) {
    body_.clear();
    body_.text(loss_);
    send_all(kLost, body_.body());
  }
  lost_at_ = monotonic_milliseconds();
  lost_ = true;  // last: whoever sees it may end the process
  changed_.notify_all();
}

void Monitor::end_if_overdue(int64_t now) {
  if (lost_ && !departed_ && now - lost_at_ > kExitGrace) exit_lost();
}

void Monitor::exit_lost() {
  static std::atomic<bool> printed{false};
  if (!printed.exchange(true)) {
    // Not through stdio: another thread may wait in it.
    dprintf(STDERR_FILENO,
            "error: %s; this rank is in %s; start the job again with --resume auto\n",
            loss_.c_str(), describe(activity_.get()).c_str());
    _exit(kExitLost);
  }
  for (;;) pause();
}

}  // namespace sgtc::runtime
