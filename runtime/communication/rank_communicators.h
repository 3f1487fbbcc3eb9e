// All communicators of one rank, and how it waits for what it issued over them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bell.h"
#include "communicator.h"
#include "watch.h"

namespace sgtc::runtime {

class RankCommunicators {
 public:
  /// Both must outlive this. `has_own_cpu`: there are at least as many CPUs as ranks that share
  /// them, so that waiting may keep one busy for a moment.
  RankCommunicators(Bell& bell, Watch& watch, bool has_own_cpu);

  void add(const std::string& name, std::unique_ptr<Communicator> communicator);
  /// Null if the rank is not a member of one with this name.
  Communicator* find(const std::string& name) const;

  /// Issues the operations in order and carries them on together until all are done. Ends the
  /// process when a peer is lost meanwhile. With `busy`, other threads of this rank need the CPU:
  /// it then never spins. One thread at a time may call this.
  void complete(Operation* const* operations, int64_t count, bool busy = false);

  /// Prepares, issues and completes one communication; allocates.
  void run(const std::string& communicator, const CommunicationRequest& request);

  Watch& watch() const { return watch_; }
  /// False if ranks share CPUs of which there are fewer than ranks.
  bool has_own_cpu() const { return has_own_cpu_; }

 private:
  void wait(Operation* const* operations, int64_t count, bool busy);

  Bell& bell_;
  Watch& watch_;
  bool has_own_cpu_;
  std::map<std::string, std::unique_ptr<Communicator>> communicators_;
};

}  // namespace sgtc::runtime
