// The JSON form of plans, as --emit=plan-json writes it and executables embed it.
#pragma once

#include <string>

#include "plan/format.h"

namespace sgtc {

/// The same bytes for equal plans: keys are sorted, there are no blanks, and a newline ends it.
std::string to_json_text(const plan::Plan& plan);

/// The inverse. Throws Error that says what is wrong with the text; fields that are left out have
/// their defaults, names and sizes are left to verify_plan.
plan::Plan parse_plan(const std::string& text);

}  // namespace sgtc
