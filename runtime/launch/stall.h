// Notices that all ranks of a job wait for each other, which would otherwise last for ever: one has
// left out a communication, or a GPU or a network no longer answers.
//
// A rank can be waited for as long as it works on the host: it reads data or writes a checkpoint,
// which takes any time. But when every rank does nothing but run its device or wait for the others,
// then something ends on some rank every now and then, and a compiled step takes as long as the
// steps before it. So the job is taken for stalled when nothing has ended for ten times as long as
// ever before, and longer than a silent rank is waited for. The first steps prepare much and are no
// measure: until some more have been measured, it is a hundred times what the plan predicts for a
// step.
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

  /// What the plan predicts for a step, in milliseconds. Without it the first steps may take any
  /// time.
  void expect(double step) { expected_ = step; }
  /// Looks at all ranks at a time in milliseconds; whether they are stalled. `paused`: this process
  /// itself did not run for a while, so that what it knows is old.
  bool look(const std::vector<State>& ranks, int64_t now, bool paused);
  /// For how long nothing has ended, in milliseconds.
  int64_t duration() const { return duration_; }

 private:
  bool has_ended(const std::vector<State>& ranks) const;
  bool lasts_too_long(int64_t step) const;

  const int64_t least_;
  double expected_ = 0;
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
