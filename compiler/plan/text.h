// A plan for people: what `--emit-plan` prints.
#pragma once

#include <string>

#include "plan/format.h"

namespace sgtc {

/// Of a plan that verify_plan accepts: the model and what it is compiled for; per position its
/// layers (kernels and parameters by the prefix of their names), its kernels, the most memory that
/// is live and by what, its schedules as charts; what is superfluous; and the prediction. Lines
/// stay within 100 columns except for long names.
std::string to_text(const plan::Plan& plan);

/// The layer that a node or tensor belongs to: its name up to the first part that is a number, as
/// in "h.0" of "/h.0/attn/MatMul" and "h.0.attn.weight"; without one, the first part if there are
/// more; else "other". A leading "update of ", as nodes of the optimizer have, does not count.
std::string layer_of(const std::string& name);

}  // namespace sgtc
