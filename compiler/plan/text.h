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

}  // namespace sgtc
