// Starts ranks on this machine as processes of the same program, and ends with them.
//
// Each rank is told who it is by variables (environment.h) and writes to this process, which passes
// its lines on behind "[rank] ". Ranks form a process group of their own, so that a signal from a
// terminal reaches them once: from here. They die with this process, even if it is killed.
#pragma once

#include "launch/environment.h"

namespace sgtc::runtime {

/// Starts the ranks `environment.rank` to `environment.rank + environment.starts - 1` of
/// `environment.size`, with `arguments` (argv, ending with null), and returns when all have ended:
/// the exit code of the first that failed, counting 128 + n for signal n. Ranks that gave up
/// because another one was lost come last. After a failure the others have a few seconds to end. If
/// all ranks start here, they also meet here.
int start_ranks(LaunchEnvironment environment, const char* const* arguments);

}  // namespace sgtc::runtime
