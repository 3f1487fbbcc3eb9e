// Which states are trained.
#pragma once

#include <string>
#include <vector>

#include "import/lowering.h"

namespace sgtc {

/// Whether any of the shell-style patterns matches.
bool matches_any(const std::vector<std::string>& patterns, const std::string& name);

/// Sets the role of every state of the graph, given its loss (kNone: nothing is trained), and
/// reports initializers that no node uses. Errors: a pattern that matches no initializer, and a
/// tensor asked for by name that cannot be trained, with the reason.
void assign_roles(ImportState& state, ValueId loss, const std::vector<std::string>& train,
                  const std::vector<std::string>& freeze);

}  // namespace sgtc
