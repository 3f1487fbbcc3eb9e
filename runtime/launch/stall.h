// Notices that all ranks of a job wait for each other, which would otherwise last for ever: one has
// left out a communication, or a GPU or a network no longer answers.
//
// A rank can be waited for as long as it works on the host: it reads data or writes a checkpoint,
// which takes any time. But when every rank does nothing but run its device or wait for the others,
// then something ends on some rank every now and then, and a compiled step takes as long as the
// steps before it. So the job is taken for stalled when that has been so for several times as long
// as ever before, and longer than a silent rank is waited for. The first steps, which prepare
// much, and those that are measured before there is a measure, are not watched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/activity.h"

namespace sgtc::runtime {

class StallDetector {
 public:
  /// What is known of a rank.
  struct State {
    Activity activity;
    bool waits_for_others = false;  // outside of its device: in a collective of the host, or done
  };

  /// A stall lasts for at least so many milliseconds.
  explicit StallDetector(int64_t least) : least_(least) {}

  /// Looks at all ranks at a time in milliseconds; whether they are stalled. `paused`: this process
  /// itself did not run for a while, so that what it knows is old.
  bool look(const std::vector<State>& ranks, int64_t now, bool paused);
  /// For how long nothing has ended, in milliseconds.
  int64_t duration() const { return duration_; }

 private:
  const int64_t least_;
  std::vector<State> last_;
  bool measures_ = false;  // what lasts now
  int64_t since_ = 0;      // when something ended last
  int64_t longest_ = 0;    // time between two ends so far
  int64_t duration_ = 0;
};

/// What ranks do, those that do something rare first: "rank 1 is in step 12; ranks 0, 2 and 3 are
/// in step 11, reduce of micro-batch 0". `names` are of all ranks.
std::string describe_all(const std::vector<StallDetector::State>& ranks,
                         const std::vector<std::string>& names);

}  // namespace sgtc::runtime
