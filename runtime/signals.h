// SIGTERM and SIGINT ask a run to stop after its step.
#pragma once

namespace sgtc::runtime {

/// From now on the first of these signals is only remembered; another one, more than a second
/// later, ends the process.
void catch_stop_signals();

/// True once one has come.
bool stop_requested();

}  // namespace sgtc::runtime
