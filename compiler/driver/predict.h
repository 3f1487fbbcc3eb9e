// What a plan is expected to take, before it runs.
#pragma once

#include <vector>

#include "cost/hardware.h"
#include "driver/options.h"
#include "plan/format.h"
#include "simulate/simulate.h"

namespace sgtc {

/// The machine of --hardware, else the preset of the target. Throws Error for a CPU where the
/// target is a GPU, and the other way round.
Hardware choose_hardware(const Options& options);

/// Simulates a step and notes its time and bubble in the plan's prediction.
Simulation predict(plan::Plan& plan, const Hardware& hardware);

/// What --simulate asks for: a report per plan, and the timeline of the only one. Throws Error if a
/// timeline of several is asked for.
void emit_simulations(const Options& options, const Hardware& hardware,
                      const std::vector<plan::Plan>& plans,
                      const std::vector<Simulation>& simulations);

}  // namespace sgtc
