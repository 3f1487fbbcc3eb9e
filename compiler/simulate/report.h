// Simulations as people and trace viewers read them.
#pragma once

#include <string>

#include "cost/hardware.h"
#include "plan/format.h"
#include "simulate/simulate.h"

namespace sgtc {

/// "pp=2,dp=4,tp=1".
std::string mesh_text(const plan::Plan& plan);
/// Its name and size: "h200 (132 multiprocessors, 8 ranks per host)".
std::string machine_text(const Hardware& hardware);

/// Step time, bubble, overlap and exposed communication, per position and per link (those
/// that carry most, and the sum of the others). Lines end with a newline.
std::string report_text(const plan::Plan& plan, const Hardware& hardware,
                        const Simulation& simulation);

/// The timeline in the format of chrome://tracing and Perfetto, as `./train --trace` writes it: a
/// process per position, a thread per stream, an event per entry, and a counter of live bytes.
std::string trace_json(const plan::Plan& plan, const Simulation& simulation);

}  // namespace sgtc
