// What waiting for a peer has to look at besides the peer.
#pragma once

#include <cstdint>

namespace sgtc::runtime {

/// The job, as those see it who communicate.
class Watch {
 public:
  virtual ~Watch() = default;
  /// True once a peer is known to be lost; cheap enough to ask in a loop.
  virtual bool lost() const = 0;
  /// Says which peer was lost and ends the process.
  [[noreturn]] virtual void exit_lost() = 0;
  /// Notes in which communication this rank is, for messages. `entry` lives as long as the job.
  virtual void enter(int64_t step, const char* entry, int64_t micro_batch) = 0;
};

}  // namespace sgtc::runtime
