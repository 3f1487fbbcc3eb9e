// Profiles of hardware as files. docs/hardware-profiles.md describes the format.
#pragma once

#include <string>

#include "cost/hardware.h"

namespace sgtc {

/// Reads the text of a profile. `file` names it in messages. Strict: throws an Error that names the
/// key, what was expected and what was found for anything that is missing, unknown or impossible.
Hardware parse_hardware(const std::string& text, const std::string& file);

/// A preset by its name, else a profile from a file.
Hardware read_hardware(const std::string& name_or_file);

}  // namespace sgtc
