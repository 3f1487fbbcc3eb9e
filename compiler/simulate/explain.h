// Why a node of the model is computed where, how and how often it is.
#pragma once

#include <string>

#include "cost/hardware.h"
#include "plan/format.h"
#include "simulate/simulate.h"

namespace sgtc {

/// A line about a position: where the stages are cut, and what that was weighed against.
std::string stage_text(const plan::Plan& plan, const Simulation& simulation, size_t position);

/// What a plan does for the ONNX node `name`, or with the tensor of that name: on which stage and
/// what that was weighed against; its kernels with what they compute beside it and what they are
/// predicted to take; and for each tensor that they write how long it is needed, whether the
/// backward phase computes it again, where it lies and with what it shares its bytes.
///
/// The plan has to be one that verify_plan accepts. Throws Error for a name that it does not have,
/// with names like it.
std::string explain(const plan::Plan& plan, const Hardware& hardware, const std::string& name);

}  // namespace sgtc
