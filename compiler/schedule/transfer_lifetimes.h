// When what transfers bring and take holds something that is needed, by a finished schedule.
//
// A transfer runs from the end of the entries that it waits for to the begin of the first one that
// waits for it, at the earliest and the latest. What it writes or reads needs its bytes all that
// time, whatever runs beside it: other passes, of other micro-batches too, the update and other
// communication. So of every micro-batch it is asked which entries come neither before the first
// use of a storage nor after its last one, by streams and waits. The calls of all these entries are
// the storage's times. What one micro-batch leaves to be sent while the next begins is not needed
// in between: a hole.
#pragma once

#include <vector>

#include "plan/format.h"
#include "schedule/lifetimes.h"

namespace sgtc {

/// Sets the times of the lifetimes that are `beside_passes`, and of those in a ring that no two
/// micro-batches of a slot use at once also the times within a pass. `entries` is the schedule of
/// the position.
void set_transfer_lifetimes(const StepCalls& step, const std::vector<StepTask>& tasks,
                            const std::vector<plan::Entry>& entries,
                            std::vector<Lifetime>& lifetimes);

}  // namespace sgtc
