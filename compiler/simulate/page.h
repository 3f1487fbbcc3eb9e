// Plans and their simulated steps as a page to look at.
#pragma once

#include <string>
#include <vector>

#include "cost/hardware.h"
#include "plan/format.h"
#include "simulate/simulate.h"

namespace sgtc {

/// One HTML page that needs nothing else, neither files nor a network: of each plan the summary of
/// its simulation of "train", the timeline of every position, what is live over time by kind and
/// where it lies in the arena, what is live at the peak by layer, and for every task, call and
/// tensor what `explain` says. `simulations[i]` is of `plans[i]` on `hardware`; the plans have to
/// be ones that verify_plan accepts. `#position=0&node=NAME` (or `tensor=`, `task=`) behind the
/// page's address selects what it explains.
std::string page_html(const std::vector<plan::Plan>& plans, const Hardware& hardware,
                      const std::vector<Simulation>& simulations);

}  // namespace sgtc
